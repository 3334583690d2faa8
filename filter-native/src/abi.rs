//! The part of Envoy's ABI for dynamic modules, `abi.h` of version 0.1.0 (Envoy 1.39) and 0.2.0
//! (Envoy 1.40), that the module uses. Both versions have every function here with this signature.
//!
//! Envoy copies what it is given during a call. What it returns is valid until the next call that
//! changes the same map or body, so everything is copied here at once.

#![expect(unsafe_code, reason = "the ABI passes pointers")]

mod config;
mod filter;

use std::ffi::{CStr, c_void};
use std::ptr;

pub(crate) use config::EnvoyConfig;
pub(crate) use filter::EnvoyFilter;

/// The version of the ABI. Envoy loads a module of any version, and logs a warning unless it is its
/// own.
pub(crate) const VERSION: &CStr = c"v0.2.0";

/// A text of the module, or of Envoy. `data` may be null if `size` is 0.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Buffer {
    data: *const u8,
    size: usize,
}

/// A header of the module, or of Envoy.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Header {
    name: Buffer,
    value: Buffer,
}

impl Buffer {
    const EMPTY: Self = Self { data: ptr::null(), size: 0 };

    fn new(bytes: &[u8]) -> Self {
        Self { data: bytes.as_ptr(), size: bytes.len() }
    }

    /// Copies the bytes.
    ///
    /// # Safety
    /// The buffer is valid, as any buffer is during the hook in which Envoy passed it.
    pub(crate) unsafe fn to_vec(self) -> Vec<u8> {
        // SAFETY: the caller guarantees it.
        unsafe { array(self.data, self.size) }
    }
}

/// Copies an array of Envoy.
///
/// # Safety
/// `items` points to `count` items that are valid, or `count` is 0.
unsafe fn array<T: Copy>(items: *const T, count: usize) -> Vec<T> {
    if items.is_null() || count == 0 {
        return Vec::new();
    }
    // SAFETY: the caller guarantees it.
    unsafe { std::slice::from_raw_parts(items, count) }.to_vec()
}

/// Header names and values, in their order.
pub(crate) type Headers = Vec<(Vec<u8>, Vec<u8>)>;

/// Copies headers of Envoy.
///
/// # Safety
/// `headers` points to `count` headers that are valid, or `count` is 0.
pub(crate) unsafe fn copy_headers(headers: *const Header, count: usize) -> Headers {
    // SAFETY: the caller guarantees it, and a valid header consists of valid buffers.
    unsafe {
        array(headers, count).iter().map(|header| (header.name.to_vec(), header.value.to_vec())).collect()
    }
}

/// Copies the chunks of a body of Envoy.
///
/// # Safety
/// `chunks` points to `count` buffers that are valid, or `count` is 0.
pub(crate) unsafe fn copy_chunks(chunks: *const Buffer, count: usize) -> Vec<Vec<u8>> {
    // SAFETY: the caller guarantees it.
    unsafe { array(chunks, count).into_iter().map(|chunk| chunk.to_vec()).collect() }
}

/// Header maps, numbered as in the ABI.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum HeaderMap {
    Request = 0,
    Response = 2,
}

/// The chunk of the response body that the current hook is about.
const RECEIVED_RESPONSE_BODY: u32 = 2;

/// Attributes, numbered as in the ABI.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum Attribute {
    ResponseCodeDetails = 16,
    SourceAddress = 24,
    UpstreamTransportFailureReason = 52,
}

/// Log levels, numbered as in the ABI.
#[derive(Clone, Copy)]
#[repr(u32)]
pub(crate) enum LogLevel {
    Info = 2,
    Warn = 3,
    Error = 4,
}

/// Why Envoy did not start an HTTP stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StartError(u32);

impl StartError {
    /// The circuit breaker of the cluster is open, or the connection failed at once.
    pub(crate) const CANNOT_CREATE: Self = Self(4);
}

/// Updates a counter or gauge with these label values.
type Update = unsafe extern "C" fn(*mut c_void, usize, *mut Buffer, usize, u64) -> u32;
/// Defines a counter or gauge with these label names.
type Define = unsafe extern "C" fn(*mut c_void, Buffer, *mut Buffer, usize, *mut usize) -> u32;

unsafe extern "C" {
    fn envoy_dynamic_module_callback_log(level: u32, text: Buffer);
    fn envoy_dynamic_module_callback_http_get_headers_size(filter: *mut c_void, map: u32) -> usize;
    fn envoy_dynamic_module_callback_http_get_headers(
        filter: *mut c_void,
        map: u32,
        headers: *mut Header,
    ) -> bool;
    fn envoy_dynamic_module_callback_http_get_header(
        filter: *mut c_void,
        map: u32,
        name: Buffer,
        value: *mut Buffer,
        index: usize,
        count: *mut usize,
    ) -> bool;
    fn envoy_dynamic_module_callback_http_set_header(
        filter: *mut c_void,
        map: u32,
        name: Buffer,
        value: Buffer,
    ) -> bool;
    fn envoy_dynamic_module_callback_http_add_header(
        filter: *mut c_void,
        map: u32,
        name: Buffer,
        value: Buffer,
    ) -> bool;
    fn envoy_dynamic_module_callback_http_set_filter_state_typed(
        filter: *mut c_void,
        key: Buffer,
        value: Buffer,
    ) -> bool;
    fn envoy_dynamic_module_callback_http_clear_route_cache(filter: *mut c_void);
    fn envoy_dynamic_module_callback_http_filter_get_attribute_string(
        filter: *mut c_void,
        attribute: u32,
        value: *mut Buffer,
    ) -> bool;
    fn envoy_dynamic_module_callback_http_send_response(
        filter: *mut c_void,
        status: u32,
        headers: *mut Header,
        headers_count: usize,
        body: Buffer,
        details: Buffer,
    );
    fn envoy_dynamic_module_callback_http_filter_reset_stream(
        filter: *mut c_void,
        reason: u32,
        details: Buffer,
    );
    fn envoy_dynamic_module_callback_http_get_body_size(filter: *mut c_void, body: u32) -> usize;
    fn envoy_dynamic_module_callback_http_drain_body(filter: *mut c_void, body: u32, size: usize) -> bool;
    fn envoy_dynamic_module_callback_http_append_body(filter: *mut c_void, body: u32, data: Buffer) -> bool;
    fn envoy_dynamic_module_callback_http_filter_start_http_stream(
        filter: *mut c_void,
        stream: *mut u64,
        cluster: Buffer,
        headers: *mut Header,
        headers_count: usize,
        body: Buffer,
        end_of_stream: bool,
        timeout_ms: u64,
    ) -> u32;
    fn envoy_dynamic_module_callback_http_filter_reset_http_stream(filter: *mut c_void, stream: u64);
    fn envoy_dynamic_module_callback_http_filter_config_define_counter(
        config: *mut c_void,
        name: Buffer,
        labels: *mut Buffer,
        labels_count: usize,
        id: *mut usize,
    ) -> u32;
    fn envoy_dynamic_module_callback_http_filter_config_define_gauge(
        config: *mut c_void,
        name: Buffer,
        labels: *mut Buffer,
        labels_count: usize,
        id: *mut usize,
    ) -> u32;
    fn envoy_dynamic_module_callback_http_filter_increment_counter(
        filter: *mut c_void,
        id: usize,
        labels: *mut Buffer,
        labels_count: usize,
        by: u64,
    ) -> u32;
    fn envoy_dynamic_module_callback_http_filter_set_gauge(
        filter: *mut c_void,
        id: usize,
        labels: *mut Buffer,
        labels_count: usize,
        value: u64,
    ) -> u32;
    fn envoy_dynamic_module_callback_http_filter_config_increment_counter(
        config: *mut c_void,
        id: usize,
        labels: *mut Buffer,
        labels_count: usize,
        by: u64,
    ) -> u32;
    fn envoy_dynamic_module_callback_http_filter_config_increment_gauge(
        config: *mut c_void,
        id: usize,
        labels: *mut Buffer,
        labels_count: usize,
        by: u64,
    ) -> u32;
    fn envoy_dynamic_module_callback_http_filter_config_set_gauge(
        config: *mut c_void,
        id: usize,
        labels: *mut Buffer,
        labels_count: usize,
        value: u64,
    ) -> u32;
}

/// Writes a line to Envoy's log, under the name `dynamic_modules`.
pub(crate) fn log(level: LogLevel, text: &str) {
    // SAFETY: Envoy reads the text during the call, on any thread.
    unsafe { envoy_dynamic_module_callback_log(level as u32, Buffer::new(text.as_bytes())) }
}

/// Calls an update function. Its result is ignored: nothing can be done about an unknown metric.
///
/// # Safety
/// `envoy` is the pointer that Envoy passed to the current hook, and of the kind that `update` expects.
unsafe fn update<'a>(
    update: Update,
    envoy: *mut c_void,
    id: usize,
    labels: impl Iterator<Item = &'a str>,
    value: u64,
) {
    let mut labels: Vec<Buffer> = labels.map(|label| Buffer::new(label.as_bytes())).collect();
    // SAFETY: the caller guarantees it; the labels live longer than the call.
    let _ = unsafe { update(envoy, id, labels.as_mut_ptr(), labels.len(), value) };
}
