use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{created, is_auto, is_foreign, record, updated, with_status};
use discovery::entries::{Auto, Before, Condition, ConditionReason, Record, Status, Timestamp};
use discovery::objects::{Key, Spec};

fn time(seconds: i64) -> Timestamp {
    Timestamp::from_seconds(1_767_323_045 + seconds)
}

fn full() -> Record {
    let spec = Spec {
        address: "10.0.0.7".to_owned(),
        ports: BTreeMap::from([("http".to_owned(), 8080)]),
        labels: BTreeMap::from([("app".to_owned(), "payments".to_owned())]),
        network: Some("dc1".to_owned()),
        locality: Some("eu/a/1".to_owned()),
        weight: 2,
        service_account: Some("payments".to_owned()),
    };
    Record {
        auto: Some(Auto {
            group: "payments".to_owned(),
            spec: Arc::new(spec),
            annotations: BTreeMap::from([("team".to_owned(), "billing".to_owned())]),
            health_checks: true,
        }),
        controller: Some("app-health/d-0".to_owned()),
        session: 17,
        connected_at: Some(time(0)),
        disconnected_at: Some(time(1)),
        condition: Some(Condition {
            status: Status::False,
            reason: ConditionReason::ProbeFailed,
            message: "HTTP status 503".to_owned(),
            last_probe_time: Some(time(2)),
            last_transition_time: time(3),
        }),
        before: Some(Before::Served),
        resource_version: None,
    }
}

/// Returns the object as the API server stores it, with the status written separately.
fn object(record: &Record) -> Value {
    let auto = record.auto.as_ref().expect("an auto-registered one");
    let object = created(&Key::new("shop", "payments-10.0.0.7-dc1"), record, auto);
    with_status(&object, record).unwrap_or(object)
}

#[test]
fn a_record_is_serialized_as_istio_does() {
    let expected = json!({
        "apiVersion": "networking.istio.io/v1", "kind": "WorkloadEntry",
        "metadata": {"name": "payments-10.0.0.7-dc1", "namespace": "shop", "annotations": {
            "team": "billing",
            "istio.io/workloadController": "app-health/d-0",
            "istio.io/connectedAt": "2026-01-02T03:04:05Z",
            "istio.io/disconnectedAt": "2026-01-02T03:04:06Z",
            "app-health.io/session": "17",
            "app-health.io/before-unknown": "Served",
            "istio.io/autoRegistrationGroup": "payments",
            "proxy.istio.io/health-checks-enabled": "true",
        }},
        "spec": {
            "address": "10.0.0.7", "ports": {"http": 8080}, "labels": {"app": "payments"}, "network": "dc1",
            "locality": "eu/a/1", "weight": 2, "serviceAccount": "payments",
        },
        "status": {"conditions": [{
            "type": "Healthy", "status": "False", "reason": "ProbeFailed", "message": "HTTP status 503",
            "lastProbeTime": "2026-01-02T03:04:07Z", "lastTransitionTime": "2026-01-02T03:04:08Z",
        }]},
    });
    assert_eq!(object(&full()), expected);
}

#[test]
fn records_round_trip_without_another_write() {
    let bare = Record {
        auto: Some(Auto { group: "g".to_owned(), ..Auto::default() }),
        controller: Some("app-health/x".to_owned()),
        ..Record::default()
    };
    for expected in [full(), bare] {
        let object = object(&expected);
        assert_eq!(record(&object), expected);
        assert_eq!(updated(&object, &expected, true), None);
        assert_eq!(with_status(&object, &expected), None);
    }
}

/// Applies `edit` to the object of [`full`], writes the record changed by `wanted` over it, and
/// compares the value at `pointer`.
fn check(edit: fn(&mut Value), wanted: fn(&mut Record), pointer: &str, expected: &Value) {
    let mut there = object(&full());
    edit(&mut there);
    let mut record = full();
    wanted(&mut record);
    let after = updated(&there, &record, true).unwrap_or(there);
    let after = with_status(&after, &record).unwrap_or(after);
    assert_eq!(after.pointer(pointer).unwrap_or(&Value::Null), expected, "{after:#}");
}

#[test]
fn fields_of_other_writers_are_preserved() {
    let foreign = json!({"type": "Ready", "status": "True", "x": 1});
    let edit = |there: &mut Value| {
        there["status"]["conditions"]
            .as_array_mut()
            .expect("conditions")
            .insert(0, json!({"type": "Ready", "status": "True", "x": 1}));
        there["status"]["conditions"][1]["observedGeneration"] = 4.into();
        there["status"]["other"] = json!({"a": [1]});
        there["metadata"]["labels"] = json!({"a": "b"});
        there["metadata"]["annotations"]["c"] = "d".into();
        there["metadata"]["finalizers"] = json!(["e"]);
        there["spec"]["later"] = json!({"f": 1});
    };
    let flip = |record: &mut Record| {
        record.session = 18;
        record.before = None;
        record.disconnected_at = None;
        if let Some(condition) = &mut record.condition {
            condition.status = Status::True;
            condition.message = String::new();
        }
        if let Some(auto) = &mut record.auto {
            auto.spec = Arc::new(Spec { address: "10.0.0.8".to_owned(), ..Spec::default() });
        }
    };
    for (pointer, expected) in [
        ("/status/conditions/0", &foreign),
        ("/status/conditions/1/observedGeneration", &json!(4)),
        ("/status/conditions/1/status", &json!("True")),
        ("/status/conditions/1/message", &Value::Null),
        ("/status/other", &json!({"a": [1]})),
        ("/metadata/labels", &json!({"a": "b"})),
        ("/metadata/annotations/c", &json!("d")),
        ("/metadata/annotations/app-health.io~1session", &json!("18")),
        ("/metadata/annotations/istio.io~1disconnectedAt", &Value::Null),
        ("/metadata/finalizers", &json!(["e"])),
        ("/spec", &json!({"address": "10.0.0.8", "later": {"f": 1}})),
    ] {
        check(edit, flip, pointer, expected);
    }
}

#[test]
fn removing_the_condition_keeps_other_conditions() {
    let edit = |there: &mut Value| {
        let conditions = there["status"]["conditions"].as_array_mut().expect("conditions");
        conditions.push(json!({"type": "Ready"}));
        conditions.push(json!({"type": "Healthy", "status": "True"}));
    };
    check(edit, |record| record.condition = None, "/status/conditions", &json!([{"type": "Ready"}]));
}

#[test]
fn spec_and_health_checks_of_a_manual_entry_are_preserved() {
    let manual = json!({
        "metadata": {"name": "m", "namespace": "shop", "annotations": {"proxy.istio.io/health-checks-enabled": "true"}},
        "spec": {"address": "10.1.1.1"},
    });
    let wanted = Record { auto: None, ..full() };
    let after = updated(&manual, &wanted, true).expect("a session");
    assert_eq!(after["spec"], manual["spec"]);
    assert_eq!(after["metadata"]["annotations"]["proxy.istio.io/health-checks-enabled"], "true");
    assert_eq!(record(&with_status(&after, &wanted).expect("a condition")), wanted);
    assert_eq!(updated(&json!({"metadata": {}}), &Record::default(), true), None, "nothing to write");
}

#[test]
fn annotations_determine_auto_and_foreign_entries() {
    for (group, controller, auto, foreign) in [
        (None, None, false, false),
        (Some("g"), None, true, false),
        (Some("g"), Some("app-health/a"), true, false),
        (Some("g"), Some("istiod-7f9c"), false, true),
        (None, Some("istiod-7f9c"), false, true),
    ] {
        let mut object = json!({"metadata": {"annotations": {}}});
        for (name, value) in [(super::GROUP, group), (super::CONTROLLER, controller)] {
            if let Some(value) = value {
                object["metadata"]["annotations"][name] = value.into();
            }
        }
        assert_eq!((is_auto(&object), is_foreign(&object)), (auto, foreign), "{object}");
    }
}

#[test]
fn malformed_fields_are_ignored() {
    for object in [
        json!({}),
        json!({"metadata": {"annotations": null}, "spec": 1, "status": []}),
        json!({"status": {"conditions": [1, {"type": "Healthy"}, {"type": "Healthy", "status": 2}]}}),
        json!({"metadata": {"annotations": {"app-health.io/session": "-1", "istio.io/connectedAt": "now"}}}),
    ] {
        assert_eq!(record(&object), Record::default(), "{object}");
    }
    let istio =
        json!({"status": {"conditions": [{"type": "Healthy", "status": "False", "message": "a\nb"}]}});
    let condition = record(&istio).condition.expect("a condition");
    assert_eq!((condition.status, condition.reason), (Status::False, ConditionReason::Foreign));
    assert!(!condition.message.contains('\n'));
}

#[test]
fn a_user_edit_of_the_spec_is_preserved_without_with_spec() {
    let mut there = object(&full());
    there["spec"]["labels"]["edited"] = "yes".into();
    let mut wanted = full();
    wanted.session = 18;
    for (with_spec, expected) in [(true, &Value::Null), (false, &json!("yes"))] {
        let after = updated(&there, &wanted, with_spec).expect("a session");
        assert_eq!(after.pointer("/spec/labels/edited").unwrap_or(&Value::Null), expected);
    }
}
