use crate::transcript::{Effect, StreamKind, headers};
use crate::wat_guest::{
    BAD_ARGUMENT, DATA, LOG, NAME, OK, PAIRS, RESULT, call, get_header, guest, http_call, start_test_guest,
    token,
};
use crate::{Action, CalloutAnswer, Host, LocalReply, Vm};

#[test]
fn a_local_reply_is_sent_after_the_callback_and_passes_through_the_filter() {
    let imports = LOG.to_owned()
        + r#"(import "env" "proxy_send_local_response" (func $reply (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))"#;
    let rest = r#"(data (i32.const 0) "requestresponse")
        (func $say (param i32 i32 i32) (drop (call $log (i32.const 2) (local.get 1) (local.get 2))))
        (func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
            (drop (call $reply (i32.const 404) (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 3) (i32.const 0)
                (i32.const 0) (i32.const -1)))
            (call $say (i32.const 0) (i32.const 0) (i32.const 7)) (i32.const 0))
        (func (export "proxy_on_response_headers") (param i32 i32 i32) (result i32)
            (call $say (i32.const 0) (i32.const 7) (i32.const 8)) (i32.const 0))"#;
    let mut vm = Vm::start(&guest(&imports, rest), Host::default()).unwrap();
    let (c, action) = vm.request(headers([(":path", "/")]), true).unwrap();
    assert_eq!(action, Action::Pause);
    let said: Vec<_> = vm.transcript().log().into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["request", "response"]);
    let stream = vm.stream(c).unwrap();
    let reply = LocalReply { status: 404, headers: vec![], body: b"req".to_vec() };
    assert_eq!((stream.local_reply.as_ref(), &stream.sent_body[..]), (Some(&reply), &b"req"[..]));
    assert_eq!(
        stream.response_headers,
        headers([(":status", "404"), ("content-length", "3"), ("content-type", "text/plain")])
    );
    let after = vm.response(c, headers([(":status", "200")]), true).unwrap_err().to_string();
    assert_eq!(after, format!("proxy_on_response_headers for {c}: the stream has ended"));
}

#[test]
fn a_local_reply_replaces_a_response_and_a_late_one_resets_it() {
    let mut vm = start_test_guest(Host::default());
    let [name, size] = NAME;
    let reply = [503, name, size, 0, 0, PAIRS[0], PAIRS[1], -1];
    let (c, _) = vm.request(headers([(":path", "/")]), true).unwrap();
    vm.response(c, headers([(":status", "200")]), false).unwrap();
    assert_eq!(call(&mut vm, "proxy_send_local_response", c, reply), OK);
    let map = headers([("name", b"\xff\x00\x80")]);
    let head = headers([(":status", &b"503"[..]), ("name", b"\xff\x00\x80")]);
    assert_eq!(vm.stream(c).unwrap().response_headers, head);
    let effect =
        Effect::LocalResponse { status: 503, headers: map, body: vec![], details: "name".to_owned() };
    assert_eq!(vm.transcript().of(c), [effect]);

    let (c, _) = vm.request(headers([(":path", "/")]), true).unwrap();
    assert_eq!([0, 3, 4].map(|kind| call(&mut vm, "proxy_close_stream", c, [kind])), [OK, OK, BAD_ARGUMENT]);
    assert!(vm.stream(c).unwrap().reset);
    let closed = [StreamKind::Request, StreamKind::Upstream].map(Effect::StreamClosed);
    assert_eq!(vm.transcript().of(c), closed);
}

#[test]
fn a_callout_response_is_delivered_to_the_root() {
    let mut vm = start_test_guest(Host { clusters: ["name".to_owned()].into(), ..Host::default() });
    let root = vm.root();
    let (c, _) = vm.request(headers([(":path", "/")]), true).unwrap();
    assert_eq!(http_call(&mut vm, c, -1), BAD_ARGUMENT, "a negative timeout");
    assert_eq!(
        call(&mut vm, "proxy_http_call", c, [16, 3, 64, 67, 0, 0, 0, 0, 1, RESULT]),
        BAD_ARGUMENT,
        "no such cluster"
    );
    assert_eq!(
        call(&mut vm, "proxy_http_call", c, [16, 4, 32, 21, 0, 0, 0, 0, 1, RESULT]),
        BAD_ARGUMENT,
        "no :path"
    );
    assert_eq!(
        [(http_call(&mut vm, c, 1), token(&vm)), (http_call(&mut vm, c, 1), token(&vm))],
        [(OK, 4), (OK, 8)]
    );
    let sent = headers([(":method", "GET"), (":path", "/"), (":authority", "a.b:100")]);
    let effect = |token| Effect::HttpCall {
        token,
        cluster: "name".to_owned(),
        headers: sent.clone(),
        body: vec![],
        trailers: vec![],
        timeout_ms: 1,
    };
    assert_eq!(vm.transcript().of(c), [effect(4), effect(8)]);
    vm.callout_failed(8).unwrap();
    assert!(vm.callout_failed(8).is_err(), "already answered");
    assert_eq!(call(&mut vm, "proxy_set_effective_context", root, [c.cast_signed()]), OK);
    assert_eq!(get_header(&mut vm, root, 0), BAD_ARGUMENT, "the choice is reset after its callback");
    assert_eq!(call(&mut vm, "proxy_set_effective_context", root, [99]), BAD_ARGUMENT);
    vm.finish(c).unwrap();
    vm.callout_answer(4, CalloutAnswer::default()).unwrap();
}

/// The guest records the callback's arguments and the results of its calls as values of a gauge,
/// then replies.
#[test]
fn a_callout_response_is_accessible_during_its_callback() {
    let imports = r#"
        (import "env" "proxy_http_call" (func $send (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))
        (import "env" "proxy_get_header_map_value" (func $header (param i32 i32 i32 i32 i32) (result i32)))
        (import "env" "proxy_get_buffer_bytes" (func $body (param i32 i32 i32 i32 i32) (result i32)))
        (import "env" "proxy_set_effective_context" (func $choose (param i32) (result i32)))
        (import "env" "proxy_record_metric" (func $note (param i32 i64) (result i32)))
        (import "env" "proxy_define_metric" (func $define (param i32 i32 i32 i32) (result i32)))
        (import "env" "proxy_send_local_response" (func $reply (param i32 i32 i32 i32 i32 i32 i32 i32) (result i32)))"#;
    let rest = r#"
        (func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32)
            (drop (call $send (i32.const 16) (i32.const 4) (i32.const 64) (i32.const 67) (i32.const 0) (i32.const 0)
                (i32.const 0) (i32.const 0) (i32.const 500) (i32.const 256)))
            (i32.const 1))
        (func $say (param i32) (drop (call $note (i32.const 5) (i64.extend_i32_u (local.get 0)))))
        (func (export "proxy_on_http_call_response") (param $c i32) (param i32 i32 i32 i32)
            (drop (call $define (i32.const 1) (i32.const 16) (i32.const 4) (i32.const 256)))
            (call $say (local.get $c)) (call $say (local.get 1)) (call $say (local.get 2))
            (call $say (local.get 3)) (call $say (local.get 4))
            (drop (call $choose (i32.const 2)))
            (call $say (call $header (i32.const 6) (i32.const 16) (i32.const 4) (i32.const 256) (i32.const 260)))
            (call $say (call $header (i32.const 7) (i32.const 16) (i32.const 4) (i32.const 256) (i32.const 260)))
            (call $say (call $body (i32.const 4) (i32.const 0) (i32.const 9) (i32.const 256) (i32.const 260)))
            (drop (call $reply (i32.const 200) (i32.const 0) (i32.const 0) (i32.load (i32.const 256))
                (i32.load (i32.const 260)) (i32.const 0) (i32.const 0) (i32.const -1))))"#;
    let guest = guest(imports, &(rest.to_owned() + DATA));
    let full = CalloutAnswer { headers: headers([("name", "x")]), body: b"body".to_vec(), trailers: vec![] };
    let bad = u64::from(BAD_ARGUMENT.cast_unsigned());
    for (answer, heard, body) in
        [(Some(full), [1, 4, 1, 4, 0, 0, bad, 0], "body"), (None, [1, 4, 0, 0, 0, bad, bad, 1], "")]
    {
        let mut vm =
            Vm::start(&guest, Host { clusters: ["name".to_owned()].into(), ..Host::default() }).unwrap();
        let (c, action) = vm.request(headers([(":path", "/")]), true).unwrap();
        assert_eq!((c, action), (2, Action::Pause));
        match answer {
            Some(answer) => vm.callout_answer(4, answer).unwrap(),
            None => vm.callout_failed(4).unwrap(),
        }
        let values = |effect| match effect {
            Effect::MetricRecorded { value, .. } => Some(value),
            _ => None,
        };
        assert_eq!(vm.transcript().effects().into_iter().filter_map(values).collect::<Vec<_>>(), heard);
        let reply = vm.stream(c).unwrap().local_reply.as_ref().unwrap();
        assert_eq!((reply.status, &reply.body[..]), (200, body.as_bytes()));
    }
}

#[test]
fn an_ended_stream_is_deleted_and_restricted_callbacks_are_skipped() {
    let rest = r#"(data (i32.const 0) "donedelete")
        (func $say (param i32 i32) (drop (call $log (i32.const 2) (local.get 0) (local.get 1))))
        (func (export "proxy_on_log") (param i32) unreachable)
        (func (export "proxy_on_done") (param i32) (result i32) unreachable)
        (func (export "proxy_on_delete") (param i32) (call $say (i32.const 4) (i32.const 6)))"#;
    let mut vm = Vm::start(&guest(LOG, rest), Host::default()).unwrap();
    let (c, _) = vm.request(headers([(":path", "/")]), true).unwrap();
    vm.finish(c).unwrap();
    assert_eq!(vm.call("proxy_on_log", &[1]).unwrap(), None);
    let said: Vec<_> = vm.transcript().log().into_iter().map(|(_, text)| text).collect();
    assert_eq!(said, ["delete"]);
    assert!(vm.stream(c).is_none());
}
