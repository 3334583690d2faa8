use crate::transcript::headers;
use crate::wat_guest::{BAD_ARGUMENT, NAME, NOT_FOUND, OK, RESULT, call, last_result, start_test_guest};
use crate::{Host, Vm};

#[test]
fn a_body_can_be_prepended_replaced_or_appended() {
    let [name, size] = NAME;
    for (start, len, status, after) in [
        (0, 0, OK, "namebody"),
        (0, 3, BAD_ARGUMENT, "body"),
        (0, 4, OK, "name"),
        (0, 9, OK, "name"),
        (2, 2, BAD_ARGUMENT, "body"),
        (4, 0, OK, "bodyname"),
        (9, 9, OK, "bodyname"),
    ] {
        let mut vm = start_test_guest(Host::default());
        let (c, _) = vm.request(headers([(":path", "/")]), true).unwrap();
        let set = |vm: &mut Vm| call(vm, "proxy_set_buffer_bytes", c, [1, start, len, name, size]);
        assert_eq!(set(&mut vm), BAD_ARGUMENT, "no body yet");
        vm.response_body(c, b"body", false).unwrap();
        assert_eq!(set(&mut vm), status, "{start} {len}");
        assert_eq!(call(&mut vm, "proxy_get_buffer_bytes", c, [1, 0, 99, RESULT, RESULT + 4]), OK);
        assert_eq!(last_result(&vm), after.as_bytes(), "{start} {len}");
    }
}

#[test]
fn buffers_return_the_available_bytes() {
    let mut vm = start_test_guest(Host { vm_configuration: b"vm configuration".to_vec(), ..Host::default() });
    let c = vm.root();
    let mut get = |kind, start, max| {
        let status = call(&mut vm, "proxy_get_buffer_bytes", c, [kind, start, max, RESULT, RESULT + 4]);
        (status, if status == OK { last_result(&vm) } else { Vec::new() })
    };
    assert_eq!(get(6, 3, 6), (OK, b"config".to_vec()));
    assert_eq!(get(6, 3, -1), (OK, b"configuration".to_vec()));
    assert_eq!(get(6, -1, -1), (OK, Vec::new()));
    assert_eq!(get(1, 0, 9), (OK, Vec::new()), "a body outside its callback is empty");
    assert_eq!([get(4, 0, 9).0, get(7, 0, 9).0], [NOT_FOUND; 2], "no callout or configuration in progress");
    assert_eq!(get(9, 0, 9).0, BAD_ARGUMENT);
}
