use probe::{Reason, Redirect};

use super::{CalloutResponse, CalloutResult, RedirectRequest};
use crate::attributes::tests::Table;
use crate::config::Config;
use crate::decision::Decision;
use crate::decision::tests::{GRPC, GRPC_HOOK, HOOK, HTTP, config, plan, reply, request};
use crate::prober_plan::PlannedRequest;

/// Returns a response with a status and a body only.
fn response(status: &str, body: &str) -> CalloutResponse {
    CalloutResponse {
        status: Some(status.into()),
        body_length: body.len(),
        body: body.into(),
        ..CalloutResponse::default()
    }
}

#[test]
fn responses_to_a_grpc_check() {
    let config = config();
    let check = |content_type: &str,
                 grpc_status: Option<&str>,
                 grpc_message: Option<&str>,
                 body: &[u8],
                 reason: Reason| {
        let result = CalloutResult::Response(CalloutResponse {
            content_type: Some(content_type.into()),
            grpc_status: grpc_status.map(Into::into),
            grpc_message: grpc_message.map(Into::into),
            body_length: body.len(),
            body: body.to_vec(),
            ..CalloutResponse::default()
        });
        let hook = if reason.is_success() { reply(reason) } else { Decision::Reset(reason) };
        for (path, expected) in [(GRPC, reply(reason)), (GRPC_HOOK, hook)] {
            let mut request = request(&config, path);
            let answer = request.on_grpc_response(&result, &Table::default());
            assert_eq!(answer, expected, "{path} {grpc_status:?} {grpc_message:?} {body:x?}");
        }
    };
    let message = |status: u8| [0, 0, 0, 0, 2, 8, status];
    let grpc = "application/grpc";
    let connect = "upstream connect error or disconnect/reset before headers. reset reason: ";
    for (status, reason) in [
        (0, Reason::GrpcUnknown),
        (1, Reason::Ok),
        (2, Reason::GrpcNotServing),
        (3, Reason::GrpcServiceUnknown),
        (4, Reason::GrpcUnknown),
    ] {
        check(grpc, Some("0"), None, &message(status), reason);
        // A text of Envoy counts only together with a failure status.
        check(grpc, Some("0"), Some("upstream request timeout"), &message(status), reason);
    }
    for (status, text, reason) in [
        (Some("14"), Some(format!("{connect}remote connection failure")), Reason::Refused),
        (Some("14"), Some(format!("{connect}connection termination")), Reason::Closed),
        (Some("14"), Some(format!("{connect}overflow")), Reason::Overloaded),
        (Some("14"), Some("no healthy upstream".into()), Reason::Configuration),
        (Some("4"), Some("upstream request timeout".into()), Reason::Timeout),
        (Some("14"), Some("the database is away".into()), Reason::GrpcError),
        (Some("14"), None, Reason::GrpcError),
        (Some("5"), Some("unknown service".into()), Reason::GrpcServiceUnknown),
        (Some("12"), None, Reason::GrpcUnimplemented),
        (None, None, Reason::GrpcError),
    ] {
        check(grpc, status, text.as_deref(), b"", reason);
    }
    check("text/html", Some("0"), None, &message(1), Reason::GrpcError);
    for (timed_out, reason) in [(true, Reason::Timeout), (false, Reason::GrpcError)] {
        assert_eq!(
            request(&config, GRPC).on_grpc_response(&CalloutResult::Failed { timed_out }, &Table::default()),
            reply(reason)
        );
    }
    assert_eq!(
        request(&config, GRPC)
            .on_grpc_response(&CalloutResult::Response(response("200", "")), &Table::default()),
        reply(Reason::GrpcError)
    );
}

#[test]
fn responses_to_a_redirect() {
    let config = config();
    let connect = "upstream connect error or disconnect/reset before headers. reset reason: ";
    let ours = |status, reason| Decision::LocalReply { status, reason };
    for (status, body, probe, hook) in [
        ("200", "fine", ours(200, Reason::Ok), ours(200, Reason::Ok)),
        ("204", "", ours(204, Reason::Ok), ours(204, Reason::Ok)),
        ("304", "", ours(200, Reason::OkRedirect), ours(200, Reason::OkRedirect)),
        ("404", "", ours(404, Reason::Application), ours(404, Reason::Application)),
        ("503", "busy", ours(503, Reason::Application), ours(503, Reason::Application)),
        (
            "503",
            &format!("{connect}remote connection failure"),
            reply(Reason::Refused),
            Decision::Reset(Reason::Refused),
        ),
        (
            "503",
            &format!("{connect}connection termination"),
            reply(Reason::Closed),
            Decision::Reset(Reason::Closed),
        ),
        (
            "502",
            &format!("{connect}protocol error"),
            reply(Reason::Protocol),
            Decision::Reset(Reason::Protocol),
        ),
        ("504", "upstream request timeout", reply(Reason::Timeout), Decision::Reset(Reason::Timeout)),
        // An application may send the same text; Envoy sends it with the statuses 502 to 504 only.
        ("500", "upstream request timeout", ours(500, Reason::Application), ours(500, Reason::Application)),
        ("200", "upstream request timeout", ours(200, Reason::Ok), ours(200, Reason::Ok)),
        ("101", "", reply(Reason::Protocol), Decision::Reset(Reason::Protocol)),
        ("x", "", reply(Reason::Protocol), Decision::Reset(Reason::Protocol)),
    ] {
        for (path, expected) in [(HTTP, probe), (HOOK, hook)] {
            let mut request = request(&config, path);
            let answer = request.on_redirect_response(
                &redirect_request(&config, 1),
                &CalloutResult::Response(response(status, body)),
                &Table::default(),
            );
            assert_eq!(answer, expected, "{path} {status} {body}");
        }
    }
    for (timed_out, reason) in [(true, Reason::Timeout), (false, Reason::Redirect)] {
        for (path, expected) in [(HTTP, reply(reason)), (HOOK, Decision::Reset(reason))] {
            let mut request = request(&config, path);
            let answer = request.on_redirect_response(
                &redirect_request(&config, 1),
                &CalloutResult::Failed { timed_out },
                &Table::default(),
            );
            assert_eq!(answer, expected);
        }
    }
}

/// Returns the request that follows after `requests` requests.
fn redirect_request(config: &Config, requests: u32) -> RedirectRequest {
    let PlannedRequest::Http { request, .. } = &plan(config, HTTP).request else { panic!("http") };
    match Redirect::decide(request, 302, Some(b"/redirect"), 1, &config.pod_ip, &config.proxy_ports) {
        Redirect::Follow(request) => RedirectRequest::new(config, *request, requests),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_probe_has_ten_requests() {
    let config = config();
    for (requests, follows) in [(1, true), (8, true), (9, false), (10, false), (u32::MAX, false)] {
        let redirect = redirect_request(&config, requests);
        let location = Some(b"/next".to_vec());
        let result = CalloutResult::Response(CalloutResponse { location, ..response("302", "") });
        let mut request = request(&config, HTTP);
        match request.on_redirect_response(&redirect, &result, &Table::new([])) {
            Decision::Callout(next) => {
                let path = next.headers.iter().find(|(name, _)| *name == b":path");
                assert!(follows && path.is_some_and(|(_, path)| *path == b"/next"), "{requests}");
                assert_eq!(
                    request.redirect.map(|next| next.requests),
                    Some(requests + 2),
                    "this and the next"
                );
            }
            answer => assert_eq!((answer, follows), (reply(Reason::Redirect), false), "{requests}"),
        }
    }
}
