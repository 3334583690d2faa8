use super::*;

/// Checks the result for a response with the given content type, `grpc-status` and body.
fn check(content_type: &str, status: Option<&str>, body: &[u8], expected: Result<(), (HealthReason, &str)>) {
    let answer = GrpcResponse {
        content_type: Some(content_type.as_bytes()),
        grpc_status: status.map(str::as_bytes),
        body_length: body.len(),
        body,
    };
    let found = evaluate(&answer).map_err(|unhealthy| (unhealthy.reason(), unhealthy.text().to_owned()));
    assert_eq!(
        found,
        expected.map_err(|(reason, text)| (reason, text.to_owned())),
        "{content_type} {status:?} {body:?}"
    );
}

#[test]
fn every_answer() {
    use HealthReason::{BadResponse, GrpcNotServing, GrpcStatus};
    const BROKEN: &str = "the health response is missing or malformed";
    for (status, expected) in [
        (1, Ok(())),
        (0, Err((GrpcNotServing, "gRPC health status UNKNOWN"))),
        (2, Err((GrpcNotServing, "gRPC health status NOT_SERVING"))),
        (3, Err((GrpcNotServing, "gRPC health status SERVICE_UNKNOWN"))),
        (9, Err((GrpcNotServing, "gRPC health status UNKNOWN"))),
    ] {
        check(GRPC, Some("0"), &[0, 0, 0, 0, 2, 8, status], expected);
    }
    check("application/grpc+proto", Some("0"), &[0, 0, 0, 0, 2, 8, 1], Ok(()));
    for (status, text) in [
        ("12", "gRPC status 12 UNIMPLEMENTED"),
        ("5", "gRPC status 5 NOT_FOUND"),
        ("14", "gRPC status 14 UNAVAILABLE"),
        ("99", "gRPC status 99 (unknown code)"),
    ] {
        check(GRPC, Some(status), &[], Err((GrpcStatus, text)));
        check(GRPC, Some(status), &[0, 0, 0, 0, 2, 8, 1], Err((GrpcStatus, text)));
    }
    check(GRPC, None, &[0, 0, 0, 0, 2, 8, 1], Err((BadResponse, BROKEN)));
    check(GRPC, Some("x"), &[0, 0, 0, 0, 2, 8, 1], Err((BadResponse, BROKEN)));
    check(GRPC, Some("0"), &[], Err((BadResponse, BROKEN)));
    check(GRPC, Some("0"), &[1, 0, 0, 0, 2, 8, 1], Err((BadResponse, BROKEN)));
    check(GRPC, Some("0"), &[0, 0, 0, 0, 9, 8, 1], Err((BadResponse, BROKEN)));
    check("text/html", Some("12"), b"<html>", Err((BadResponse, "not a gRPC response")));
}
