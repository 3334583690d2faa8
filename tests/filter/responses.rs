//! Tests of responses to routed probes: which parts of an application's response the filter passes
//! on, and into which reasons it translates the local replies of Envoy.

use wasm_host::scenario::{Outcome, Scenario};
use wasm_host::scenarios::{HOOK, HTTP, SECRET, TCP};
use wasm_host::transcript::{Effect, headers};
use wasm_host::{Action, Vm};

use crate::support::{check, get, passed, vm_with_table};

const RESET: &str = "upstream_reset_before_response_started";

fn application(path: &str, status: u16) -> Scenario {
    let head =
        [("server", SECRET), ("set-cookie", SECRET), ("content-length", "5"), ("x-envoy-upstream", SECRET)];
    Scenario::get(path).application(status, head).chunk(SECRET, false).chunk(SECRET, true)
}

#[test]
fn a_response_is_passed_with_its_status_only() {
    let mut vm = vm_with_table();
    for path in [HTTP, HOOK] {
        for status in [200, 201, 204, 206, 299, 400, 401, 404, 418, 429, 500, 502, 503, 504, 520, 530, 599] {
            assert_eq!(application(path, status).run(&mut vm).unwrap(), passed(status), "{path}");
        }
    }
}

#[test]
fn a_response_without_a_body_ends_with_its_headers() {
    let mut vm = vm_with_table();
    let (context, _) = vm.request(get(HTTP), true).unwrap();
    let head = headers([(":status", "204"), ("server", SECRET)]);
    assert_eq!(vm.response(context, head, true).unwrap(), Action::Continue);
    let stream = vm.stream(context).unwrap();
    assert_eq!((&stream.response_headers, &stream.sent_body[..]), (&headers([(":status", "204")]), &b""[..]));
}

#[test]
fn an_invalid_status_is_an_invalid_response() {
    let status = |status: &str| {
        let mut scenario = Scenario::get(HTTP).application::<&str>(200, []);
        for step in &mut scenario.steps {
            if let wasm_host::scenario::Step::Answer { headers, .. } = step {
                headers[0].1 = status.into();
            }
        }
        scenario
    };
    let rows = ["101", "199", "0", "", "-1", "2e2", "99999"].map(|text| (text, status(text), "527 protocol"));
    check(&mut vm_with_table(), rows.into());
    check(
        &mut vm_with_table(),
        vec![("600", status("600"), "527 protocol"), ("999", status("999"), "527 protocol")],
    );
}

#[test]
fn an_error_status_depends_on_who_sent_the_response() {
    let rows = [
        ("response_timeout", "", "504 timeout"),
        ("upstream_per_try_timeout", "", "504 timeout"),
        ("{connection_timeout}", "", "504 timeout"),
        ("{remote_connection_failure|delayed_connect_error:_Connection_refused}", "", "502 refused"),
        ("{remote_connection_failure}", "delayed_connect_error:_Connection_refused", "502 refused"),
        ("{remote_connection_failure|TLS_error:_268435703:SSL_routines}", "", "525 tls"),
        ("{remote_connection_failure}", "TLS_error:_268436498:SSL_routines", "525 tls"),
        ("{local_connection_failure|failed_to_bind_to_[::6]:0}", "", "529 unreachable"),
        (
            "{remote_connection_failure|immediate_connect_error:_Network_is_unreachable}",
            "",
            "529 unreachable",
        ),
        (
            "{remote_connection_failure}",
            "immediate_connect_error:_Cannot_assign_requested_address",
            "529 unreachable",
        ),
        ("{remote_connection_failure}", "", "529 unreachable"),
        ("{connection_termination}", "", "520 closed"),
        ("{remote_reset}", "", "520 closed"),
        ("{protocol_error}", "", "527 protocol"),
        ("http1.codec_error", "", "527 protocol"),
        ("response_headers_too_large", "", "527 protocol"),
        ("{overflow}", "", "503 overloaded"),
        ("no_healthy_upstream", "", "530 configuration"),
        ("cluster_not_found", "", "530 configuration"),
        ("route_not_found", "", "530 configuration"),
        ("direct_response", "", "530 configuration"),
        ("", "", "530 configuration"),
        ("words of a newer Envoy", "", "530 configuration"),
    ];
    let mut vm = vm_with_table();
    for (details, failure, expected) in rows {
        let details = if details.starts_with('{') { format!("{RESET}{details}") } else { details.into() };
        // A connection that is closed at once was established, so a TCP probe succeeds.
        let expected_of_tcp = if expected == "520 closed" { "200" } else { expected };
        for (path, expected) in [(HTTP, expected), (TCP, expected_of_tcp)] {
            for status in [400, 502, 503, 504] {
                let scenario = Scenario::get(path).envoy(status, &details, failure);
                check(&mut vm, vec![(&details, scenario, expected)]);
            }
        }
        // The kubelet counts any response to a hook as success.
        check(&mut vm, vec![(&details, Scenario::get(HOOK).envoy(503, &details, failure), "reset")]);
    }
}

#[test]
fn a_tcp_probe_succeeds_if_envoy_connected() {
    let rows = vec![
        ("connected", Scenario::get(TCP).application::<&str>(200, []), "200"),
        ("201", Scenario::get(TCP).application::<&str>(201, []), "530 configuration"),
        ("302", Scenario::get(TCP).application(302, [("location", "/a")]), "530 configuration"),
        ("500", Scenario::get(TCP).application::<&str>(500, []), "530 configuration"),
    ];
    check(&mut vm_with_table(), rows);
}

/// Sends a response body in these chunks. Each has its size, whether it is the last one, and the
/// number of spaces that the filter must send instead.
fn check_body(chunks: &[(usize, bool, usize)]) {
    let mut vm = vm_with_table();
    let (context, _) = vm.request(get(HTTP), true).unwrap();
    vm.response(context, headers([(":status", "200")]), false).unwrap();
    for (number, (size, last, spaces)) in chunks.iter().enumerate() {
        let before = sent(&vm, context);
        assert_eq!(vm.response_body(context, &vec![b'x'; *size], *last).unwrap(), Action::Continue);
        let after = sent(&vm, context);
        assert!(after.iter().all(|byte| *byte == b' '), "{chunks:?}");
        assert_eq!(after.len() - before.len(), *spaces, "chunk {number} of {chunks:?}");
    }
}

fn sent(vm: &Vm, context: u32) -> Vec<u8> {
    vm.stream(context).unwrap().sent_body.clone()
}

#[test]
fn a_body_is_emptied_and_replaced_once_by_spaces_after_ten_kib() {
    check_body(&[(0, true, 0)]);
    check_body(&[(10_239, false, 0), (0, false, 0), (0, true, 0)]);
    check_body(&[(10_239, false, 0), (1, true, 0)]);
    check_body(&[(10_239, false, 0), (1, false, 10_241), (1, false, 0), (50_000, false, 0), (1, true, 0)]);
    check_body(&[(10_240, true, 0)]);
    check_body(&[(1 << 20, true, 0)]);
    check_body(&[(1 << 20, false, 10_241), (1 << 20, false, 0), (0, true, 0)]);
    check_body(&vec![(1_024, false, 0); 9]);
}

#[test]
fn body_chunks_are_never_read() {
    let mut vm = vm_with_table();
    application(HTTP, 200).run(&mut vm).unwrap();
    assert_eq!(vm.host().calls.of("proxy_get_buffer_bytes"), 0);
}

#[test]
fn no_data_of_the_application_leaves_the_filter() {
    let mut vm = vm_with_table();
    for (name, scenario) in wasm_host::scenarios::all() {
        let end = scenario.run(&mut vm).unwrap();
        assert!(!format!("{end:?}").contains(SECRET), "{name}: {end:?}");
    }
    let contains_secret = |effect: &Effect| format!("{effect:?}").contains(SECRET);
    assert!(!vm.transcript().effects().iter().any(contains_secret));
}

#[test]
fn a_hook_accepts_every_response_of_the_application() {
    let rows = vec![
        (
            "3xx",
            Scenario::get(HOOK).application(302, [("location", "http://elsewhere/")]),
            "passed 200 and 0 spaces",
        ),
        ("500", application(HOOK, 500), "passed 500 and 0 spaces"),
        ("no answer", Scenario::get(HOOK).envoy(504, "response_timeout", ""), "reset"),
        ("101", Scenario::get(HOOK).application::<&str>(101, []), "reset"),
        ("broken redirect", Scenario::get(HOOK).application(302, [("location", "http://[")]), "reset"),
    ];
    check(&mut vm_with_table(), rows);
    let end = Scenario::get(HOOK).run(&mut vm_with_table()).unwrap();
    assert_eq!(end, Outcome::Waiting);
}
