use super::*;

#[test]
fn every_result() {
    use HealthReason::{BadResponse, GrpcNotServing, GrpcStatus};
    for (reason, status, expected) in [
        (Reason::Ok, Some(0), Ok(())),
        (Reason::GrpcUnknown, Some(0), Err((GrpcNotServing, "gRPC health status UNKNOWN"))),
        (Reason::GrpcNotServing, Some(0), Err((GrpcNotServing, "gRPC health status NOT_SERVING"))),
        (Reason::GrpcServiceUnknown, Some(0), Err((GrpcNotServing, "gRPC health status SERVICE_UNKNOWN"))),
        (Reason::GrpcUnimplemented, Some(12), Err((GrpcStatus, "gRPC status 12 UNIMPLEMENTED"))),
        (Reason::GrpcServiceUnknown, Some(5), Err((GrpcStatus, "gRPC status 5 NOT_FOUND"))),
        (Reason::GrpcError, Some(14), Err((GrpcStatus, "gRPC status 14 UNAVAILABLE"))),
        (Reason::GrpcError, Some(99), Err((GrpcStatus, "gRPC status 99 (unknown code)"))),
        (Reason::GrpcError, Some(-1), Err((GrpcStatus, "gRPC status -1 (unknown code)"))),
        (Reason::GrpcError, Some(0), Err((BadResponse, "not a valid gRPC health response"))),
        (Reason::GrpcError, None, Err((BadResponse, "not a valid gRPC health response"))),
    ] {
        let found = evaluate(Checked { reason, status });
        let found = found.map_err(|unhealthy| (unhealthy.reason(), unhealthy.text().to_owned()));
        assert_eq!(
            found,
            expected.map_err(|(reason, text)| (reason, text.to_owned())),
            "{reason:?} {status:?}"
        );
    }
}
