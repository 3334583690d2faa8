//! Tests of the cost of a request in host calls, and of the limit of requests in flight.

use std::time::Duration;

use wasm_host::scenario::Scenario;
use wasm_host::scenarios::{GRPC, HOOK, HTTP, TCP};
use wasm_host::transcript::headers;
use wasm_host::{Action, Vm};

use crate::support::{check, clear, get, reply, vm_with_table};

/// The probes that one client may have in flight.
const CLIENTS_PERMITS: usize = 10;

#[test]
fn a_request_for_another_path_costs_one_host_call() {
    for path in ["/", "/stats/prometheus", "/app-health", "/APP-HEALTH/app/readyz", "*", ""] {
        let mut vm = vm_with_table();
        let (context, action) = vm.request(get(path), true).unwrap();
        vm.finish(context).unwrap();
        assert_eq!((action, vm.host().calls.total()), (Action::Continue, 1), "{path}");
    }
}

#[test]
fn a_routed_probe_costs_eleven_host_calls() {
    let mut vm = vm_with_table();
    for round in 0..3 {
        clear(&mut vm);
        let scenario =
            Scenario::get(HTTP).application(200, [("server", "x")]).chunk("small", false).chunk("", true);
        scenario.run(&mut vm).unwrap();
        let calls: Vec<_> = vm.host().calls.by_name().iter().map(|(name, count)| (*name, *count)).collect();
        let expected = [
            ("proxy_call_foreign_function", 1),
            ("proxy_get_header_map_value", 5),
            ("proxy_increment_metric", 1),
            ("proxy_record_metric", 1),
            ("proxy_set_buffer_bytes", 1),
            ("proxy_set_header_map_pairs", 2),
        ];
        assert_eq!((calls, vm.host().calls.total()), (expected.to_vec(), 11), "round {round}");
    }
}

/// Asserts that a prober accepts [`CLIENTS_PERMITS`] requests in flight and rejects the next one, and
/// that each of them frees its permit when it ends by `then`.
fn check_busy(path: &str, then: impl Fn(&mut Vm, u32)) {
    let mut vm = vm_with_table();
    for round in 0..3 {
        let contexts: Vec<u32> = (0..CLIENTS_PERMITS)
            .map(|_| {
                let (context, _) = vm.request(get(path), true).unwrap();
                assert!(vm.stream(context).unwrap().local_reply.is_none(), "{path} round {round}");
                context
            })
            .collect();
        let busy = Scenario::get(path).run(&mut vm).unwrap();
        assert_eq!(busy, reply(429, "busy: too many of these probes in flight"), "{path} round {round}");
        for context in contexts {
            then(&mut vm, context);
            vm.finish(context).unwrap();
        }
        // A callout continues after its caller has disconnected, for the probe's timeout at most.
        while vm.host().newest_callout() > 0 {
            let token = vm.host().newest_callout();
            vm.callout_failed(token).unwrap();
        }
        vm.host_mut().now += Duration::from_secs(30);
    }
}

#[test]
fn too_many_requests_in_flight_are_rejected() {
    let respond = |vm: &mut Vm, context, status: &str, details: &[u8]| {
        vm.set_property(context, &["response", "code_details"], details).unwrap();
        vm.response(context, headers([(":status", status)]), false).unwrap();
    };
    check_busy(HTTP, |_, _| {});
    check_busy(HTTP, |vm, context| respond(vm, context, "200", b"via_upstream"));
    check_busy(HTTP, |vm, context| respond(vm, context, "504", b"response_timeout"));
    check_busy(TCP, |vm, context| respond(vm, context, "200", b""));
    check_busy(GRPC, |_, _| {});
    check_busy(GRPC, |vm, _| {
        let token = vm.host().newest_callout();
        vm.callout_failed(token).unwrap();
    });
}

#[test]
fn a_response_holds_a_permit_until_its_body_has_ended() {
    let mut vm = vm_with_table();
    for _ in 0..CLIENTS_PERMITS {
        let (context, _) = vm.request(get(HTTP), true).unwrap();
        vm.response(context, headers([(":status", "200")]), false).unwrap();
        vm.response_body(context, b"endless", false).unwrap();
    }
    check(
        &mut vm,
        vec![
            ("the same prober", Scenario::get(HTTP), "429 busy"),
            ("another one", Scenario::get(TCP), "waiting"),
        ],
    );
}

#[test]
fn too_many_hooks_in_flight_are_reset() {
    let mut vm = vm_with_table();
    for _ in 0..CLIENTS_PERMITS {
        vm.request(get(HOOK), true).unwrap();
    }
    check(&mut vm, vec![("one more", Scenario::get(HOOK), "reset")]);
}
