use super::decode;

/// The examples of RFC 7541, appendix C.4 and C.6.
#[test]
fn examples_of_the_rfc() {
    for (hex, text) in [
        ("f1e3c2e5f23a6ba0ab90f4ff", "www.example.com"),
        ("a8eb10649cbf", "no-cache"),
        ("25a849e95ba97d7f", "custom-key"),
        ("25a849e95bb8e8b4bf", "custom-value"),
        ("6402", "302"),
        ("aec3771a4b", "private"),
        ("d07abe941054d444a8200595040b8166e082a62d1bff", "Mon, 21 Oct 2013 20:13:21 GMT"),
    ] {
        let bytes: Vec<u8> = (0..hex.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal"))
            .collect();
        assert_eq!(decode(&bytes).as_deref(), Some(text.as_bytes()), "{hex}");
    }
}

#[test]
fn padding() {
    assert_eq!(decode(b""), Some(Vec::new()));
    assert_eq!(decode(&[0b0000_0111]), Some(b"0".to_vec()));
    assert_eq!(decode(&[0b0000_0110]), None, "not all ones");
    assert_eq!(decode(&[0b0000_0111, 0xff]), None, "more than seven bits");
    assert_eq!(decode(&[0xff, 0xff, 0xff, 0xfc]), None, "the end-of-string symbol");
}
