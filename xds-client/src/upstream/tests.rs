use hyper::StatusCode;

use super::*;

#[test]
fn http_statuses_that_reject_the_client() {
    for (status, is_expected) in [(401, true), (403, true), (404, false), (429, false), (503, false)] {
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::from_u16(status).expect("a status");
        let error = connection::refusal(&response).expect("an error");
        assert_eq!(is_rejection(&error), is_expected, "{status}");
        assert!(error.message().starts_with(&format!("HTTP status {status}")));
    }
    assert!(connection::refusal(&Response::new(())).is_none());
}
