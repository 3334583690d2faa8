use probe::{Reason, Redirect};

use super::{CallResult, Hop, on_check, on_hop};
use crate::config::Config;
use crate::decision::Answer;
use crate::decision::tests::{GRPC, GRPC_HOOK, HOOK, HTTP, config, plan, reply};
use crate::plan::Action;

/// Returns a response with a status and a body only.
fn answered<'a>(status: &'a str, body: &'a str) -> CallResult<'a> {
    CallResult::Answered {
        status: Some(status.as_bytes()),
        location: None,
        content_type: None,
        grpc_status: None,
        grpc_message: None,
        body_length: body.len(),
        body: body.as_bytes(),
    }
}

#[test]
fn answers_to_a_grpc_check() {
    let config = config();
    let check = |content_type: &str,
                 grpc_status: Option<&str>,
                 grpc_message: Option<&str>,
                 body: &[u8],
                 reason: Reason| {
        let result = CallResult::Answered {
            status: Some(b"200"),
            location: None,
            content_type: Some(content_type.as_bytes()),
            grpc_status: grpc_status.map(str::as_bytes),
            grpc_message: grpc_message.map(str::as_bytes),
            body_length: body.len(),
            body,
        };
        let hook = if reason.is_success() { reply(reason) } else { Answer::Reset(reason) };
        for (path, expected) in [(GRPC, reply(reason)), (GRPC_HOOK, hook)] {
            let answer = on_check(plan(&config, path), result);
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
    for (late, reason) in [(true, Reason::Timeout), (false, Reason::GrpcError)] {
        assert_eq!(on_check(plan(&config, GRPC), CallResult::Failed { late }), reply(reason));
    }
    assert_eq!(on_check(plan(&config, GRPC), answered("200", "")), reply(Reason::GrpcError));
}

#[test]
fn answers_to_a_hop() {
    let config = config();
    let connect = "upstream connect error or disconnect/reset before headers. reset reason: ";
    let ours = |status, reason| Answer::Reply { status, reason };
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
            Answer::Reset(Reason::Refused),
        ),
        (
            "503",
            &format!("{connect}connection termination"),
            reply(Reason::Closed),
            Answer::Reset(Reason::Closed),
        ),
        (
            "502",
            &format!("{connect}protocol error"),
            reply(Reason::Protocol),
            Answer::Reset(Reason::Protocol),
        ),
        ("504", "upstream request timeout", reply(Reason::Timeout), Answer::Reset(Reason::Timeout)),
        // An application may send the same text; Envoy sends it with the statuses 502 to 504 only.
        ("500", "upstream request timeout", ours(500, Reason::Application), ours(500, Reason::Application)),
        ("200", "upstream request timeout", ours(200, Reason::Ok), ours(200, Reason::Ok)),
        ("101", "", reply(Reason::Protocol), Answer::Reset(Reason::Protocol)),
        ("x", "", reply(Reason::Protocol), Answer::Reset(Reason::Protocol)),
    ] {
        for (path, expected) in [(HTTP, probe), (HOOK, hook)] {
            let answer = on_hop(&config, plan(&config, path), &a_hop(&config, 1), answered(status, body));
            assert_eq!(answer, expected, "{path} {status} {body}");
        }
    }
    for (late, reason) in [(true, Reason::Timeout), (false, Reason::Redirect)] {
        for (path, expected) in [(HTTP, reply(reason)), (HOOK, Answer::Reset(reason))] {
            let answer =
                on_hop(&config, plan(&config, path), &a_hop(&config, 1), CallResult::Failed { late });
            assert_eq!(answer, expected);
        }
    }
}

/// Returns the request that follows after `requests` requests.
fn a_hop(config: &Config, requests: u32) -> Hop {
    let Action::Http { request, .. } = &plan(config, HTTP).action else { panic!("http") };
    match Redirect::of(request, 302, Some(b"/hop"), 1, &config.pod_ip, &config.own_ports) {
        Redirect::Follow(request) => Hop::new(config, *request, requests),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_probe_has_ten_requests() {
    let config = config();
    for (requests, follows) in [(1, true), (8, true), (9, false), (10, false), (u32::MAX, false)] {
        let hop = a_hop(&config, requests);
        let result = match answered("302", "") {
            CallResult::Answered {
                status,
                content_type,
                grpc_status,
                grpc_message,
                body_length,
                body,
                ..
            } => {
                let location = Some(b"/next".as_slice());
                CallResult::Answered {
                    status,
                    location,
                    content_type,
                    grpc_status,
                    grpc_message,
                    body_length,
                    body,
                }
            }
            failed => failed,
        };
        match on_hop(&config, plan(&config, HTTP), &hop, result) {
            Answer::Follow(next) => assert!(follows && next.url.path == b"/next", "{requests}"),
            answer => assert_eq!((answer, follows), (reply(Reason::Redirect), false), "{requests}"),
        }
    }
}
