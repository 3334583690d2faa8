//! Tests of responses to gRPC probes, which arrive as results of a callout, from the application or
//! from Envoy itself.

use std::time::Duration;

use wasm_host::CalloutAnswer;
use wasm_host::scenario::Scenario;
use wasm_host::scenarios::{GRPC, grpc};
use wasm_host::transcript::headers;

use crate::support::{check, vm_with_table};

fn grpc_row(
    name: &'static str,
    answer: CalloutAnswer,
    expected: &'static str,
) -> (&'static str, Scenario, &'static str) {
    (name, Scenario::get(GRPC).callout(answer), expected)
}

fn grpc_with(body: &[u8], content_type: &str, status: &str) -> CalloutAnswer {
    CalloutAnswer {
        headers: headers([(":status", status), ("content-type", content_type)]),
        body: body.into(),
        trailers: headers([("grpc-status", "0")]),
    }
}

/// A response that consists of one header block with the gRPC status ("Trailers-Only").
fn trailers_only(grpc_status: &str, message: &str) -> CalloutAnswer {
    let head = [
        (":status", "200"),
        ("content-type", "application/grpc"),
        ("grpc-status", grpc_status),
        ("grpc-message", message),
    ];
    CalloutAnswer { headers: headers(head), ..CalloutAnswer::default() }
}

#[test]
fn grpc_responses() {
    let serving = b"\0\0\0\0\x02\x08\x01";
    let grpc_type = "application/grpc";
    let reset = |words: &str| {
        let text = "upstream connect error or disconnect/reset before headers. reset reason:";
        trailers_only("14", &format!("{text} {words}"))
    };
    let rows = vec![
        grpc_row("serving", grpc(Some(1), "0"), "200"),
        grpc_row("not serving", grpc(Some(2), "0"), "521 grpc_not_serving"),
        grpc_row("unknown", grpc(Some(0), "0"), "522 grpc_unknown"),
        grpc_row("empty message", grpc_with(b"\0\0\0\0\0", grpc_type, "200"), "522 grpc_unknown"),
        grpc_row("foreign number", grpc(Some(9), "0"), "522 grpc_unknown"),
        grpc_row("service unknown", grpc(Some(3), "0"), "523 grpc_service_unknown"),
        grpc_row("not found", grpc(None, "5"), "523 grpc_service_unknown"),
        grpc_row("unimplemented", trailers_only("12", ""), "524 grpc_unimplemented"),
        grpc_row("deadline exceeded", trailers_only("4", ""), "504 timeout"),
        grpc_row("unavailable", trailers_only("14", "of its own"), "526 grpc_error"),
        grpc_row("no grpc-status", grpc(Some(1), ""), "526 grpc_error"),
        // If the content type is that of gRPC, grpc-go ignores the HTTP status.
        grpc_row("status 404", grpc_with(serving, grpc_type, "404"), "200"),
        grpc_row("other type", grpc_with(serving, "text/html", "200"), "526 grpc_error"),
        grpc_row("no message", grpc_with(b"", grpc_type, "200"), "526 grpc_error"),
        grpc_row(
            "two messages",
            grpc_with(&[*serving, *serving].concat(), grpc_type, "200"),
            "526 grpc_error",
        ),
        grpc_row("compressed", grpc_with(b"\x01\0\0\0\x02\x08\x01", grpc_type, "200"), "526 grpc_error"),
        grpc_row("too long", grpc_with(b"\0\0\0\0\x03\x08\x01", grpc_type, "200"), "526 grpc_error"),
        grpc_row("4 GiB", grpc_with(b"\0\xff\xff\xff\xff\x08\x01", grpc_type, "200"), "526 grpc_error"),
        grpc_row("no message at all", CalloutAnswer::default(), "526 grpc_error"),
        grpc_row("refused", reset("remote connection failure"), "502 refused"),
        grpc_row("closed", reset("connection termination"), "520 closed"),
        grpc_row("overloaded", reset("overflow"), "503 overloaded"),
        ("failed", Scenario::get(GRPC).callout_failed(), "526 grpc_error"),
        ("late", Scenario::get(GRPC).wait(Duration::from_secs(3)).callout_failed(), "504 timeout"),
        ("waiting", Scenario::get(GRPC), "waiting"),
    ];
    check(&mut vm_with_table(), rows);
}
