//! Bindings to the part of proxy-wasm ABI 0.2.1 that the filter uses. This is the only unsafe code
//! of the workspace.
//!
//! Every host call returns a `Result` for any status that the host returns, and every exported
//! function accepts any context id in any order. The official SDK panics in both cases, and after a
//! panic Envoy would answer every probe of the Pod with 503.

#![expect(unsafe_code, reason = "the ABI passes pointers")]

use std::cell::RefCell;

use crate::decision::CalloutSize;
use crate::host;

/// A status other than `Ok` that a host call returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) u32);

pub(crate) type Result<T> = std::result::Result<T, Status>;

const NOT_FOUND: Status = Status(1);

/// Header maps, numbered as in the ABI.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum HeaderMap {
    Request = 0,
    Response = 2,
    CallHeaders = 6,
    CallTrailers = 7,
}

/// Buffers, numbered as in the ABI.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum BufferType {
    ResponseBody = 1,
    CallBody = 4,
    PluginConfiguration = 7,
}

/// MetricType types, numbered as in the ABI.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum MetricType {
    Counter = 0,
    Gauge = 1,
}

/// Log levels, numbered as in the ABI.
#[derive(Clone, Copy, Debug)]
#[repr(u32)]
pub(crate) enum LogLevel {
    Info = 2,
    Warn = 3,
    Error = 4,
}

/// The return value of a stream callback.
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
    /// The buffer that the host allocated last. A host call allocates at most one.
    static ALLOCATED: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Allocates `size` bytes, into which the host writes a result. Returns null if the allocation
/// fails.
#[unsafe(no_mangle)]
extern "C" fn proxy_on_memory_allocate(size: usize) -> *mut u8 {
    let mut bytes: Vec<u8> = Vec::new();
    if bytes.try_reserve_exact(size.max(1)).is_err() {
        return std::ptr::null_mut();
    }
    bytes.resize(size, 0);
    let pointer = bytes.as_mut_ptr();
    let kept = ALLOCATED.try_with(|handed| handed.try_borrow_mut().map(|mut handed| *handed = bytes));
    if matches!(kept, Ok(Ok(()))) { pointer } else { std::ptr::null_mut() }
}

/// Takes the buffer that the host allocated at `pointer`, truncated to `size`. Returns no bytes if
/// `pointer` is not the last allocated buffer.
fn take_allocated(pointer: *mut u8, size: usize) -> Vec<u8> {
    let taken =
        ALLOCATED.try_with(|handed| handed.try_borrow_mut().map(|mut handed| std::mem::take(&mut *handed)));
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

/// Runs a host call that returns bytes in an allocated buffer.
fn read(call: impl FnOnce(&mut *mut u8, &mut usize) -> u32) -> Result<Vec<u8>> {
    let (mut pointer, mut size) = (std::ptr::null_mut(), 0);
    check(call(&mut pointer, &mut size))?;
    Ok(take_allocated(pointer, size))
}

/// Turns the status `NotFound` into `None`.
fn optional<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(NOT_FOUND) => Ok(None),
        Err(status) => Err(status),
    }
}

/// Writes a line to Envoy's log. Errors are ignored, because there is no other place to report
/// them.
pub(crate) fn log(level: LogLevel, text: &str) {
    // SAFETY: the host reads `text.len()` bytes at `text` during the call.
    let _ = unsafe { proxy_log(level as u32, text.as_ptr(), text.len()) };
}

/// Returns the wall clock time in nanoseconds since 1970.
pub(crate) fn now() -> Result<u64> {
    let mut time = 0;
    // SAFETY: the host writes eight bytes at `time` during the call.
    check(unsafe { proxy_get_current_time_nanoseconds(&raw mut time) })?;
    Ok(time)
}

/// Returns an Envoy attribute. The parts of `path` are separated by NUL.
pub(crate) fn property(path: &str) -> Result<Option<Vec<u8>>> {
    // SAFETY: the host reads `path` and writes pointer and size during the call.
    optional(read(|value, size| unsafe { proxy_get_property(path.as_ptr(), path.len(), value, size) }))
}

/// Returns at most `max_size` bytes from the start of a buffer.
pub(crate) fn buffer(buffer: BufferType, max_size: usize) -> Result<Vec<u8>> {
    // SAFETY: the host writes pointer and size during the call.
    let bytes =
        read(|bytes, size| unsafe { proxy_get_buffer_bytes(buffer as u32, 0, max_size, bytes, size) });
    Ok(optional(bytes)?.unwrap_or_default())
}

/// Replaces the first `length` bytes of a buffer by `bytes`.
pub(crate) fn set_buffer(buffer: BufferType, length: usize, bytes: &[u8]) -> Result<()> {
    // SAFETY: the host reads `bytes` during the call.
    check(unsafe { proxy_set_buffer_bytes(buffer as u32, 0, length, bytes.as_ptr(), bytes.len()) })
}

pub(crate) fn header(map: HeaderMap, name: &str) -> Result<Option<Vec<u8>>> {
    // SAFETY: the host reads `name` and writes pointer and size during the call.
    optional(read(|value, size| unsafe {
        proxy_get_header_map_value(map as u32, name.as_ptr(), name.len(), value, size)
    }))
}

/// Replaces a whole header map. `pairs` is serialized by `encoding::pairs`.
pub(crate) fn set_headers(map: HeaderMap, pairs: &[u8]) -> Result<()> {
    // SAFETY: the host reads `pairs` during the call.
    check(unsafe { proxy_set_header_map_pairs(map as u32, pairs.as_ptr(), pairs.len()) })
}

/// Calls an Envoy foreign function and discards its result.
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

/// Sends a local reply for the request of the current stream.
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

/// Starts an HTTP callout and returns its token. `pairs` is serialized by `encoding::pairs`.
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

/// Resets the downstream stream.
pub(crate) fn reset_request() -> Result<()> {
    // SAFETY: no memory is shared; 0 is the request's stream.
    check(unsafe { proxy_close_stream(0) })
}

/// Makes the following host calls act on the stream of `context`.
pub(crate) fn set_effective_context(context: u32) -> Result<()> {
    // SAFETY: no memory is shared.
    check(unsafe { proxy_set_effective_context(context) })
}

/// Defines a metric and returns its id.
pub(crate) fn define_metric(kind: MetricType, name: &str) -> Result<u32> {
    let mut id = 0;
    // SAFETY: the host reads `name` and writes the id during the call.
    check(unsafe { proxy_define_metric(kind as u32, name.as_ptr(), name.len(), &raw mut id) })?;
    Ok(id)
}

pub(crate) fn increment(id: u32) -> Result<()> {
    // SAFETY: no memory is shared.
    check(unsafe { proxy_increment_metric(id, 1) })
}

pub(crate) fn record(id: u32, value: u64) -> Result<()> {
    // SAFETY: no memory is shared.
    check(unsafe { proxy_record_metric(id, value) })
}

/// Envoy recognizes the ABI version by this exported name.
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
    body: usize,
    trailers: usize,
) {
    host::on_call_response(context, token, CalloutSize { headers, body, trailers });
}

#[unsafe(no_mangle)]
extern "C" fn proxy_on_delete(context: u32) {
    host::on_delete(context);
}
