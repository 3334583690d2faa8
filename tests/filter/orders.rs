//! Tests that call the filter's callbacks in any order, with any context and any number: nothing
//! traps, and later probes still work.

use wasm_host::life::Life;
use wasm_host::lives::{self, GRPC, HOOK, HTTP, TABLE, TCP};
use wasm_host::transcript::{Effect, headers};
use wasm_host::{Action, Vm, VmError};

use crate::kit::{check, forget, get, serving, started, with_table};

/// Callbacks that the filter exports, with their arguments after the context id.
pub(crate) const CALLBACKS: [(&str, &[i32]); 8] = [
    ("proxy_on_vm_start", &[0]),
    ("proxy_on_configure", &[0]),
    ("proxy_on_configure", &[77]),
    ("proxy_on_request_headers", &[1, 1]),
    ("proxy_on_response_headers", &[1, 0]),
    ("proxy_on_response_body", &[77, 0]),
    ("proxy_on_http_call_response", &[4, 1, 1, 0]),
    ("proxy_on_delete", &[]),
];
pub(crate) const IDS: [u32; 5] = [0, 1, 2, 77, u32::MAX];

pub(crate) fn call(vm: &mut Vm, callback: &str, context: u32, more: &[i32]) -> Option<i32> {
    vm.call(callback, &[&[context.cast_signed()], more].concat()).unwrap()
}

fn create(vm: &mut Vm, context: u32, parent: u32) {
    call(vm, "proxy_on_context_create", context, &[parent.cast_signed()]);
}

/// Asserts that a probe of each kind is still answered correctly.
pub(crate) fn serves(vm: &mut Vm) {
    let ok = "passed 200 and 0 blanks";
    let rows = vec![
        ("http", Life::get(HTTP).application(200, [("server", "x")]).chunk("body", true), ok),
        ("tcp", Life::get(TCP).application::<&str>(200, []), "200"),
        ("grpc", Life::get(GRPC).callout(lives::grpc(Some(1), "0")), "200"),
    ];
    check(vm, rows);
}

#[test]
fn the_filter_exports_what_is_called_here() {
    let mut vm = started();
    for (callback, _) in CALLBACKS {
        assert!(vm.exports(callback), "{callback}");
    }
    assert!(vm.exports("proxy_on_context_create") && vm.exports("proxy_on_memory_allocate"));
}

#[test]
fn each_callback_for_each_context_before_creation_after_deletion_and_twice() {
    for (callback, more) in CALLBACKS {
        for id in IDS {
            let mut vm = started();
            for _ in 0..2 {
                call(&mut vm, callback, id, more);
            }
            create(&mut vm, id, 0);
            create(&mut vm, id, 1);
            call(&mut vm, callback, id, more);
            for _ in 0..2 {
                call(&mut vm, "proxy_on_delete", id, &[]);
                call(&mut vm, callback, id, more);
            }
            assert!(vm.configure(TABLE).unwrap(), "{callback} {id}");
            serves(&mut vm);
        }
    }
}

#[test]
fn a_stream_without_a_root_that_is_configured_goes_on() {
    let mut vm = started();
    for path in [HTTP, TCP, GRPC, HOOK, "/app-health/app/other"] {
        let (context, action) = vm.request(get(path), true).unwrap();
        assert_eq!((action, vm.transcript().of(context)), (Action::Continue, vec![]), "{path}");
    }
}

#[test]
fn responses_and_bodies_that_nobody_asked_for_change_nothing() {
    let mut vm = with_table();
    for callback in ["proxy_on_response_headers", "proxy_on_response_body"] {
        let context = vm.root() + 100;
        create(&mut vm, context, 1);
        for _ in 0..2 {
            assert_eq!(call(&mut vm, callback, context, &[5, 0]), Some(0), "{callback}");
        }
    }
    // A response body without response headers.
    let (waiting, _) = vm.request(get(HTTP), true).unwrap();
    assert_eq!(call(&mut vm, "proxy_on_response_body", waiting, &[5, 1]), Some(0));
    assert_eq!(vm.host().calls.of("proxy_set_buffer_bytes"), 0);
    serves(&mut vm);
}

#[test]
fn foreign_late_and_repeated_callout_answers_cost_no_host_call() {
    let answer = || lives::grpc(Some(1), "0");
    let mut vm = with_table();
    let (gone, _) = vm.request(get(GRPC), true).unwrap();
    let late = vm.host().newest_callout();
    vm.finish(gone).unwrap();
    let (other, _) = vm.request(get(GRPC), true).unwrap();
    let token = vm.host().newest_callout();
    forget(&mut vm);
    vm.callout_answer(late, answer()).unwrap();
    let root = vm.root();
    for foreign in [0, 1, late, token + 4, u32::MAX] {
        call(&mut vm, "proxy_on_http_call_response", root, &[foreign.cast_signed(), 3, 7, 1]);
    }
    assert_eq!(vm.host().calls.total(), 0);
    vm.callout_answer(token, answer()).unwrap();
    let once = vm.host().calls.total();
    for _ in 0..2 {
        call(&mut vm, "proxy_on_http_call_response", root, &[token.cast_signed(), 3, 7, 1]);
    }
    assert_eq!(vm.host().calls.total(), once);
    assert_eq!(vm.stream(other).unwrap().local_reply.as_ref().map(|reply| reply.status), Some(200));
    assert!(matches!(vm.callout_failed(token), Err(VmError::OutOfTurn { .. })));
}

#[test]
fn answers_to_callouts_find_their_streams_in_any_order() {
    let mut vm = with_table();
    let mut asked = Vec::new();
    for serving in [1, 2, 3, 1, 0] {
        let (context, _) = vm.request(get(GRPC), true).unwrap();
        asked.push((context, vm.host().newest_callout(), serving));
    }
    for index in [3, 0, 4, 2, 1] {
        let (_, token, serving) = asked[index];
        vm.callout_answer(token, lives::grpc(Some(serving), "0")).unwrap();
    }
    let status = |(context, _, _): &(u32, u32, u8)| {
        vm.stream(*context).unwrap().local_reply.as_ref().map_or(0, |reply| reply.status)
    };
    assert_eq!(asked.iter().map(status).collect::<Vec<_>>(), [200, 521, 523, 200, 522]);
}

#[test]
fn a_refused_configuration_leaves_the_old_one_and_a_new_one_leaves_probes_in_flight() {
    let mut vm = with_table();
    let (old, _) = vm.request(get(HTTP), true).unwrap();
    assert!(!vm.configure(b"[]").unwrap());
    serves(&mut vm);
    assert!(vm.configure(b"{}").unwrap());
    check(&mut vm, vec![("new", Life::get(HTTP), "404 unknown_probe")]);
    let head = headers([(":status", "204"), ("server", "x")]);
    assert_eq!(vm.response(old, head, false).unwrap(), Action::Continue);
    assert_eq!(vm.stream(old).unwrap().response_headers, headers([(":status", "204")]));
}

#[test]
fn a_root_is_configured_twice_and_the_first_table_is_not_mixed_in() {
    let mut vm = serving(b"{}");
    let root = vm.root();
    check(&mut vm, vec![("before", Life::get(HTTP), "404 unknown_probe")]);
    assert!(vm.configure(TABLE).unwrap());
    serves(&mut vm);
    assert_ne!(vm.root(), root);
    // The host announces 77 bytes but has none: the configuration is rejected and the table stays.
    let current = vm.root();
    assert_eq!(call(&mut vm, "proxy_on_configure", current, &[77]), Some(0));
    serves(&mut vm);
    assert_eq!(call(&mut vm, "proxy_on_configure", current, &[0]), Some(1));
    check(&mut vm, vec![("emptied", Life::get(HTTP), "404 unknown_probe")]);
}

#[test]
fn five_hundred_configurations_define_each_metric_once_and_leave_memory_flat() {
    let mut vm = with_table();
    let mut pages = 0;
    for round in 0..500 {
        let old = vm.root();
        let bad = round % 5 == 4;
        assert_eq!(vm.configure(if bad { b"{\"podIP\": 1}" } else { TABLE }).unwrap(), !bad);
        if !bad {
            vm.finish(old).unwrap();
        }
        if round % 50 == 0 {
            serves(&mut vm);
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
