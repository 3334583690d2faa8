use crate::transcript::{Effect, LogLevel, headers};
use crate::wat_guest::{LOG, guest};
use crate::{Host, Vm};

#[test]
fn the_memory_of_a_guest_is_limited() {
    let grow = r#"(func (export "grow") (param i32) (result i32) (memory.grow (local.get 0)))"#;
    let mut vm = Vm::start(&guest("", grow), Host::default()).unwrap();
    assert_eq!((vm.memory_pages(), vm.memory_bytes()), (1, 65_536));
    assert_eq!(vm.call("grow", &[2]).unwrap(), Some(1));
    assert_eq!(vm.call("grow", &[10_000]).unwrap(), Some(-1));
    assert_eq!(vm.memory_pages(), 3);
}

#[test]
fn only_logging_is_allowed_at_start_and_during_allocation() {
    let time = r#"(import "env" "proxy_get_current_time_nanoseconds" (func $time (param i32) (result i32)))"#;
    let initialize = guest(time, r#"(func (export "_initialize") (drop (call $time (i32.const 0))))"#);
    let error = Vm::start(&initialize, Host::default()).unwrap_err().to_string();
    assert!(
        error.starts_with("_initialize trapped: proxy_get_current_time_nanoseconds called while"),
        "{error}"
    );
    let may_log = guest(
        LOG,
        r#"(func (export "_initialize") (drop (call $log (i32.const 2) (i32.const 0) (i32.const 0))))"#,
    );
    let vm = Vm::start(&may_log, Host::default()).unwrap();
    assert_eq!(vm.transcript().log(), [(LogLevel::Info, String::new())]);
}

#[test]
fn a_changed_configuration_gets_a_new_root() {
    let imports = LOG.to_owned()
        + r#"(import "env" "proxy_get_buffer_bytes" (func $buffer (param i32 i32 i32 i32 i32) (result i32)))"#;
    // The guest logs each configuration and accepts those that begin with '{'.
    let rest = r#"
        (func (export "proxy_on_configure") (param i32 i32) (result i32)
            (drop (call $buffer (i32.const 7) (i32.const 0) (local.get 1) (i32.const 256) (i32.const 260)))
            (drop (call $log (i32.const 2) (i32.load (i32.const 256)) (i32.load (i32.const 260))))
            (i32.eq (i32.load8_u (i32.load (i32.const 256))) (i32.const 123)))"#;
    let mut vm = Vm::start(&guest(&imports, rest), Host::default()).unwrap();
    assert_eq!((vm.configure(b"{}").unwrap(), vm.root()), (true, 1));
    let (old, _) = vm.request(headers([(":path", "/")]), true).unwrap();
    assert_eq!((vm.configure(b"no").unwrap(), vm.root()), (false, 1));
    assert_eq!((vm.configure(b"{1}").unwrap(), vm.root()), (true, 4));
    vm.finish(1).unwrap();
    vm.finish(old).unwrap();
    let log: Vec<_> = [1, 3, 4].map(|root| vm.transcript().of(root)).concat();
    let line = |text: &str| Effect::Log { level: LogLevel::Info, text: text.to_owned() };
    assert_eq!(log, ["{}", "no", "{1}"].map(line));
}
