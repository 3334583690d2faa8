//! Tests of events in unusual orders, and of configurations that replace each other.

use wasm_host::scenario::Scenario;
use wasm_host::scenarios::{self, GRPC, HOOK, HTTP, TABLE, TCP};
use wasm_host::transcript::{Effect, headers};
use wasm_host::{Action, CALLBACKS, Vm, VmError};

use crate::support::{check, clear, configured_vm, get, start_vm, vm_with_table};

fn call(vm: &mut Vm, callback: &str, context: u32, more: &[i32]) -> Option<i32> {
    vm.call(callback, &[&[context.cast_signed()], more].concat()).unwrap()
}

fn create(vm: &mut Vm, context: u32, parent: u32) {
    call(vm, "proxy_on_context_create", context, &[parent.cast_signed()]);
}

/// Asserts that a probe of each kind is still answered correctly.
pub(crate) fn assert_serves(vm: &mut Vm) {
    let ok = "passed 200 and 0 spaces";
    let rows = vec![
        ("http", Scenario::get(HTTP).application(200, [("server", "x")]).chunk("body", true), ok),
        ("tcp", Scenario::get(TCP).application::<&str>(200, []), "200"),
        ("grpc", Scenario::get(GRPC).callout(scenarios::grpc(Some(1), "0")), "200"),
    ];
    check(vm, rows);
}

#[test]
fn the_filter_exports_all_callbacks() {
    let mut vm = start_vm();
    for callback in CALLBACKS {
        assert!(vm.exports(callback), "{callback}");
    }
}

#[test]
fn a_stream_of_an_unconfigured_root_continues() {
    let mut vm = start_vm();
    for path in [HTTP, TCP, GRPC, HOOK, "/app-health/app/other"] {
        let (context, action) = vm.request(get(path), true).unwrap();
        assert_eq!((action, vm.transcript().of(context)), (Action::Continue, vec![]), "{path}");
    }
}

#[test]
fn unexpected_responses_and_bodies_have_no_effect() {
    let mut vm = vm_with_table();
    for (callback, context) in [("proxy_on_response_headers", 100), ("proxy_on_response_body", 101)] {
        create(&mut vm, context, 1);
        for _ in 0..2 {
            assert_eq!(call(&mut vm, callback, context, &[5, 0]), Some(0), "{callback}");
        }
    }
    // A response body without response headers.
    let (waiting, _) = vm.request(get(HTTP), true).unwrap();
    assert_eq!(call(&mut vm, "proxy_on_response_body", waiting, &[5, 1]), Some(0));
    assert_eq!(vm.host().calls.of("proxy_set_buffer_bytes"), 0);
    assert_serves(&mut vm);
}

#[test]
fn late_callout_responses_have_no_effect() {
    let answer = || scenarios::grpc(Some(1), "0");
    let mut vm = vm_with_table();
    let (gone, _) = vm.request(get(GRPC), true).unwrap();
    let late = vm.host().newest_callout();
    vm.finish(gone).unwrap();
    let (other, _) = vm.request(get(GRPC), true).unwrap();
    let token = vm.host().newest_callout();
    clear(&mut vm);
    vm.callout_answer(late, answer()).unwrap();
    assert_eq!(vm.host().calls.total(), 0);
    vm.callout_answer(token, answer()).unwrap();
    assert_eq!(vm.stream(other).unwrap().local_reply.as_ref().map(|reply| reply.status), Some(200));
    assert!(matches!(vm.callout_failed(token), Err(VmError::OutOfTurn { .. })));
}

#[test]
fn callout_responses_may_arrive_in_any_order() {
    let mut vm = vm_with_table();
    let mut asked = Vec::new();
    for status in [1, 2, 3, 1, 0] {
        let (context, _) = vm.request(get(GRPC), true).unwrap();
        asked.push((context, vm.host().newest_callout(), status));
    }
    for index in [3, 0, 4, 2, 1] {
        let (_, token, status) = asked[index];
        vm.callout_answer(token, scenarios::grpc(Some(status), "0")).unwrap();
    }
    let status = |(context, _, _): &(u32, u32, u8)| {
        vm.stream(*context).unwrap().local_reply.as_ref().map_or(0, |reply| reply.status)
    };
    assert_eq!(asked.iter().map(status).collect::<Vec<_>>(), [200, 521, 523, 200, 522]);
}

#[test]
fn a_rejected_configuration_keeps_the_previous_one_and_a_new_one_keeps_requests_in_flight() {
    let mut vm = vm_with_table();
    let (old, _) = vm.request(get(HTTP), true).unwrap();
    assert!(!vm.configure(b"[]").unwrap());
    assert_serves(&mut vm);
    assert!(vm.configure(b"{}").unwrap());
    check(&mut vm, vec![("new", Scenario::get(HTTP), "404 unknown_probe")]);
    let head = headers([(":status", "204"), ("server", "x")]);
    assert_eq!(vm.response(old, head, false).unwrap(), Action::Continue);
    assert_eq!(vm.stream(old).unwrap().response_headers, headers([(":status", "204")]));
}

#[test]
fn a_second_configuration_replaces_the_first_one() {
    let mut vm = configured_vm(b"{}");
    let root = vm.root();
    check(&mut vm, vec![("before", Scenario::get(HTTP), "404 unknown_probe")]);
    assert!(vm.configure(TABLE).unwrap());
    assert_serves(&mut vm);
    assert_ne!(vm.root(), root);
    // The host announces 77 bytes but has none: the configuration is rejected and the table stays.
    let current = vm.root();
    assert_eq!(call(&mut vm, "proxy_on_configure", current, &[77]), Some(0));
    assert_serves(&mut vm);
    assert_eq!(call(&mut vm, "proxy_on_configure", current, &[0]), Some(1));
    check(&mut vm, vec![("emptied", Scenario::get(HTTP), "404 unknown_probe")]);
}

#[test]
fn five_hundred_configurations_define_each_metric_once_and_use_no_more_memory() {
    let mut vm = vm_with_table();
    let mut pages = 0;
    for round in 0..500 {
        let old = vm.root();
        let bad = round % 5 == 4;
        assert_eq!(vm.configure(if bad { b"{\"podIP\": 1}" } else { TABLE }).unwrap(), !bad);
        if !bad {
            vm.finish(old).unwrap();
        }
        if round % 50 == 0 {
            assert_serves(&mut vm);
        }
        if round == 10 {
            pages = vm.memory_pages();
        }
    }
    let defined = vm.transcript().effects().into_iter().filter_map(|effect| match effect {
        Effect::MetricDefined { name, .. } => Some(name),
        _ => None,
    });
    // The first configuration has defined the other metrics.
    assert_eq!(defined.collect::<Vec<_>>(), ["app_health_config_rejected_total"]);
    assert_eq!(vm.memory_pages(), pages);
    assert!(pages <= 3, "{pages}");
}
