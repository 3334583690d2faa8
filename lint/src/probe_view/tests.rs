use serde_json::json;

use super::*;

#[test]
fn absent_and_zero_fields_have_the_default_of_kubernetes() {
    for value in [json!({}), json!({"periodSeconds": 0, "timeoutSeconds": 0, "failureThreshold": 0})] {
        let probe = Probe { name: "livenessProbe", value: &value };
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
        let probe = Probe { name: "livenessProbe", value: &value };
        assert_eq!(probe.shortest_fatal_pause(), pause, "{value}");
    }
}

#[test]
fn several_handlers_are_none() {
    let http = json!({"path": "/"});
    assert_eq!(Handler::of(&json!({"httpGet": {"path": "/"}})), Some(Handler::HttpGet(&http)));
    assert_eq!(Handler::of(&json!({"httpGet": {}, "exec": {}})), None);
    assert_eq!(Handler::of(&json!({"exec": null})), None);
}
