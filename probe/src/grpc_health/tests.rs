use proptest::prelude::*;

use super::{GrpcResponse, request_message};
use crate::reason::Reason;

const GRPC: &[u8] = b"application/grpc";

fn frame(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).expect("a short message");
    [[0].as_slice(), &length.to_be_bytes(), message].concat()
}

/// Checks the result of a response with status 0 and the given body.
fn check(body: &[u8], expected: Reason) {
    let answer =
        GrpcResponse { content_type: Some(GRPC), grpc_status: Some(b"0"), body_length: body.len(), body };
    assert_eq!(answer.reason(), expected, "{body:x?}");
}

#[test]
fn the_request_contains_the_service() {
    for (service, expected) in [
        ("", b"\0\0\0\0\0".to_vec()),
        ("a", b"\0\0\0\0\x03\x0a\x01a".to_vec()),
        ("my.Service", b"\0\0\0\0\x0c\x0a\x0amy.Service".to_vec()),
        ("é", b"\0\0\0\0\x04\x0a\x02\xc3\xa9".to_vec()),
        (&"s".repeat(127), [b"\0\0\0\0\x81\x0a\x7f".as_slice(), &[b's'; 127]].concat()),
        (&"s".repeat(128), [b"\0\0\0\0\x83\x0a\x80\x01".as_slice(), &[b's'; 128]].concat()),
        (&"s".repeat(300), [b"\0\0\0\x01\x2f\x0a\xac\x02".as_slice(), &[b's'; 300]].concat()),
    ] {
        assert_eq!(request_message(service), expected, "{}", service.len());
    }
}

#[test]
fn serving_statuses() {
    for (message, expected) in [
        (b"\x08\x01".as_slice(), Reason::Ok),
        (b"\x08\x02", Reason::GrpcNotServing),
        (b"\x08\x03", Reason::GrpcServiceUnknown),
        (b"\x08\x00", Reason::GrpcUnknown),
        (b"", Reason::GrpcUnknown),
        (b"\x08\x04", Reason::GrpcUnknown),
        (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", Reason::GrpcUnknown),
        // The last value of a repeated field counts.
        (b"\x08\x02\x08\x01", Reason::Ok),
        (b"\x08\x01\x08\x02", Reason::GrpcNotServing),
        // A varint may be longer than needed; only the low 32 bits of an enum count.
        (b"\x08\x81\x00", Reason::Ok),
        (b"\x08\x81\x01", Reason::GrpcUnknown),
        (b"\x08\x81\x80\x80\x80\x80\x80\x80\x80\x80\x00", Reason::Ok),
        (b"\x08\x81\x80\x80\x80\x10", Reason::Ok),
        // The varint of a tag may be longer than needed, too.
        (b"\x88\x00\x01", Reason::Ok),
        // Unknown fields of every wire type are skipped, before and after the known one.
        (b"\x10\x07\x08\x01", Reason::Ok),
        (b"\x11ABCDEFGH\x08\x01", Reason::Ok),
        (b"\x12\x03abc\x08\x01", Reason::Ok),
        (b"\x15ABCD\x08\x01", Reason::Ok),
        (b"\x08\x01\x12\x00", Reason::Ok),
        (b"\x08\x01\xf8\xff\xff\xff\x0f\x01", Reason::Ok),
        // Fields inside a group, also a nested one, are not fields of the message.
        (b"\x13\x08\x02\x14\x08\x01", Reason::Ok),
        (b"\x13\x1b\x08\x02\x1c\x14\x08\x01", Reason::Ok),
        (b"\x0b\x0c\x08\x01", Reason::Ok),
        (b"\x08\x01\x13\x08\x02\x14", Reason::Ok),
        (b"\x08\x01\x13\x1b\x1c\x08\x02\x14", Reason::Ok),
        // Field 1 with another wire type is an unknown field.
        (b"\x0a\x01\x01", Reason::GrpcUnknown),
        (b"\x0d\x01\x00\x00\x00", Reason::GrpcUnknown),
        (b"\x09\x01\x00\x00\x00\x00\x00\x00\x00", Reason::GrpcUnknown),
    ] {
        check(&frame(message), expected);
    }
}

#[test]
fn invalid_messages() {
    for message in [
        b"\x08".as_slice(),
        b"\x08\x80",
        b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",
        b"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00",
        b"\x80",
        b"\x00\x01",
        b"\x07\x01",
        b"\x0e\x01",
        b"\x0f",
        b"\x11ABCDEFG",
        b"\x15ABC",
        b"\x12\x04abc",
        b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        b"\x08\x01\x12",
        b"\x13",
        b"\x14",
        b"\x13\x1c",
        b"\x13\x1b\x14\x1c",
        b"\x80\x80\x80\x80\x10\x01",
        b"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02\x01",
    ] {
        check(&frame(message), Reason::GrpcError);
    }
}

#[test]
fn bodies_that_are_not_one_uncompressed_message() {
    let serving = frame(b"\x08\x01");
    for body in [
        b"".to_vec(),
        b"\0".to_vec(),
        b"\0\0\0\0".to_vec(),
        [serving.clone(), serving.clone()].concat(),
        [serving.clone(), b"\0\0\0\0\0".to_vec()].concat(),
        b"\x01\0\0\0\x02\x08\x01".to_vec(),
        b"\x02\0\0\0\x02\x08\x01".to_vec(),
        b"\x80\0\0\0\x02\x08\x01".to_vec(),
        b"\0\0\0\0\x01\x08\x01".to_vec(),
        b"\0\0\0\0\x03\x08\x01".to_vec(),
        b"\0\xff\xff\xff\xff\x08\x01".to_vec(),
        b"HTTP/1.1 200 OK\r\n\r\n".to_vec(),
    ] {
        check(&body, Reason::GrpcError);
    }
}

#[test]
fn trailing_bytes_shorter_than_a_frame_are_ignored() {
    for (body, expected) in [
        ([frame(b"\x08\x01"), b"\0\0\0\0".to_vec()].concat(), Reason::Ok),
        ([frame(b"\x08\x01"), b"\xff".to_vec()].concat(), Reason::Ok),
        ([frame(b""), b"\x08\x01".to_vec()].concat(), Reason::GrpcUnknown),
    ] {
        check(&body, expected);
    }
}

#[test]
fn truncated_bodies_are_rejected() {
    let body = frame(b"\x08\x01");
    for (body_length, expected) in
        [(7, Reason::Ok), (8, Reason::GrpcError), (6, Reason::GrpcError), ((16 << 10) + 1, Reason::GrpcError)]
    {
        let answer =
            GrpcResponse { content_type: Some(GRPC), grpc_status: Some(b"0"), body_length, body: &body };
        assert_eq!(answer.reason(), expected, "{body_length}");
    }
}

#[test]
fn the_grpc_status_decides_before_the_body() {
    for (grpc_status, with_body, without) in [
        (Some("0"), Reason::Ok, Reason::GrpcError),
        (Some("00"), Reason::Ok, Reason::GrpcError),
        (Some("+0"), Reason::Ok, Reason::GrpcError),
        (Some("1"), Reason::GrpcError, Reason::GrpcError),
        (Some("2"), Reason::GrpcError, Reason::GrpcError),
        (Some("4"), Reason::Timeout, Reason::Timeout),
        (Some("5"), Reason::GrpcServiceUnknown, Reason::GrpcServiceUnknown),
        (Some("7"), Reason::GrpcError, Reason::GrpcError),
        (Some("12"), Reason::GrpcUnimplemented, Reason::GrpcUnimplemented),
        (Some("14"), Reason::GrpcError, Reason::GrpcError),
        (Some("16"), Reason::GrpcError, Reason::GrpcError),
        (Some("17"), Reason::GrpcError, Reason::GrpcError),
        (Some("-1"), Reason::GrpcError, Reason::GrpcError),
        (Some("4294967296"), Reason::GrpcError, Reason::GrpcError),
        (Some(""), Reason::GrpcError, Reason::GrpcError),
        (Some(" 0"), Reason::GrpcError, Reason::GrpcError),
        (Some("0,0"), Reason::GrpcError, Reason::GrpcError),
        (Some("OK"), Reason::GrpcError, Reason::GrpcError),
        (None, Reason::GrpcError, Reason::GrpcError),
    ] {
        for (body, expected) in [(frame(b"\x08\x01"), with_body), (Vec::new(), without)] {
            let grpc_status = grpc_status.map(str::as_bytes);
            let answer =
                GrpcResponse { content_type: Some(GRPC), grpc_status, body_length: body.len(), body: &body };
            assert_eq!(answer.reason(), expected, "{grpc_status:?}");
        }
    }
}

#[test]
fn content_types() {
    for (content_type, valid) in [
        (Some("application/grpc"), true),
        (Some("Application/GRPC"), false),
        (Some("application/grpc+proto"), true),
        (Some("application/grpc+"), true),
        (Some("application/grpc;charset=utf-8"), true),
        (Some("application/grpc; charset=utf-8"), true),
        (Some("application/grpc-web"), false),
        (Some("application/grpc ;x"), false),
        (Some(" application/grpc"), false),
        (Some("application/grp"), false),
        (Some("application/json"), false),
        (Some("text/html"), false),
        (Some(""), false),
        (None, false),
    ] {
        let body = frame(b"\x08\x01");
        let content_type = content_type.map(str::as_bytes);
        let answer =
            GrpcResponse { content_type, grpc_status: Some(b"0"), body_length: body.len(), body: &body };
        assert_eq!(answer.reason(), if valid { Reason::Ok } else { Reason::GrpcError }, "{content_type:?}");
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_have_a_result(
        body in prop::collection::vec(any::<u8>(), 0..60),
        message in prop::collection::vec(any::<u8>(), 0..60),
        status in prop::option::of(prop::collection::vec(any::<u8>(), 0..4)),
        content_type in prop::option::of(prop::collection::vec(any::<u8>(), 0..20)),
    ) {
        let framed = frame(&message);
        for body in [&body, &framed] {
            let (content_type, grpc_status) = (content_type.as_deref(), status.as_deref());
            let _ = GrpcResponse { content_type, grpc_status, body_length: body.len(), body }.reason();
            let reason =
                GrpcResponse { content_type: Some(GRPC), grpc_status: Some(b"0"), body_length: body.len(), body }.reason();
            prop_assert!(reason.is_success() || (521..=526).contains(&reason.status()));
        }
    }
}
