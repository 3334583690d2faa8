//! The part of the gRPC health checking protocol that a probe needs: one request and one response.
//!
//! Sources: `grpc/health/v1/health.proto`, the gRPC over HTTP/2 specification, and the handling of
//! responses in grpc-go, which kubelet uses.

use crate::reason::Reason;

/// The `:path` of the method.
pub const CHECK: &str = "/grpc.health.v1.Health/Check";
/// The maximum number of bytes of a response body that are examined. A health response has about
/// ten.
pub const MAX_RESPONSE_BYTES: usize = 16 << 10;
/// The length of the prefix of each message: the compressed flag and the message length.
const MESSAGE_PREFIX_BYTES: usize = 5;

/// Returns the request body: a length-prefixed `HealthCheckRequest` for `service`. Empty means the
/// whole server.
pub fn request_message(service: &str) -> Vec<u8> {
    let mut message = Vec::new();
    if !service.is_empty() {
        message.push(0x0a);
        write_varint(service.len(), &mut message);
        message.extend_from_slice(service.as_bytes());
    }
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [[0].as_slice(), &length.to_be_bytes(), &message].concat()
}

/// A response to the check. The HTTP status is not included, because grpc-go ignores it if the
/// content type is gRPC's.
#[derive(Clone, Copy, Debug)]
pub struct GrpcResponse<'a> {
    /// The header `content-type`.
    pub content_type: Option<&'a [u8]>,
    /// The `grpc-status` of the trailers, or of the headers if there are no trailers.
    pub grpc_status: Option<&'a [u8]>,
    /// The length of the whole body in bytes.
    pub body_length: usize,
    /// The body, or its first [`MAX_RESPONSE_BYTES`] bytes.
    pub body: &'a [u8],
}

impl GrpcResponse<'_> {
    /// Returns the result of the check.
    pub fn reason(&self) -> Reason {
        if !self.content_type.is_some_and(is_grpc) {
            return Reason::GrpcError;
        }
        let grpc_status: Option<i32> =
            self.grpc_status.and_then(|text| std::str::from_utf8(text).ok()?.parse().ok());
        match grpc_status {
            Some(0) => {
                self.message().and_then(serving_status).map_or(Reason::GrpcError, |status| match status {
                    1 => Reason::Ok,
                    2 => Reason::GrpcNotServing,
                    3 => Reason::GrpcServiceUnknown,
                    _ => Reason::GrpcUnknown,
                })
            }
            Some(4) => Reason::Timeout,
            Some(5) => Reason::GrpcServiceUnknown,
            Some(12) => Reason::GrpcUnimplemented,
            _ => Reason::GrpcError,
        }
    }

    /// Returns the single uncompressed message of the body. As in grpc-go, trailing bytes are
    /// ignored if they are too few for a further message prefix.
    fn message(&self) -> Option<&[u8]> {
        let (frame, message) = self.body.split_first_chunk::<MESSAGE_PREFIX_BYTES>()?;
        let [0, length @ ..] = *frame else { return None };
        let length = usize::try_from(u32::from_be_bytes(length)).ok()?;
        let (message, rest) = message.split_at_checked(length)?;
        (rest.len() < MESSAGE_PREFIX_BYTES && self.body.len() == self.body_length).then_some(message)
    }
}

/// Returns true for `application/grpc`, alone or followed by a subtype or parameters. The
/// comparison is case-sensitive.
pub fn is_grpc(content_type: &[u8]) -> bool {
    let rest = content_type.strip_prefix(b"application/grpc");
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';')))
}

/// Returns field 1 of a `HealthCheckResponse`. Unknown fields are skipped, and the last value
/// counts. Returns `None` if the bytes are not a valid message.
fn serving_status(mut message: &[u8]) -> Option<i32> {
    let mut status = 0;
    let mut groups: Vec<u64> = Vec::new();
    while !message.is_empty() {
        let tag;
        (tag, message) = varint(message)?;
        let field = tag >> 3;
        if field == 0 || field > 0x1fff_ffff {
            return None;
        }
        match tag & 7 {
            0 => {
                let value;
                (value, message) = varint(message)?;
                if field == 1 && groups.is_empty() {
                    // An enum is an `int32`, so only the low 32 bits count.
                    let [a, b, c, d, ..] = value.to_le_bytes();
                    status = i32::from_le_bytes([a, b, c, d]);
                }
            }
            1 => message = message.get(8..)?,
            2 => {
                let length;
                (length, message) = varint(message)?;
                message = message.get(usize::try_from(length).ok()?..)?;
            }
            3 => groups.push(field),
            4 if groups.pop() == Some(field) => {}
            5 => message = message.get(4..)?,
            _ => return None,
        }
    }
    groups.is_empty().then_some(status)
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    let mut rest = bytes;
    for shift in (0..64).step_by(7) {
        let (byte, tail) = rest.split_first()?;
        rest = tail;
        // The tenth byte of a 64-bit varint holds a single bit.
        if shift == 63 && *byte > 1 {
            return None;
        }
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((value, rest));
        }
    }
    None
}

fn write_varint(mut value: usize, out: &mut Vec<u8>) {
    while value > 0x7f {
        out.push(u8::try_from(value & 0x7f).unwrap_or(0) | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).unwrap_or(0));
}

#[cfg(test)]
mod tests;
