//! Tests of the Wasm host itself, with small guests in WAT. Unit tests next to its modules cover
//! the result of each host call.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, SystemTime};

use wasm_host::transcript::{Effect, headers};
use wasm_host::wat_guest::{
    BAD_ARGUMENT, LOG, NAME, NOT_FOUND, OK, PAIRS, RESULT, call, get_header, guest, http_call, last_result,
    start_test_guest, token,
};
use wasm_host::{
    ALLOWED, Action, CALLBACKS, Fault, Filter, FilterFile, Host, LoadError, Status, Vm, VmError, check_fresh,
};

#[test]
fn a_trap_is_reported_with_the_last_log_lines_and_ends_the_vm() {
    let guest = guest(
        LOG,
        r#"(data (i32.const 0) "so far so good")
        (func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
            (drop (call $log (i32.const 3) (i32.const 0) (i32.const 14))) unreachable)"#,
    );
    let mut vm = Vm::start(&guest, Host::default()).unwrap();
    let error = vm.request(headers([(":path", "/")]), true).unwrap_err();
    assert_eq!(
        error.to_string(),
        "proxy_on_request_headers trapped: wasm trap: wasm `unreachable` instruction executed; \
         last log lines: [(Warn, \"so far so good\")]"
    );
    assert!(matches!(vm.request(headers([(":path", "/")]), true), Err(VmError::Dead { .. })));
    assert_eq!(vm.traps, 1);
}

#[test]
fn fuel_stops_an_endless_loop() {
    let guest = guest("", r#"(func (export "spin") (loop $l (br $l))) (func (export "rest"))"#);
    let mut vm = Vm::start(&guest, Host { fuel: 10_000, ..Host::default() }).unwrap();
    vm.call("rest", &[]).unwrap();
    assert!(vm.fuel_used() < 20, "{}", vm.fuel_used());
    let error = vm.call("spin", &[]).unwrap_err().to_string();
    assert!(error.starts_with("spin trapped: out of fuel after 10000 units"), "{error}");
}

#[test]
fn a_module_that_envoy_would_not_run_is_rejected() {
    let load = |text: &str| Filter::from_bytes(text.as_bytes()).unwrap_err().to_string();
    let imports = r#"(module (import "env" "proxy_log" (func))
        (import "wasi_snapshot_preview1" "fd_write" (func)))"#;
    assert_eq!(load(imports), "imports = wasi_snapshot_preview1.fd_write: not of the module env");
    assert_eq!(load("(module)"), "export = proxy_abi_version_0_2_1: missing");
    let signature = r#"(module (import "env" "proxy_log" (func)) (func (export "proxy_abi_version_0_2_1")))"#;
    assert!(load(signature).contains("incompatible import type for `env::proxy_log`"), "{}", load(signature));
    let module = Filter::from_bytes(br#"(module (func (export "proxy_abi_version_0_2_1")))"#).unwrap();
    let error = Vm::start(&module, Host::default()).unwrap_err().to_string();
    assert!(error.contains("exports = memory, malloc or proxy_on_memory_allocate: missing"), "{error}");
}

#[test]
fn a_restricted_call_fails() {
    let guest = guest(
        r#"(import "env" "proxy_done" (func $done (result i32)))"#,
        r#"(func (export "ask") (result i32) (call $done))"#,
    );
    let mut vm = Vm::start(&guest, Host::default()).unwrap();
    assert_eq!(vm.call("ask", &[]).unwrap(), Some(Status::InternalFailure as i32));
}

#[test]
fn callbacks_that_a_module_does_not_export_are_skipped() {
    let mut vm = Vm::start(&guest("", ""), Host::default()).unwrap();
    assert!(vm.configure(b"{}").unwrap());
    let (context, action) = vm.request(headers([(":path", "/")]), true).unwrap();
    assert_eq!(action, Action::Continue);
    assert_eq!(vm.response(context, headers([(":status", "200")]), false).unwrap(), Action::Continue);
    assert_eq!(vm.response_body(context, b"body", true).unwrap(), Action::Continue);
    let stream = vm.stream(context).unwrap();
    assert_eq!((stream.status().as_deref(), &stream.sent_body[..]), (Some("200"), &b"body"[..]));
    vm.finish(context).unwrap();
    assert!(vm.stream(context).is_none());
    assert_eq!(vm.host().calls.total(), 0);
}

#[test]
fn planned_faults_reach_the_guest() {
    let mut vm = start_test_guest(Host { clusters: ["name".to_owned()].into(), ..Host::default() });
    let (c, _) = vm.request(headers([("Name", "value")]), true).unwrap();
    let name = "proxy_get_header_map_value";
    vm.host_mut().fault_nth(name, 2, Fault::Status(99));
    assert_eq!([0; 3].map(|map| get_header(&mut vm, c, map)), [OK, 99, OK]);
    vm.host_mut().fault(name, Fault::Value(b"\xff\xfe".to_vec()));
    assert_eq!((get_header(&mut vm, c, 0), last_result(&vm)), (OK, b"\xff\xfe".to_vec()));
    vm.host_mut().clear_faults();
    assert_eq!((get_header(&mut vm, c, 0), last_result(&vm)), (OK, b"value".to_vec()));
    vm.host_mut().fault("proxy_http_call", Fault::Id(u32::MAX));
    assert_eq!((http_call(&mut vm, c, 1), token(&vm)), (OK, u32::MAX));
    vm.host_mut().fault("proxy_log", Fault::Trap);
    let error = vm.call("proxy_log", &[0, 2, 0, 0]).unwrap_err().to_string();
    assert!(error.starts_with("proxy_log trapped: planned trap in proxy_log"), "{error}");
}

#[test]
fn parallel_vms_are_independent() {
    let run = |now: u64| {
        let mut vm = start_test_guest(Host { now: Duration::from_nanos(now), ..Host::default() });
        let (c, _) = vm.request(headers([("name", now.to_string())]), true).unwrap();
        for _ in 0..now {
            assert_eq!(call(&mut vm, "proxy_get_current_time_nanoseconds", c, [RESULT]), OK);
            assert_eq!(vm.memory(256, 8).unwrap(), now.to_le_bytes());
            assert_eq!(call(&mut vm, "proxy_log", c, [2, NAME[0], NAME[1]]), OK);
        }
        assert_eq!((get_header(&mut vm, c, 0), last_result(&vm)), (OK, now.to_string().into_bytes()));
        (vm.transcript().log().len(), vm.host().calls.total())
    };
    let counts = thread::scope(|scope| {
        let vms: Vec<_> = [10, 30, 20].map(|now| scope.spawn(move || run(now))).into();
        vms.into_iter().map(|vm| vm.join().unwrap()).collect::<Vec<_>>()
    });
    assert_eq!(counts, [(10, 21), (30, 61), (20, 41)]);
}

#[test]
fn header_values_are_bytes_in_both_directions() {
    let mut vm = start_test_guest(Host::default());
    let (c, _) = vm.request(headers([("name", &b"\xff\x80"[..]), ("NAME", b"second")]), true).unwrap();
    assert_eq!(
        (get_header(&mut vm, c, 0), last_result(&vm)),
        (OK, b"\xff\x80".to_vec()),
        "only the first value, values are not joined"
    );
    assert_eq!(call(&mut vm, "proxy_set_header_map_pairs", c, [0, PAIRS[0], PAIRS[1]]), OK);
    assert_eq!((get_header(&mut vm, c, 0), last_result(&vm)), (OK, b"\xff\x00\x80".to_vec()));
    let set = headers([("name", b"\xff\x00\x80")]);
    assert_eq!(vm.stream(c).unwrap().request_headers, set);
    assert_eq!(vm.transcript().of(c), [Effect::RequestHeadersSet(set)]);
    assert_eq!(
        call(&mut vm, "proxy_set_header_map_pairs", c, [0, PAIRS[0], PAIRS[1] - 1]),
        OK,
        "an invalid map is read as an empty one"
    );
    assert_eq!(get_header(&mut vm, c, 0), NOT_FOUND);
}

#[test]
fn headers_are_accessible_only_in_their_own_phase() {
    let mut vm = start_test_guest(Host::default());
    let (c, _) = vm.request(headers([("name", "request")]), true).unwrap();
    let root = vm.root();
    let phases = |vm: &mut Vm, c| [0, 1, 2, 3, 4, 5, 6, 7, 8].map(|map| get_header(vm, c, map));
    assert_eq!(phases(&mut vm, c), [OK, 2, 2, 2, 2, 2, 2, 2, BAD_ARGUMENT]);
    assert_eq!(phases(&mut vm, root), [BAD_ARGUMENT; 9]);
    assert_eq!(phases(&mut vm, 77), [BAD_ARGUMENT; 9], "a context that does not exist");
    assert_eq!(call(&mut vm, "proxy_set_header_map_pairs", c, [2, PAIRS[0], PAIRS[1]]), BAD_ARGUMENT);
    assert_eq!(vm.response(c, headers([(":status", "503")]), false).unwrap(), Action::Pause);
    assert_eq!(get_header(&mut vm, c, 2), NOT_FOUND);
    assert_eq!(call(&mut vm, "proxy_set_header_map_pairs", c, [2, PAIRS[0], PAIRS[1]]), OK);
    assert_eq!(get_header(&mut vm, c, 2), OK);
}

/// A temporary directory that is removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("app-health-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Creates a file whose modification time is `seconds` after a fixed moment.
    fn file(&self, name: &str, seconds: u64) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + seconds);
        File::create(&path).unwrap().set_modified(changed).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_stale_or_missing_wasm_is_rejected() {
    let folder = Folder::new("stale");
    let wasm = folder.file("filter.wasm", 10);
    let sources = [folder.0.join("src"), folder.file("Cargo.toml", 10)];
    folder.file("src/lib.rs", 9);
    check_fresh(&wasm, &sources).unwrap();
    let newer = folder.file("src/deep/host.rs", 11);
    let Err(LoadError::Stale { newer: found, .. }) = check_fresh(&wasm, &sources) else {
        panic!("not refused")
    };
    assert_eq!(found, newer);
    let file = FilterFile { wasm, sources: sources.to_vec(), compiled: folder.0.join("compiled") };
    let error = Filter::from_file(&file).unwrap_err().to_string();
    assert!(error.ends_with("src/deep/host.rs; run ./justw wasm to build the filter"), "{error}");
    let missing = FilterFile { wasm: folder.0.join("other.wasm"), ..file };
    let error = Filter::from_file(&missing).unwrap_err().to_string();
    assert!(error.ends_with("other.wasm cannot be read; run ./justw wasm to build the filter"), "{error}");
    let gone = [folder.0.join("gone")];
    assert!(
        matches!(check_fresh(&folder.file("x.wasm", 0), &gone), Err(LoadError::Read { .. })),
        "a source is gone"
    );
}

/// The host of these tests restricts the filter as the shipped configuration does.
#[test]
fn the_allow_list_is_the_shipped_one() {
    let template = concat!(env!("CARGO_MANIFEST_DIR"), "/../../envoy-config/bootstrap.yaml");
    let template = std::fs::read_to_string(template).expect("the template is there");
    let shipped: BTreeSet<&str> = template
        .lines()
        .filter_map(|line| Some(line.trim_start().split_once(": {}")?.0))
        .filter(|name| name.starts_with("proxy_"))
        .collect();
    assert_eq!(shipped, CALLBACKS.into_iter().chain(ALLOWED).collect());
}
