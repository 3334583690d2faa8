use super::*;

#[test]
fn a_mistake_of_ours_is_a_500_for_one_request() {
    let refusal = guarded(b"{}", || panic!("made up")).map(|reviewed| reviewed.body).expect_err("a refusal");
    assert_eq!(refusal.0, StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(refusal.1, "internal error, see the log", "the response does not contain the panic message");
}
