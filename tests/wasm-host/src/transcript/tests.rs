use super::{Effect, headers};

#[test]
fn a_failed_assertion_shows_text_not_numbers() {
    let head = Effect::ResponseHeadersSet(headers([(&b":status"[..], &b"200"[..]), (b"x", b"\xff\n")]));
    assert_eq!(format!("{head:?}"), r#"ResponseHeadersSet([":status: 200", "x: \\xff\\n"])"#);
    let body = Effect::BodySet { start: 0, len: 5, bytes: b"\0a".to_vec() };
    assert_eq!(format!("{body:?}"), r#"BodySet(0, 5, "\\x00a")"#);
}
