use super::*;

/// What Go's protobuf library encodes for `{csr: "C", validity_duration: 86400, metadata: {CertSigner: "s"}}`.
#[test]
fn requests_are_encoded() {
    let expected = b"\x0a\x01C\x18\x80\xa3\x05\x22\x13\x0a\x11\x0a\x0aCertSigner\x12\x03\x1a\x01s";
    assert_eq!(encode_request("C", Duration::from_secs(86_400), "s"), &expected[..]);
    let expected = b"\x0a\x01C\x18\x3c\x22\x12\x0a\x10\x0a\x0aCertSigner\x12\x02\x1a\x00";
    assert_eq!(encode_request("C", Duration::from_secs(60), ""), &expected[..]);
}

#[test]
fn responses_need_a_certificate_and_a_root() {
    let decode = |bytes: &'static [u8]| decode_response(&Bytes::from_static(bytes));
    assert_eq!(decode(b"\x0a\x01a\x0a\x01b"), Ok(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(decode(b"\x12\x01x\x0a\x01a\x0a\x01b"), Ok(vec!["a".to_owned(), "b".to_owned()]));
    assert_eq!(decode(b"\x0a\x01a"), Err(InvalidResponse::Chain(1)));
    assert_eq!(decode(b""), Err(InvalidResponse::Chain(0)));
    assert!(matches!(decode(b"\x0a\x05a"), Err(InvalidResponse::Malformed(_))));
    assert!(matches!(decode(b"\x08\x05"), Err(InvalidResponse::Malformed(_))));
}
