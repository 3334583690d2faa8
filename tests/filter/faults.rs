//! Tests with a host that fails: every host call of every scenario returns every status, once and
//! always, and the host returns any value and id. In no case may the filter dial without filter
//! state, pass on data of the application, or leave a request without a response or a reset where one
//! is possible. The SDK traps on a status that the ABI does not have for a call; Envoy then answers
//! the request with 503 and starts a new VM, which must work.

use std::collections::BTreeMap;
use std::time::Duration;

use wasm_host::scenario::{Outcome, Scenario};
use wasm_host::scenarios::{self, GRPC, HOOK, HTTP, SECRET, TABLE};
use wasm_host::transcript::Effect;
use wasm_host::{ALLOWED, Fault, Vm, VmError};

use crate::support::{check, clear, format_outcome, start_vm, vm_with_table};

/// Status codes that Envoy returns, and one that it never returns.
const STATUSES: [u32; 13] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 9999];
const READS: [&str; 3] = ["proxy_get_header_map_value", "proxy_get_property", "proxy_get_buffer_bytes"];

/// Runs a scenario without faults, and returns its end and the number of host calls by name.
fn without_faults(scenario: &Scenario) -> (Outcome, BTreeMap<&'static str, u32>) {
    let mut vm = vm_with_table();
    let end = scenario.run(&mut vm).unwrap();
    (end, vm.host().calls.by_name().clone())
}

/// Runs a scenario with the planned faults, and checks the invariants that hold for every fault.
/// Returns `None` if the filter trapped; then `vm` is a new VM, as after Envoy's reload.
fn run_with_faults(vm: &mut Vm, scenario: &Scenario, what: &str) -> Option<Outcome> {
    clear(vm);
    let end = match scenario.run(vm) {
        Ok(end) => Some(end),
        Err(VmError::Trap { .. }) => None,
        Err(error) => panic!("{what}: {error}"),
    };
    vm.host_mut().clear_faults();
    // A callout whose stream has ended occupies a slot for some time.
    vm.host_mut().now += Duration::from_secs(30);
    assert!(!format!("{end:?}").contains(SECRET), "{what}: {end:?}");
    let mut state_is_set = false;
    for effect in vm.transcript().effects() {
        match effect {
            Effect::Foreign { .. } => state_is_set = true,
            Effect::RequestHeadersSet(_) => assert!(state_is_set, "{what}: dialed without filter state"),
            other => assert!(!format!("{other:?}").contains(SECRET), "{what}: {other:?}"),
        }
    }
    let Some(end) = end else {
        *vm = vm_with_table();
        return None;
    };
    let text = format_outcome(&end);
    match text.split(' ').next().unwrap_or_default() {
        "passed" | "waiting" | "reset" => {}
        status => assert!(status.parse::<u16>().is_ok(), "{what}: {end:?}"),
    }
    Some(end)
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
                    let Some(end) = run_with_faults(&mut vm, &scenario, &what) else { continue };
                    let waits = end == Outcome::Waiting && good != Outcome::Waiting;
                    assert!(!waits || may_wait(call), "{what}: waits");
                    // NotFound means absent, not failed: a redirect without `Location` is a
                    // success.
                    let passes = hook || status == 1 || is_success(&good);
                    assert!(passes || !is_success(&end), "{what}: {end:?}, not {good:?}");
                }
            }
            let after = run_with_faults(&mut vm, &scenario, name);
            assert_eq!(after.as_ref(), Some(&good), "{name} after {call}");
        }
    }
}

#[test]
fn two_or_all_host_calls_may_fail() {
    for (name, scenario) in scenarios::all() {
        let (good, made) = without_faults(&scenario);
        let mut vm = vm_with_table();
        for first in made.keys() {
            for second in made.keys() {
                let calls = [*first, *second];
                for call in calls {
                    vm.host_mut().fault(call, Fault::Status(10));
                }
                let what = format!("{name}, {calls:?}");
                let Some(end) = run_with_faults(&mut vm, &scenario, &what) else { continue };
                let waits = end == Outcome::Waiting && good != Outcome::Waiting;
                assert!(!waits || calls.iter().any(|call| may_wait(call)), "{what}: waits");
            }
        }
        for call in ALLOWED {
            vm.host_mut().fault(call, Fault::Status(2));
        }
        run_with_faults(&mut vm, &scenario, name);
        assert_eq!(run_with_faults(&mut vm, &scenario, name), Some(good), "{name}");
    }
}

/// The statuses that the ABI has for a call.
#[test]
fn results_of_failed_host_calls() {
    let scenario = |name: &str| scenarios::all().into_iter().find(|(other, _)| *other == name).unwrap().1;
    let rows = [
        ("grpc serving", "proxy_http_call", 1, 10, "503 overloaded"),
        ("grpc serving", "proxy_http_call", 1, 2, "530 configuration"),
        ("redirect followed", "proxy_http_call", 2, 10, "503 overloaded"),
        ("http ok", "proxy_call_foreign_function", 1, 1, "530 configuration"),
        ("http refused", "proxy_send_local_response", 1, 10, "reset"),
        ("http application", "proxy_get_property", 1, 1, "530 configuration"),
        ("hook ok", "proxy_call_foreign_function", 1, 1, "reset"),
        ("tcp connected", "proxy_call_foreign_function", 1, 1, "530 configuration"),
        ("undeclared", "proxy_send_local_response", 1, 10, "reset"),
    ];
    for (name, call, nth, status, expected) in rows {
        let mut vm = vm_with_table();
        vm.host_mut().fault_nth(call, nth, Fault::Status(status));
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
                // A trap is a rejection, too.
                let Ok(accepted) = vm.configure(TABLE) else { continue };
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
        assert_eq!(run_with_faults(&mut vm, &scenario, name), Some(good), "{name}");
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
