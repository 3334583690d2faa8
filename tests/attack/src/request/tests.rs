use super::*;

fn answer(status: u16, body: &str) -> Result<Answer, String> {
    Ok(Answer { status, body: body.into(), complete: true, ..Answer::default() })
}

#[test]
fn responses_are_judged() {
    let expectation = Expectation::body(200, "up");
    assert_eq!(expectation.judge(0, answer(200, "it is up")), Verdict::Expected);
    assert!(matches!(expectation.judge(0, answer(200, "")), Verdict::Changed(_)));
    assert!(matches!(expectation.judge(0, answer(429, "up")), Verdict::Changed(_)));
    assert!(matches!(expectation.judge(0, Err("reset".to_owned())), Verdict::Lost(_)));
}

#[test]
fn a_response_to_an_older_request_is_not_judged() {
    let expectation = Expectation::status(200);
    let before = expectation.version();
    expectation.set(Some(503));
    assert_eq!(expectation.judge(before, answer(200, "")), Verdict::Unknown);
    assert!(matches!(expectation.judge(expectation.version(), answer(200, "")), Verdict::Changed(_)));
    expectation.set(None);
    assert_eq!(expectation.judge(expectation.version(), Err("reset".to_owned())), Verdict::Unknown);
}
