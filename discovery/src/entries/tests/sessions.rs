//! Tests of which stream reports, and when its reports are acknowledged.

use serde_json::json;

use super::*;

#[test]
fn the_newest_stream_reports() {
    check(
        settings(),
        auto(),
        &[
            ("config probe", "| gone"),
            ("open 1 ours", "hello 1 s1 probe, write, push | removed Unknown/AwaitingFirstReport"),
            ("report 1 e 9 Healthy", "write, push, ack 1 e/9 | served True/ProbeSucceeded"),
            (
                "open 2 ours",
                "close 1 Aborted superseded, hello 2 s2 probe, write | served True/ProbeSucceeded",
            ),
            ("report 1 e 10 Unhealthy", "stale | served True/ProbeSucceeded"),
            ("close 1", "| served True/ProbeSucceeded"),
            // The first report of a session counts regardless of its generation.
            ("report 2 e 1 Unhealthy", "write, push, ack 2 e/1 | removed False/ProbeFailed"),
            ("wait 100", "| removed False/ProbeFailed"),
        ],
    );
    check(
        settings(),
        auto(),
        &[
            ("config probe", "| gone"),
            ("open 1 istio", "write, push | removed Unknown/AwaitingFirstReport"),
            ("open 2 istio", "| removed Unknown/AwaitingFirstReport"),
            ("istio 1 ok", "write, push | served True/ProbeSucceeded"),
            ("istio 2 bad", "close 1 Aborted superseded, write, push | removed False/ProbeFailed"),
            ("istio 1 ok", "stale | removed False/ProbeFailed"),
        ],
    );
}

#[test]
fn reports_are_acknowledged_once_stored() {
    check(
        settings(),
        auto(),
        &[
            ("config probe", "| gone"),
            ("hold", "| gone"),
            ("open 1 ours", "hello 1 s1 probe, write, push | removed Unknown/AwaitingFirstReport"),
            // The push does not wait for the store.
            ("report 1 e 1 Healthy", "write, push | served True/ProbeSucceeded"),
            ("report 1 e 1 Healthy", "| served True/ProbeSucceeded"),
            ("store", "ack 1 e/1 | served True/ProbeSucceeded"),
            ("report 1 e 1 Healthy", "ack 1 e/1 | served True/ProbeSucceeded"),
            ("report 1 e 2 Unhealthy", "write, push | removed False/ProbeFailed"),
            ("report 1 e 3 Healthy", "write, push | served True/ProbeSucceeded"),
            ("store", "ack 1 e/3 | served True/ProbeSucceeded"),
            ("report 1 e 4 Unhealthy", "write, push | removed False/ProbeFailed"),
            ("close 1", "write | removed False/ProbeFailed"),
            ("store", "| removed False/ProbeFailed"),
        ],
    );
}

#[test]
fn istio_reports_count_until_the_first_app_health_report() {
    check(
        settings(),
        auto(),
        &[
            ("config probe", "| gone"),
            ("open 1 ours", "hello 1 s1 probe, write, push | removed Unknown/AwaitingFirstReport"),
            ("istio 1 ok", "write, push | served True/ProbeSucceeded"),
            ("report 1 e 0 Awaiting", "ack 1 e/0 | served True/ProbeSucceeded"),
            ("istio 1 bad", "stale | served True/ProbeSucceeded"),
            ("report 1 e 1 Draining", "write, push, ack 1 e/1 | removed False/Draining"),
            // The agent reconnects after it lost its stream, and is still draining.
            ("open 2 ours", "close 1 Aborted superseded, hello 2 s2 probe, write | removed False/Draining"),
            ("istio 2 bad", "| removed False/Draining"),
        ],
    );
}

#[test]
fn fast_reports_are_coalesced() {
    let mut case = Case::new(settings());
    case.word("config probe");
    case.word("open 1 ours");
    let mut acks = 0;
    for generation in 1..=100 {
        let word = if generation % 2 == 0 { "Healthy" } else { "Unhealthy" };
        acks += shown(&case.word(&format!("report 1 e {generation} {word}"))).matches("ack").count();
    }
    assert_eq!(acks, 10);
    assert_eq!(shown(&case.word("wait 0.4")), "");
    assert_eq!(shown(&case.word("wait 0.2")), "ack 1 e/100");
    assert_eq!(case.state(), "served True/ProbeSucceeded");
    // A final report is applied even if the stream ends immediately after it.
    for generation in 101..=102 {
        case.word(&format!("report 1 e {generation} Terminating"));
    }
    case.word("close 1");
    assert_eq!(case.state(), "removed False/Terminating");
}

#[test]
fn duplicate_agents_are_detected() {
    let mut case = Case::new(settings());
    case.word("config probe");
    let mut open = |stream: u64| shown(&case.word(&format!("open {stream} ours"))).contains("duplicate");
    let found: Vec<u64> = (1..=13).filter(|stream| open(*stream)).collect();
    assert_eq!(found, [7, 13]);
}

#[test]
fn view_contains_the_accepted_probe() {
    let mut case = Case::new(settings());
    for step in
        ["config probe", "open 1 ours", "acked 1 a1b2", "report 1 e 3 Unhealthy", "wait 1.5", "nacked 1"]
    {
        case.word(step);
    }
    let view = serde_json::to_value(case.entries.view(case.now)).expect("JSON");
    let expected = json!([{
        "namespace": "shop", "name": "payments-10.0.0.7", "group": "payments", "address": "10.0.0.7", "endpoint": "removed",
        "why": "condition False",
        "condition": {
            "type": "Healthy", "status": "False", "reason": "ProbeFailed", "message": "text",
            "lastProbeTime": "2026-01-02T03:04:03Z", "lastTransitionTime": "2026-01-02T03:04:05Z",
        },
        "agent": {
            "kind": "app-health", "version": null, "connected": true, "peer": "10.0.0.7:4000", "session": 1, "epoch": "e",
            "generation": 3, "lastReportAgoMs": 1500, "probeVersion": "a1b2", "probeNack": "no\\x0a",
        },
        "controller": "app-health/app-health", "healthIgnored": false, "preservedAsLast": false,
            "selfPreserved": false,
    }]);
    assert_eq!(view, expected);
}
