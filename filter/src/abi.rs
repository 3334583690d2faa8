//! The boundary to Envoy: proxy-wasm ABI 0.2.1, as much of it as we use. The only unsafe code of the workspace.
//!
//! Every host call returns a `Result`, whatever status the host invents; every export takes any context id in any
//! order. The official SDK panics on both, and a panic here would answer every probe of the pod with 503.

#![expect(unsafe_code, reason = "pointers cross the boundary; nothing else in the workspace needs it")]

use std::cell::RefCell;

use crate::host;

/// A status of the host that is not `Ok`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) u32);

/// What a host call gives.
pub(crate) type Result<T> = std::result::Result<T, Status>;

const NOT_FOUND: Status = Status(1);

/// Header maps, by the numbers of the ABI.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum Map {
    Request = 0,
    Response = 2,
    CallHeaders = 6,
    CallTrailers = 7,
}

/// Buffers, by the numbers of the ABI.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum Buffer {
    ResponseBody = 1,
    CallBody = 4,
    PluginConfiguration = 7,
}

/// Kinds of metrics, by the numbers of the ABI.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum Metric {
    Counter = 0,
    Gauge = 1,
}

/// Levels of the log, by the numbers of the ABI.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum Level {
    Info = 2,
    Warn = 3,
    Error = 4,
}

/// What there is of a callout's answer; no headers for a callout that failed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallSize {
    pub(crate) headers: usize,
    pub(crate) body_size: usize,
    pub(crate) trailers: usize,
}

/// What a callback tells Envoy.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum Action {
    Continue = 0,
    Pause = 1,
}

#[link(wasm_import_module = "env")]
unsafe extern "C" {
    fn proxy_log(level: u32, text: *const u8, size: usize) -> u32;
    fn proxy_get_current_time_nanoseconds(time: *mut u64) -> u32;
    fn proxy_get_property(path: *const u8, size: usize, value: *mut *mut u8, value_size: *mut usize) -> u32;
    fn proxy_get_buffer_bytes(
        buffer: u32,
        start: usize,
        max_size: usize,
        bytes: *mut *mut u8,
        size: *mut usize,
    ) -> u32;
    fn proxy_set_buffer_bytes(buffer: u32, start: usize, length: usize, bytes: *const u8, size: usize)
    -> u32;
    fn proxy_get_header_map_value(
        map: u32,
        name: *const u8,
        name_size: usize,
        value: *mut *mut u8,
        value_size: *mut usize,
    ) -> u32;
    fn proxy_set_header_map_pairs(map: u32, pairs: *const u8, size: usize) -> u32;
    fn proxy_call_foreign_function(
        name: *const u8,
        name_size: usize,
        argument: *const u8,
        argument_size: usize,
        result: *mut *mut u8,
        result_size: *mut usize,
    ) -> u32;
    fn proxy_send_local_response(
        status: u32,
        details: *const u8,
        details_size: usize,
        body: *const u8,
        body_size: usize,
        headers: *const u8,
        headers_size: usize,
        grpc_status: i32,
    ) -> u32;
    fn proxy_http_call(
        cluster: *const u8,
        cluster_size: usize,
        headers: *const u8,
        headers_size: usize,
        body: *const u8,
        body_size: usize,
        trailers: *const u8,
        trailers_size: usize,
        timeout_ms: u32,
        token: *mut u32,
    ) -> u32;
    fn proxy_close_stream(stream: u32) -> u32;
    fn proxy_set_effective_context(context: u32) -> u32;
    fn proxy_define_metric(kind: u32, name: *const u8, size: usize, id: *mut u32) -> u32;
    fn proxy_increment_metric(id: u32, by: i64) -> u32;
    fn proxy_record_metric(id: u32, value: u64) -> u32;
}

thread_local! {
    /// The buffer that the host asked for last. A host call hands over one at most.
    static HANDED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// The host asks for `size` bytes, to hand something over in them; null when there are none.
#[unsafe(no_mangle)]
extern "C" fn proxy_on_memory_allocate(size: usize) -> *mut u8 {
    let mut bytes: Vec<u8> = Vec::new();
    if bytes.try_reserve_exact(size.max(1)).is_err() {
        return std::ptr::null_mut();
    }
    bytes.resize(size, 0);
    let pointer = bytes.as_mut_ptr();
    let kept = HANDED.try_with(|handed| handed.try_borrow_mut().map(|mut handed| *handed = bytes));
    if matches!(kept, Ok(Ok(()))) { pointer } else { std::ptr::null_mut() }
}

/// The bytes that the host handed over at `pointer`; nothing where it handed over nothing.
fn taken(pointer: *mut u8, size: usize) -> Vec<u8> {
    let taken =
        HANDED.try_with(|handed| handed.try_borrow_mut().map(|mut handed| std::mem::take(&mut *handed)));
    match taken {
        Ok(Ok(mut bytes)) if bytes.as_ptr() == pointer.cast_const() => {
            bytes.truncate(size);
            bytes
        }
        _ => Vec::new(),
    }
}

fn check(status: u32) -> Result<()> {
    if status == 0 { Ok(()) } else { Err(Status(status)) }
}

/// Runs a call that hands over bytes.
fn read(call: impl FnOnce(&mut *mut u8, &mut usize) -> u32) -> Result<Vec<u8>> {
    let (mut pointer, mut size) = (std::ptr::null_mut(), 0);
    check(call(&mut pointer, &mut size))?;
    Ok(taken(pointer, size))
}

/// Absent is no error.
fn optional<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(NOT_FOUND) => Ok(None),
        Err(status) => Err(status),
    }
}

/// Writes a line to Envoy's log. A log that fails has nowhere to say so.
pub(crate) fn log(level: Level, text: &str) {
    // SAFETY: the host reads `text.len()` bytes at `text` during the call.
    let _ = unsafe { proxy_log(level as u32, text.as_ptr(), text.len()) };
}

/// The wall clock, in nanoseconds since 1970.
pub(crate) fn now() -> Result<u64> {
    let mut time = 0;
    // SAFETY: the host writes eight bytes at `time` during the call.
    check(unsafe { proxy_get_current_time_nanoseconds(&raw mut time) })?;
    Ok(time)
}

/// A property, its path's parts joined by NUL.
pub(crate) fn property(path: &str) -> Result<Option<Vec<u8>>> {
    // SAFETY: the host reads `path` and writes pointer and size during the call.
    optional(read(|value, size| unsafe { proxy_get_property(path.as_ptr(), path.len(), value, size) }))
}

/// At most `max_size` bytes of a buffer.
pub(crate) fn buffer(buffer: Buffer, max_size: usize) -> Result<Vec<u8>> {
    // SAFETY: the host writes pointer and size during the call.
    let bytes =
        read(|bytes, size| unsafe { proxy_get_buffer_bytes(buffer as u32, 0, max_size, bytes, size) });
    Ok(optional(bytes)?.unwrap_or_default())
}

/// Puts `bytes` in the place of the first `length` bytes of a buffer.
pub(crate) fn set_buffer(buffer: Buffer, length: usize, bytes: &[u8]) -> Result<()> {
    // SAFETY: the host reads `bytes` during the call.
    check(unsafe { proxy_set_buffer_bytes(buffer as u32, 0, length, bytes.as_ptr(), bytes.len()) })
}

/// A header's value.
pub(crate) fn header(map: Map, name: &str) -> Result<Option<Vec<u8>>> {
    // SAFETY: the host reads `name` and writes pointer and size during the call.
    optional(read(|value, size| unsafe {
        proxy_get_header_map_value(map as u32, name.as_ptr(), name.len(), value, size)
    }))
}

/// Replaces a whole header map by serialised pairs.
pub(crate) fn set_headers(map: Map, pairs: &[u8]) -> Result<()> {
    // SAFETY: the host reads `pairs` during the call.
    check(unsafe { proxy_set_header_map_pairs(map as u32, pairs.as_ptr(), pairs.len()) })
}

/// Calls a function that Envoy offers by name; what it returns is not needed.
pub(crate) fn foreign_function(name: &str, argument: &[u8]) -> Result<()> {
    let result = read(|result, size| {
        // SAFETY: the host reads `name` and `argument` and writes pointer and size during the call.
        unsafe {
            proxy_call_foreign_function(
                name.as_ptr(),
                name.len(),
                argument.as_ptr(),
                argument.len(),
                result,
                size,
            )
        }
    });
    result.map(drop)
}

/// Answers the request in the application's place.
pub(crate) fn send_local_response(status: u16, details: &str, body: &str) -> Result<()> {
    let headers = 0u32.to_le_bytes();
    // SAFETY: the host reads the four texts during the call.
    check(unsafe {
        proxy_send_local_response(
            u32::from(status),
            details.as_ptr(),
            details.len(),
            body.as_ptr(),
            body.len(),
            headers.as_ptr(),
            headers.len(),
            -1,
        )
    })
}

/// Starts a callout with serialised pairs; its token.
pub(crate) fn http_call(cluster: &str, pairs: &[u8], body: &[u8], timeout_ms: u32) -> Result<u32> {
    let trailers = 0u32.to_le_bytes();
    let mut token = 0;
    // SAFETY: the host reads the four texts and writes the token during the call.
    check(unsafe {
        proxy_http_call(
            cluster.as_ptr(),
            cluster.len(),
            pairs.as_ptr(),
            pairs.len(),
            body.as_ptr(),
            body.len(),
            trailers.as_ptr(),
            trailers.len(),
            timeout_ms,
            &raw mut token,
        )
    })?;
    Ok(token)
}

/// Resets the caller's stream.
pub(crate) fn reset_request() -> Result<()> {
    // SAFETY: no memory is shared; 0 is the request's stream.
    check(unsafe { proxy_close_stream(0) })
}

/// Lets the next host calls act on the stream of `context`.
pub(crate) fn set_effective_context(context: u32) -> Result<()> {
    // SAFETY: no memory is shared.
    check(unsafe { proxy_set_effective_context(context) })
}

/// Defines a metric; its id.
pub(crate) fn define_metric(kind: Metric, name: &str) -> Result<u32> {
    let mut id = 0;
    // SAFETY: the host reads `name` and writes the id during the call.
    check(unsafe { proxy_define_metric(kind as u32, name.as_ptr(), name.len(), &raw mut id) })?;
    Ok(id)
}

/// Adds one to a counter.
pub(crate) fn increment(id: u32) -> Result<()> {
    // SAFETY: no memory is shared.
    check(unsafe { proxy_increment_metric(id, 1) })
}

/// Sets a gauge.
pub(crate) fn record(id: u32, value: u64) -> Result<()> {
    // SAFETY: no memory is shared.
    check(unsafe { proxy_record_metric(id, value) })
}

/// Tells the host which ABI this is.
#[unsafe(no_mangle)]
extern "C" fn proxy_abi_version_0_2_1() {}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_vm_start(_root: u32, _size: usize) -> u32 {
    1
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_context_create(context: u32, parent: u32) {
    host::on_create(context, parent);
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_configure(root: u32, size: usize) -> u32 {
    u32::from(host::on_configure(root, size))
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_request_headers(context: u32, _headers: usize, end_of_stream: u32) -> u32 {
    host::on_request_headers(context, end_of_stream != 0) as u32
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_response_headers(context: u32, _headers: usize, _end_of_stream: u32) -> u32 {
    host::on_response_headers(context) as u32
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_response_body(context: u32, size: usize, end_of_stream: u32) -> u32 {
    host::on_response_body(context, size, end_of_stream != 0) as u32
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_http_call_response(
    context: u32,
    token: u32,
    headers: usize,
    body_size: usize,
    trailers: usize,
) {
    host::on_call_response(context, token, CallSize { headers, body_size, trailers });
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_delete(context: u32) {
    host::on_delete(context);
}
