use serde_json::json;

use super::*;

#[test]
fn absent_and_zero_fields_have_the_default_of_kubernetes() {
    for value in [json!({}), json!({"periodSeconds": 0, "timeoutSeconds": 0, "failureThreshold": 0})] {
        let probe = Probe { kind: ProbeKind::Liveness, value: &value };
        assert_eq!((probe.period(), probe.timeout(), probe.failure_threshold()), (10, 1, 3));
        assert_eq!((probe.initial_delay(), probe.tolerance()), (0, 30));
    }
}

/// (period, timeout, failure threshold, shortest pause)
#[test]
fn a_pause_fails_a_probe_as_often_as_the_threshold() {
    for (period, timeout, threshold, pause) in
        [(10, 1, 3, 21), (10, 5, 1, 5), (5, 20, 2, 40), (1, 1, u64::MAX, u64::MAX)]
    {
        let value =
            json!({"periodSeconds": period, "timeoutSeconds": timeout, "failureThreshold": threshold});
        let probe = Probe { kind: ProbeKind::Liveness, value: &value };
        assert_eq!(probe.shortest_fatal_pause(), pause, "{value}");
    }
}

#[test]
fn one_field_is_the_handler() {
    use ProbeKind::{PreStop, Readiness};
    let fields = json!({"port": 1});
    let http = Some(Handler::Network(HandlerKind::HttpGet, &fields));
    for (kind, value, handler) in [
        (Readiness, json!({"httpGet": fields}), http),
        (PreStop, json!({"httpGet": fields, "udpSocket": {}}), http),
        (Readiness, json!({"httpGet": {}, "exec": {}}), None),
        (Readiness, json!({"exec": null}), None),
        (Readiness, json!({"periodSeconds": {}, "timeout": 3}), None),
        (Readiness, json!({"exec": null, "udpSocket": fields}), Some(Handler::Unknown("udpSocket"))),
        // Kubernetes has these two for hooks only, or for probes only.
        (Readiness, json!({"sleep": fields}), Some(Handler::Unknown("sleep"))),
        (PreStop, json!({"sleep": fields}), Some(Handler::Sleep(&fields))),
        (PreStop, json!({"grpc": fields}), Some(Handler::Unknown("grpc"))),
    ] {
        assert_eq!(Probe { kind, value: &value }.handler(), handler, "{value}");
    }
}

#[test]
fn the_names_of_the_handlers_are_those_that_are_read() {
    for kind in ProbeKind::ALL {
        for name in handler_names(kind) {
            let value = json!({ name: {} });
            let handler = Probe { kind, value: &value }.handler().expect("a handler");
            assert_eq!((handler.name(), matches!(handler, Handler::Unknown(_))), (name, false));
        }
    }
}
