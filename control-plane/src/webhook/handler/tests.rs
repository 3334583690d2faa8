use super::*;

#[test]
fn a_panic_is_a_500_response() {
    let error = catch_panic(b"{}", || panic!("made up")).map(|reviewed| reviewed.body).expect_err("an error");
    assert_eq!(error.0, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(error.1, "internal error, see the log", "the response does not contain the panic message");
}
