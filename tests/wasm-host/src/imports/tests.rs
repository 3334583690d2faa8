use super::ALLOWED;
use crate::transcript::{Effect, MetricKind, headers};
use crate::wat_guest::{
    BAD_ARGUMENT, CALLOUT, CALLS, INVALID_MEMORY_ACCESS, NAME, NOT_FOUND, OK, RESULT, call, last_result,
    start_test_guest, token,
};
use crate::{Host, Vm};

#[test]
fn every_call_is_linked_counted_and_checks_its_pointers() {
    assert_eq!(CALLS.map(|(name, _)| name), ALLOWED);
    let mut vm = start_test_guest(Host { clusters: ["name".to_owned()].into(), ..Host::default() });
    let (c, _) = vm.request(headers([("name", "value")]), true).unwrap();
    vm.host_mut().calls.reset();
    let (out, [name, size]) = (i32::MIN, NAME);
    assert_eq!(call(&mut vm, "proxy_log", c, [2, -1, 1]), INVALID_MEMORY_ACCESS);
    assert_eq!(call(&mut vm, "proxy_get_buffer_bytes", c, [6, 0, 9, out, RESULT]), INVALID_MEMORY_ACCESS);
    assert_eq!(call(&mut vm, "proxy_set_buffer_bytes", c, [1, 0, 0, 65_536, 1]), INVALID_MEMORY_ACCESS);
    assert_eq!(
        call(&mut vm, "proxy_get_header_map_value", c, [0, name, size, RESULT, out]),
        INVALID_MEMORY_ACCESS
    );
    assert_eq!(call(&mut vm, "proxy_set_header_map_pairs", c, [0, 65_535, 2]), INVALID_MEMORY_ACCESS);
    assert_eq!(call(&mut vm, "proxy_get_property", c, [name, -1, RESULT, RESULT]), INVALID_MEMORY_ACCESS);
    assert_eq!(
        call(&mut vm, "proxy_call_foreign_function", c, [name, size, out, 1, 0, 0]),
        INVALID_MEMORY_ACCESS
    );
    assert_eq!(
        call(&mut vm, "proxy_send_local_response", c, [200, 0, 0, 0, -1, 0, 0, -1]),
        INVALID_MEMORY_ACCESS
    );
    let [pairs, pairs_size] = CALLOUT;
    assert_eq!(
        call(&mut vm, "proxy_http_call", c, [name, size, pairs, pairs_size, 0, 0, 0, 0, 1, out]),
        INVALID_MEMORY_ACCESS
    );
    assert_eq!(call(&mut vm, "proxy_define_metric", c, [0, name, size, out]), INVALID_MEMORY_ACCESS);
    assert_eq!(call(&mut vm, "proxy_get_current_time_nanoseconds", c, [65_529]), INVALID_MEMORY_ACCESS);
    let calls = &vm.host().calls;
    assert_eq!((calls.total(), calls.of("proxy_log"), calls.of("proxy_close_stream")), (11, 1, 0));
    assert_eq!(vm.stream(c).unwrap().local_reply, None);
}

#[test]
fn properties_and_foreign_functions_return_configured_values() {
    let mut vm = start_test_guest(Host {
        foreign_functions: [("name".to_owned(), Default::default())].into(),
        ..Host::default()
    });
    let (c, _) = vm.request(headers([(":path", "/")]), true).unwrap();
    let [name, size] = NAME;
    let get = |vm: &mut Vm, size| call(vm, "proxy_get_property", c, [name, size, RESULT, RESULT + 4]);
    assert_eq!(get(&mut vm, size), NOT_FOUND);
    vm.set_property(c, &["name"], b"\xffvalue").unwrap();
    assert_eq!((get(&mut vm, size), last_result(&vm)), (OK, b"\xffvalue".to_vec()));
    assert_eq!(get(&mut vm, size + 1), OK, "a NUL after the last part");
    let foreign = |vm: &mut Vm, size| {
        call(vm, "proxy_call_foreign_function", c, [name, size, 33, 2, RESULT, RESULT + 4])
    };
    assert_eq!((foreign(&mut vm, 3), foreign(&mut vm, 4), last_result(&vm)), (NOT_FOUND, OK, vec![]));
    assert_eq!(vm.transcript().of(c), [Effect::Foreign { name: "name".to_owned(), argument: vec![0, 0] }]);
}

#[test]
fn a_metric_that_is_defined_again_gets_a_new_id_and_keeps_its_value() {
    let mut vm = start_test_guest(Host::default());
    let [name, size] = NAME;
    let define =
        |vm: &mut Vm, kind| (call(vm, "proxy_define_metric", 1, [kind, name, size, RESULT]), token(vm));
    let defined = [0, 0, 1, 2].map(|kind| define(&mut vm, kind));
    assert_eq!(defined, [(OK, 4), (OK, 8), (OK, 5), (OK, 6)]);
    assert_eq!(define(&mut vm, 3).0, BAD_ARGUMENT);
    let metric = |vm: &mut Vm, call_name, id, value| call(vm, call_name, 1, [id, value]);
    let increments = [(4, 2), (8, 3), (4, 0), (5, -1), (6, 1), (12, 1)];
    assert_eq!(
        increments.map(|(id, by)| metric(&mut vm, "proxy_increment_metric", id, by)),
        [OK, OK, BAD_ARGUMENT, OK, BAD_ARGUMENT, NOT_FOUND]
    );
    assert_eq!(vm.host().metrics.value("name"), Some(4));
    assert_eq!([5, 99].map(|id| metric(&mut vm, "proxy_record_metric", id, 7)), [OK, NOT_FOUND]);
    assert_eq!(
        (vm.host().metrics.value("name"), vm.host().metrics.names()),
        (Some(7), vec!["name".to_owned()])
    );
    let effects = vm.transcript().effects();
    assert_eq!(
        effects[0],
        Effect::MetricDefined { id: 4, kind: MetricKind::Counter, name: "name".to_owned() }
    );
    assert_eq!(effects[4], Effect::MetricIncremented { id: 4, name: "name".to_owned(), by: 2 });
    assert_eq!(effects.last(), Some(&Effect::MetricRecorded { id: 5, name: "name".to_owned(), value: 7 }));
}
