//! Tests with a host that fails: every host call of every scenario returns every status, once and
//! always, and the host returns invalid values, pointers and ids. In no case may the filter trap,
//! dial without filter state, pass on data of the application, or leave a request without a
//! response or a reset where one is possible.

use std::collections::BTreeMap;

use wasm_host::scenario::{Outcome, Scenario};
use wasm_host::scenarios::{self, GRPC, HOOK, HTTP, SECRET, TABLE};
use wasm_host::transcript::Effect;
use wasm_host::{ALLOWED, Fault, Vm};

use crate::support::{check, clear, format_outcome, start_vm, vm_with_table};

/// The status codes that Envoy returns, and one that it never returns.
const STATUSES: [u32; 13] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 9999];
const READS: [&str; 3] = ["proxy_get_header_map_value", "proxy_get_property", "proxy_get_buffer_bytes"];

/// Runs a scenario without faults, and returns its end and the number of host calls by name.
fn without_faults(scenario: &Scenario) -> (Outcome, BTreeMap<&'static str, u32>) {
    let mut vm = vm_with_table();
    let end = scenario.run(&mut vm).unwrap();
    (end, vm.host().calls.by_name().clone())
}

/// Runs a scenario with the planned faults, and checks the invariants that hold for every fault.
fn run_with_faults(vm: &mut Vm, scenario: &Scenario, what: &str) -> Outcome {
    clear(vm);
    let end = scenario.run(vm).unwrap_or_else(|error| panic!("{what}: {error}"));
    vm.host_mut().clear_faults();
    assert!(!format!("{end:?}").contains(SECRET), "{what}: {end:?}");
    let mut state_is_set = false;
    for effect in vm.transcript().effects() {
        match effect {
            Effect::Foreign { .. } => state_is_set = true,
            Effect::RequestHeadersSet(_) => assert!(state_is_set, "{what}: dialled without filter state"),
            other => assert!(!format!("{other:?}").contains(SECRET), "{what}: {other:?}"),
        }
    }
    match format_outcome(&end)
        .split_once(' ')
        .map_or(format_outcome(&end), |(first, _)| first.to_owned())
        .as_str()
    {
        "passed" | "waiting" | "reset" => {}
        status => assert!(status.parse::<u16>().is_ok(), "{what}: {end:?}"),
    }
    end
}

fn is_success(end: &Outcome) -> bool {
    matches!(format_outcome(end).trim_start_matches("passed ").as_bytes(), [b'2' | b'3', ..])
}

/// True for calls whose failure may leave the request without a response: the filter can then
/// neither reset the stream nor find the stream of a callout's response.
fn may_wait(call: &str) -> bool {
    ["proxy_close_stream", "proxy_set_effective_context"].contains(&call)
}

#[test]
fn each_host_call_may_fail_once_or_always_with_each_status() {
    for (name, scenario) in scenarios::all() {
        let (good, calls) = without_faults(&scenario);
        let hook = scenario.head[1].1.starts_with(HOOK.as_bytes());
        let mut vm = vm_with_table();
        for (call, count) in calls {
            for status in STATUSES {
                for nth in 0..=count {
                    match nth {
                        0 => vm.host_mut().fault(call, Fault::Status(status)),
                        nth => vm.host_mut().fault_nth(call, nth, Fault::Status(status)),
                    }
                    let what = format!("{name}, {call} {status}, number {nth} of {count}");
                    let end = run_with_faults(&mut vm, &scenario, &what);
                    let waits = end == Outcome::Waiting && good != Outcome::Waiting;
                    assert!(!waits || may_wait(call), "{what}: waits");
                    // NotFound means absent, not failed: a redirect without `Location` is a
                    // success.
                    let passes = hook || status == 1 || is_success(&good);
                    assert!(passes || !is_success(&end), "{what}: {end:?}, not {good:?}");
                }
            }
            assert_eq!(run_with_faults(&mut vm, &scenario, name), good, "{name} after {call}");
        }
    }
}

#[test]
fn two_or_all_host_calls_may_fail() {
    for (name, scenario) in scenarios::all() {
        let (good, _) = without_faults(&scenario);
        let mut vm = vm_with_table();
        for first in ALLOWED {
            for second in ALLOWED {
                let calls = [first, second];
                for call in calls {
                    vm.host_mut().fault(call, Fault::Status(10));
                }
                let what = format!("{name}, {calls:?}");
                let end = run_with_faults(&mut vm, &scenario, &what);
                let waits = end == Outcome::Waiting && good != Outcome::Waiting;
                assert!(!waits || calls.iter().any(|call| may_wait(call)), "{what}: waits");
            }
        }
        for call in ALLOWED {
            vm.host_mut().fault(call, Fault::Status(2));
        }
        run_with_faults(&mut vm, &scenario, name);
        assert_eq!(run_with_faults(&mut vm, &scenario, name), good, "{name}");
    }
}

#[test]
fn results_of_failed_host_calls() {
    let scenario = |name: &str| scenarios::all().into_iter().find(|(other, _)| *other == name).unwrap().1;
    let set_headers = "proxy_set_header_map_pairs";
    let rows = [
        ("http ok", "proxy_call_foreign_function", 1, "530 configuration"),
        ("http ok", set_headers, 1, "530 configuration"),
        ("http ok", set_headers, 2, "530 configuration"),
        ("http ok", "proxy_set_buffer_bytes", 1, "reset"),
        ("http endless", "proxy_set_buffer_bytes", 2, "reset"),
        ("http refused", "proxy_send_local_response", 1, "reset"),
        ("http application", "proxy_get_property", 1, "530 configuration"),
        ("hook ok", "proxy_call_foreign_function", 1, "reset"),
        ("tcp connected", "proxy_call_foreign_function", 1, "530 configuration"),
        ("grpc serving", "proxy_http_call", 1, "503 overloaded"),
        ("grpc serving", "proxy_send_local_response", 1, "reset"),
        ("grpc serving", "proxy_get_buffer_bytes", 1, "526 grpc_error"),
        ("redirect followed", "proxy_http_call", 2, "503 overloaded"),
        // Until the first response the filter reads `:path`, `:method`, `user-agent`, `:status` and
        // `location`, in this order.
        ("redirect followed", "proxy_get_header_map_value", 5, "528 redirect"),
        ("redirect followed", "proxy_get_current_time_nanoseconds", 1, "530 configuration"),
        ("undeclared", "proxy_send_local_response", 1, "reset"),
    ];
    for (name, call, nth, expected) in rows {
        let mut vm = vm_with_table();
        vm.host_mut().fault_nth(call, nth, Fault::Status(10));
        check(&mut vm, vec![(name, scenario(name), expected)]);
    }
}

#[test]
fn a_missing_foreign_function_is_a_configuration_error() {
    for path in [HTTP, scenarios::TCP] {
        let mut vm = vm_with_table();
        vm.host_mut().foreign_functions.clear();
        check(&mut vm, vec![(path, Scenario::get(path), "530 configuration")]);
    }
}

#[test]
fn a_configuration_is_applied_completely_or_rejected_under_every_fault() {
    let mut vm = start_vm();
    assert!(vm.configure(TABLE).unwrap());
    for (call, count) in vm.host().calls.by_name() {
        for status in STATUSES {
            for nth in 0..=*count {
                let mut vm = start_vm();
                match nth {
                    0 => vm.host_mut().fault(call, Fault::Status(status)),
                    nth => vm.host_mut().fault_nth(call, nth, Fault::Status(status)),
                }
                let accepted = vm.configure(TABLE).unwrap();
                assert_eq!(accepted, *call != "proxy_get_buffer_bytes", "{call} {status} {nth}");
                let served = if accepted { "waiting" } else { "passed" };
                check(
                    &mut vm,
                    vec![("http", Scenario::get(HTTP), served), ("grpc", Scenario::get(GRPC), served)],
                );
            }
        }
    }
}

#[test]
fn a_truncated_configuration_is_rejected() {
    for part in [&b""[..], b"{}", b"null"] {
        let mut vm = start_vm();
        vm.host_mut().fault("proxy_get_buffer_bytes", Fault::Value(part.to_vec()));
        assert!(!vm.configure(TABLE).unwrap(), "{}", part.escape_ascii());
    }
}

/// Runs every scenario, and replaces the result of each read by each of these faults.
fn check_reads(faults: &[Fault]) {
    for (name, scenario) in scenarios::all() {
        let (good, calls) = without_faults(&scenario);
        let mut vm = vm_with_table();
        for call in READS {
            for fault in faults {
                for nth in 1..=calls.get(call).copied().unwrap_or(0) {
                    vm.host_mut().fault_nth(call, nth, fault.clone());
                    let shortened: String = format!("{fault:?}").chars().take(60).collect();
                    run_with_faults(&mut vm, &scenario, &format!("{name}, {call} {nth}, {shortened}"));
                }
            }
        }
        assert_eq!(run_with_faults(&mut vm, &scenario, name), good, "{name}");
    }
}

#[test]
fn values_may_be_any_bytes() {
    let high: Vec<u8> = (0x80..=0xff).collect();
    let mut values = vec![Vec::new(), high, vec![0xff; 70_000], vec![0; 8], vec![0xff; 8], vec![b'9'; 40]];
    values.extend((0x80..=0xff).map(|byte| vec![byte]));
    values.extend(["\0", "%", ":", "http://[", "-1", "200 ", "GET\0", "?"].map(|text| text.into()));
    check_reads(&values.into_iter().map(Fault::Value).collect::<Vec<_>>());
}

#[test]
fn pointers_may_be_any_numbers() {
    let pointers =
        [(0, 0), (0, 65_536), (1, u32::MAX), (u32::MAX, 1), (131_071, 2), (4, 5), (u32::MAX, u32::MAX)];
    check_reads(&pointers.map(|(pointer, size)| Fault::Pointer { pointer, size }));
}

#[test]
fn ids_may_be_any_numbers() {
    for id in [0, 1, 4, u32::MAX] {
        let mut vm = start_vm();
        vm.host_mut().fault("proxy_define_metric", Fault::Id(id));
        assert!(vm.configure(TABLE).unwrap());
        for (name, scenario) in scenarios::all() {
            vm.host_mut().fault("proxy_http_call", Fault::Id(id));
            vm.host_mut().fault("proxy_define_metric", Fault::Id(id));
            run_with_faults(&mut vm, &scenario, name);
        }
    }
}

#[test]
fn memory_allocations_may_fail_or_have_any_size() {
    let mut vm = vm_with_table();
    let pages = vm.memory_pages();
    for size in (0..5_000).step_by(7) {
        let pointer = vm.call("proxy_on_memory_allocate", &[size]).unwrap().unwrap();
        assert!(pointer != 0, "{size}");
    }
    assert!(vm.memory_pages() <= pages + 1);
    for size in [i32::MAX, i32::MIN, -1, -65_536, 100 << 20] {
        assert_eq!(vm.call("proxy_on_memory_allocate", &[size]).unwrap(), Some(0), "{size}");
    }
    assert!(vm.memory_pages() <= pages + 1);
    check(
        &mut vm,
        vec![("after", Scenario::get(HTTP).application::<&str>(200, []), "passed 200 and 0 spaces")],
    );
}
