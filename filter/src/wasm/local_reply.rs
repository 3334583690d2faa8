//! The one host function that the SDK offers without an argument that the filter needs.

#![expect(unsafe_code, reason = "the ABI passes pointers")]

#[link(wasm_import_module = "env")]
unsafe extern "C" {
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
}

/// Sends a local reply without headers of its own. `details` becomes `%RESPONSE_CODE_DETAILS%` in
/// access logs. An error is the status of the host call.
pub(super) fn send(status: u16, details: &str, body: &str) -> Result<(), u32> {
    let headers = 0u32.to_le_bytes();
    // SAFETY: the host reads the three texts during the call.
    let status = unsafe {
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
    };
    if status == 0 { Ok(()) } else { Err(status) }
}
