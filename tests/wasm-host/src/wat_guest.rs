//! Guests in WAT with which the harness tests itself. The test guest has an export for each
//! host call, which passes its arguments on (the first one is the context) and returns the status.

use super::{Filter, Host, Vm};

/// The status Ok as a guest receives it.
pub const OK: i32 = 0;
pub const NOT_FOUND: i32 = 1;
pub const BAD_ARGUMENT: i32 = 2;
pub const INVALID_MEMORY_ACCESS: i32 = 6;

/// The address and size of the text `name` in the memory of the test guest.
pub const NAME: [i32; 2] = [16, 4];
/// The address and size of a serialized map: `name: \xff\0\x80`.
pub const PAIRS: [i32; 2] = [32, 21];
/// The address and size of the headers of a callout.
pub const CALLOUT: [i32; 2] = [64, 67];
/// The address to which a call writes its result; the size follows after 4 bytes.
pub const RESULT: i32 = 256;
/// These values as data segments.
pub const DATA: &str = r#"
    (data (i32.const 16) "name")
    (data (i32.const 32) "\01\00\00\00\04\00\00\00\03\00\00\00" "name\00" "\ff\00\80\00")
    (data (i32.const 64) "\03\00\00\00" "\07\00\00\00\03\00\00\00" "\05\00\00\00\01\00\00\00" "\0a\00\00\00\07\00\00\00"
        ":method\00GET\00" ":path\00/\00" ":authority\00a.b:100\00")"#;

/// The number of parameters of each host call; the last one of the metric calls is 64 bits wide.
pub const CALLS: [(&str, usize); 15] = [
    ("proxy_log", 3),
    ("proxy_get_buffer_bytes", 5),
    ("proxy_set_buffer_bytes", 5),
    ("proxy_get_header_map_value", 5),
    ("proxy_set_header_map_pairs", 3),
    ("proxy_get_property", 4),
    ("proxy_call_foreign_function", 6),
    ("proxy_send_local_response", 8),
    ("proxy_http_call", 10),
    ("proxy_define_metric", 4),
    ("proxy_increment_metric", 2),
    ("proxy_record_metric", 2),
    ("proxy_get_current_time_nanoseconds", 1),
    ("proxy_close_stream", 1),
    ("proxy_set_effective_context", 1),
];

/// The import of the log call, for other guests.
pub const LOG: &str = r#"(import "env" "proxy_log" (func $log (param i32 i32 i32) (result i32)))"#;

/// Compiles a guest of ABI 0.2.1 with one page of memory, an allocator that never frees, and these
/// parts.
pub fn guest(imports: &str, rest: &str) -> Filter {
    let text = format!(
        r#"(module {imports}
            (memory (export "memory") 1)
            (global $free (mut i32) (i32.const 4096))
            (func (export "proxy_abi_version_0_2_1"))
            (func (export "proxy_on_memory_allocate") (param $size i32) (result i32)
                (global.get $free) (global.set $free (i32.add (global.get $free) (local.get $size))))
            {rest})"#
    );
    Filter::from_bytes(text.as_bytes()).expect("a guest that production accepts")
}

/// Starts the test guest, which pauses in every callback, so that headers and chunks stay accessible to the
/// calls of a test.
pub fn start_test_guest(host: Host) -> Vm {
    let (mut imports, mut exports) = (String::new(), String::new());
    for (name, parameters) in CALLS {
        let wide = |i| i == 2 && ["proxy_increment_metric", "proxy_record_metric"].contains(&name);
        let types: Vec<_> = (1..=parameters).map(|i| if wide(i) { "i64" } else { "i32" }).collect();
        let pass = |i| {
            if wide(i) { format!("(i64.extend_i32_s (local.get {i}))") } else { format!("(local.get {i})") }
        };
        let passed: String = (1..=parameters).map(pass).collect();
        let all = "i32 ".repeat(parameters + 1);
        imports +=
            &format!("(import \"env\" \"{name}\" (func ${name} (param {}) (result i32)))\n", types.join(" "));
        exports +=
            &format!("(func (export \"{name}\") (param {all}) (result i32) (call ${name} {passed}))\n");
    }
    for callback in ["request_headers", "response_headers", "response_body"] {
        exports += &format!(
            "(func (export \"proxy_on_{callback}\") (param i32 i32 i32) (result i32) (i32.const 1))\n"
        );
    }
    Vm::start(&guest(&imports, &(exports + DATA)), host).expect("the test guest starts")
}

/// Makes one host call of the test guest and returns its status.
pub fn call<const N: usize>(vm: &mut Vm, name: &str, context: u32, arguments: [i32; N]) -> i32 {
    let arguments = [&[context.cast_signed()], &arguments[..]].concat();
    vm.call(name, &arguments).expect("no trap").expect("the test guest has that export")
}

/// Returns the bytes that the last call returned.
pub fn last_result(vm: &Vm) -> Vec<u8> {
    vm.memory(number(vm, RESULT), number(vm, RESULT + 4)).expect("the host returned a valid address").to_vec()
}

/// Reads the first header `name` of a map and returns the status.
pub fn get_header(vm: &mut Vm, context: u32, map: i32) -> i32 {
    call(vm, "proxy_get_header_map_value", context, [map, NAME[0], NAME[1], RESULT, RESULT + 4])
}

/// Sends a callout to the cluster `name` and returns the status.
pub fn http_call(vm: &mut Vm, context: u32, timeout_ms: i32) -> i32 {
    let [name, size] = NAME;
    call(vm, "proxy_http_call", context, [name, size, CALLOUT[0], CALLOUT[1], 0, 0, 0, 0, timeout_ms, RESULT])
}

/// Returns the token or ID that the last call returned.
pub fn token(vm: &Vm) -> u32 {
    number(vm, RESULT)
}

fn number(vm: &Vm, at: i32) -> u32 {
    let bytes = vm.memory(at.cast_unsigned(), 4).expect("inside the first page");
    u32::from_le_bytes(bytes.try_into().expect("4 bytes"))
}
