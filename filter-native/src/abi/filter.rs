//! What the module asks of Envoy for one HTTP stream.

use std::ffi::c_void;
use std::ptr;

use super::*;

/// Envoy's side of one HTTP stream.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct EnvoyFilter(*mut c_void);

/// Every call below is made in a hook of the stream, on its thread, with the pointer that Envoy passed
/// to the hook, and with buffers that live longer than the call.
impl EnvoyFilter {
    /// Returns the first value of a header.
    pub(crate) fn header(self, map: HeaderMap, name: &str) -> Option<Vec<u8>> {
        let mut value = Buffer::EMPTY;
        // SAFETY: see above.
        let found = unsafe {
            envoy_dynamic_module_callback_http_get_header(
                self.0,
                map as u32,
                Buffer::new(name.as_bytes()),
                &raw mut value,
                0,
                ptr::null_mut(),
            )
        };
        // SAFETY: Envoy returned the buffer, and nothing has changed the map since.
        found.then(|| unsafe { value.to_vec() })
    }

    /// Returns all headers of a map; none if Envoy does not have the map.
    pub(crate) fn headers(self, map: HeaderMap) -> Headers {
        // SAFETY: see above.
        let count = unsafe { envoy_dynamic_module_callback_http_get_headers_size(self.0, map as u32) };
        let mut headers = vec![Header { name: Buffer::EMPTY, value: Buffer::EMPTY }; count];
        // SAFETY: the array has as many elements as Envoy announced.
        let found = unsafe {
            envoy_dynamic_module_callback_http_get_headers(self.0, map as u32, headers.as_mut_ptr())
        };
        if !found {
            return Vec::new();
        }
        // SAFETY: Envoy has written the array, and nothing has changed the map since.
        unsafe { copy_headers(headers.as_ptr(), count) }
    }

    /// Replaces all values of a header; an empty value removes the header. Returns false if Envoy does
    /// not have the map.
    pub(crate) fn set_header(self, map: HeaderMap, name: &[u8], value: &[u8]) -> bool {
        // SAFETY: see above.
        unsafe {
            envoy_dynamic_module_callback_http_set_header(
                self.0,
                map as u32,
                Buffer::new(name),
                Buffer::new(value),
            )
        }
    }

    /// Adds a value, which must not be empty. Returns false if Envoy does not have the map.
    pub(crate) fn add_header(self, map: HeaderMap, name: &[u8], value: &[u8]) -> bool {
        // SAFETY: see above.
        unsafe {
            envoy_dynamic_module_callback_http_add_header(
                self.0,
                map as u32,
                Buffer::new(name),
                Buffer::new(value),
            )
        }
    }

    /// Sets a filter state that Envoy parses by its key. Returns false if Envoy rejects it.
    pub(crate) fn set_filter_state(self, key: &str, value: &str) -> bool {
        let (key, value) = (Buffer::new(key.as_bytes()), Buffer::new(value.as_bytes()));
        // SAFETY: see above.
        unsafe { envoy_dynamic_module_callback_http_set_filter_state_typed(self.0, key, value) }
    }

    /// Makes Envoy choose the route again.
    pub(crate) fn clear_route_cache(self) {
        // SAFETY: see above.
        unsafe { envoy_dynamic_module_callback_http_clear_route_cache(self.0) }
    }

    pub(crate) fn attribute(self, attribute: Attribute) -> Option<Vec<u8>> {
        let mut value = Buffer::EMPTY;
        // SAFETY: see above.
        let found = unsafe {
            envoy_dynamic_module_callback_http_filter_get_attribute_string(
                self.0,
                attribute as u32,
                &raw mut value,
            )
        };
        // SAFETY: Envoy returned the buffer in this hook.
        found.then(|| unsafe { value.to_vec() })
    }

    /// Sends a local reply without headers of the module. Envoy may call `on_http_filter_destroy`
    /// before this returns.
    pub(crate) fn send_response(self, status: u16, details: &str, body: &str) {
        let (body, details) = (Buffer::new(body.as_bytes()), Buffer::new(details.as_bytes()));
        // SAFETY: see above.
        unsafe {
            envoy_dynamic_module_callback_http_send_response(
                self.0,
                u32::from(status),
                ptr::null_mut(),
                0,
                body,
                details,
            );
        }
    }

    /// Resets the downstream stream. Envoy may call `on_http_filter_destroy` before this returns.
    pub(crate) fn reset(self) {
        const LOCAL_RESET: u32 = 0;
        // SAFETY: see above.
        unsafe { envoy_dynamic_module_callback_http_filter_reset_stream(self.0, LOCAL_RESET, Buffer::EMPTY) }
    }

    /// Returns the length of the current chunk of the response body.
    pub(crate) fn response_chunk_size(self) -> usize {
        // SAFETY: see above.
        unsafe { envoy_dynamic_module_callback_http_get_body_size(self.0, RECEIVED_RESPONSE_BODY) }
    }

    /// Replaces the first `size` bytes of the current chunk of the response body. Returns false if
    /// there is no chunk.
    pub(crate) fn replace_response_chunk(self, size: usize, bytes: &[u8]) -> bool {
        // SAFETY: see above.
        unsafe {
            envoy_dynamic_module_callback_http_drain_body(self.0, RECEIVED_RESPONSE_BODY, size)
                && (bytes.is_empty()
                    || envoy_dynamic_module_callback_http_append_body(
                        self.0,
                        RECEIVED_RESPONSE_BODY,
                        Buffer::new(bytes),
                    ))
        }
    }

    /// Starts an HTTP stream that ends with its body, and returns its id, which is unique in this
    /// stream. Envoy calls no hook of it before this returns.
    pub(crate) fn start_http_stream(
        self,
        cluster: &str,
        headers: &[(&[u8], &[u8])],
        body: &[u8],
        timeout_ms: u64,
    ) -> Result<u64, StartError> {
        let mut headers: Vec<Header> = headers
            .iter()
            .map(|(name, value)| Header { name: Buffer::new(name), value: Buffer::new(value) })
            .collect();
        let mut id = 0;
        // SAFETY: see above.
        let result = unsafe {
            envoy_dynamic_module_callback_http_filter_start_http_stream(
                self.0,
                &raw mut id,
                Buffer::new(cluster.as_bytes()),
                headers.as_mut_ptr(),
                headers.len(),
                Buffer::new(body),
                true,
                timeout_ms,
            )
        };
        if result == 0 { Ok(id) } else { Err(StartError(result)) }
    }

    /// Ends an HTTP stream; Envoy calls `on_http_filter_http_stream_reset` before this returns.
    pub(crate) fn reset_http_stream(self, id: u64) {
        // SAFETY: see above.
        unsafe { envoy_dynamic_module_callback_http_filter_reset_http_stream(self.0, id) }
    }

    /// Adds to a counter with these label values.
    pub(crate) fn increment_counter<'a>(self, id: usize, labels: impl Iterator<Item = &'a str>, by: u64) {
        // SAFETY: see above.
        unsafe { update(envoy_dynamic_module_callback_http_filter_increment_counter, self.0, id, labels, by) }
    }

    /// Sets a gauge with these label values.
    pub(crate) fn set_gauge<'a>(self, id: usize, labels: impl Iterator<Item = &'a str>, value: u64) {
        // SAFETY: see above.
        unsafe { update(envoy_dynamic_module_callback_http_filter_set_gauge, self.0, id, labels, value) }
    }
}
