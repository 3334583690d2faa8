use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{AppliedParts, DesiredState, ReplicaContext, Step, decide};
use crate::store::kubernetes::object;
use crate::store::kubernetes::request::Request;
use discovery::entries::{Auto, Before, Condition, ConditionReason, Record, Status, Timestamp};
use discovery::objects::Key;

/// `kind` is `auto` or `manual`; the resource version is always 5.
fn there(kind: &str, controller: &str, session: u64) -> Value {
    let mut object = json!({
        "metadata": {"namespace": "shop", "name": "a", "uid": "u", "resourceVersion": "5", "annotations": {}},
        "spec": {"address": ""},
    });
    let annotations = &mut object["metadata"]["annotations"];
    if kind == "auto" {
        annotations["istio.io/autoRegistrationGroup"] = "g".into();
    }
    if !controller.is_empty() {
        annotations["istio.io/workloadController"] = controller.into();
    }
    if session > 0 {
        annotations["app-health.io/session"] = session.to_string().into();
    }
    object
}

fn put(kind: &str, controller: &str, session: u64, version: &str) -> DesiredState {
    DesiredState::Put(Box::new(Record {
        auto: (kind == "auto").then(|| Auto { group: "g".to_owned(), ..Auto::default() }),
        controller: Some(controller.to_owned()),
        session,
        condition: Some(Condition {
            status: Status::True,
            reason: ConditionReason::ProbeSucceeded,
            message: String::new(),
            last_probe_time: None,
            last_transition_time: Timestamp::default(),
        }),
        resource_version: Some(version.to_owned()),
        ..Record::default()
    }))
}

fn disconnected(desired: DesiredState) -> DesiredState {
    let DesiredState::Put(mut record) = desired else { return desired };
    record.disconnected_at = Some(Timestamp::default());
    DesiredState::Put(record)
}

/// Checks the step of replica `a`; `b` is alive and `c` is dead.
fn check(current: Option<Value>, desired: &DesiredState, expected: &str) {
    let replica =
        ReplicaContext { instance: "a".to_owned(), alive: BTreeSet::from(["a".to_owned(), "b".to_owned()]) };
    let step = decide(&Key::new("shop", "a"), current.as_ref(), desired, &replica, AppliedParts::default());
    let word = match step {
        Step::UpToDate => "done",
        Step::OwnedByOther => "lost",
        Step::Send(Request::Create(_)) => "create",
        Step::Send(Request::Read) => "read",
        Step::Send(Request::Replace(_)) => "replace",
        Step::Send(Request::ReplaceStatus(_)) => "status",
        Step::Send(Request::Delete { uid, version }) => {
            assert_eq!((uid.as_str(), version.as_str()), ("u", "5"));
            "delete"
        }
    };
    assert_eq!(word, expected, "{current:?} {desired:?}");
}

const A: &str = "app-health/a";
const B: &str = "app-health/b";
const C: &str = "app-health/c";
const ISTIOD: &str = "istiod-7f9c";

#[test]
fn session_then_owner_then_content_decide() {
    for (current, desired, expected) in [
        (None, put("auto", A, 1, ""), "create"),
        // An entry without an agent, of another replica or of a user is not created again.
        (None, disconnected(put("auto", A, 1, "")), "lost"),
        (None, put("auto", C, 1, ""), "lost"),
        (None, put("manual", A, 1, ""), "lost"),
        (Some(there("auto", A, 3)), put("auto", A, 3, "1"), "status"),
        (Some(there("auto", A, 3)), put("auto", A, 4, "1"), "replace"),
        // The session of the object is newer, or another replica wrote the same session first.
        (Some(there("auto", B, 4)), put("auto", A, 3, "1"), "lost"),
        (Some(there("auto", B, 4)), put("auto", A, 4, "1"), "lost"),
        (Some(there("auto", B, 4)), put("auto", A, 5, "1"), "replace"),
        // On behalf of a dead replica, only the version that was read is written.
        (Some(there("manual", C, 4)), put("manual", C, 4, "5"), "status"),
        (Some(there("manual", C, 4)), put("manual", C, 4, "4"), "lost"),
        // The entry belongs to another controller or to a user.
        (Some(there("auto", ISTIOD, 0)), put("auto", A, 5, "5"), "lost"),
        (Some(there("manual", ISTIOD, 0)), put("manual", A, 5, "5"), "lost"),
        (Some(there("manual", "", 0)), put("auto", A, 5, "5"), "lost"),
        (Some(there("manual", "", 0)), put("manual", A, 1, "5"), "replace"),
    ] {
        check(current, &desired, expected);
    }
}

#[test]
fn deletes_require_a_known_session_and_owner() {
    for (current, session, expected) in [
        (None, 1, "done"),
        (Some(there("auto", A, 3)), 3, "delete"),
        (Some(there("auto", C, 3)), 3, "delete"),
        (Some(there("auto", C, 4)), 3, "lost"),
        (Some(there("auto", B, 3)), 3, "lost"),
        (Some(there("auto", B, 3)), 9, "lost"),
        (Some(there("auto", ISTIOD, 0)), 3, "lost"),
        (Some(there("manual", A, 3)), 3, "done"),
    ] {
        check(current, &DesiredState::Delete(session), expected);
    }
}

#[test]
fn a_part_is_written_only_once() {
    let replica = ReplicaContext { instance: "a".to_owned(), alive: BTreeSet::new() };
    let decide = |main, status| {
        let current = there("auto", A, 3);
        decide(
            &Key::new("shop", "a"),
            Some(&current),
            &put("auto", A, 4, ""),
            &replica,
            AppliedParts { main, status, spec: false },
        )
    };
    assert!(matches!(decide(true, false), Step::Send(Request::ReplaceStatus(_))));
    assert_eq!(decide(true, true), Step::UpToDate);
}

/// Between the two writes the other replicas see an object with the new metadata and the old condition, or
/// the reverse. A machine that is healthy again must stay their endpoint.
#[test]
fn a_healthy_machine_is_an_endpoint_between_the_two_writes() {
    let mut silent = there("auto", A, 4);
    silent["metadata"]["annotations"]["app-health.io/before-unknown"] = "Served".into();
    silent["status"]["conditions"] = json!([{
        "type": "Healthy", "status": "Unknown", "reason": "AgentSilent",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
    }]);
    check(Some(silent.clone()), &put("auto", A, 4, "1"), "status");
    check(Some(silent.clone()), &put("auto", A, 5, "1"), "replace");
    let mut unchecked = there("auto", A, 4);
    let DesiredState::Put(mut record) = put("auto", A, 4, "1") else { unreachable!("put returns Put") };
    record.auto.as_mut().expect("an auto-registered entry").health_checks = true;
    check(Some(unchecked.clone()), &DesiredState::Put(record.clone()), "status");
    // The condition explains the endpoint already, so that the session is written first.
    unchecked["status"] = silent["status"].clone();
    check(Some(unchecked), &DesiredState::Put(record), "replace");
    // A machine that becomes silent is an endpoint because of what it was before.
    let DesiredState::Put(mut record) = put("auto", A, 4, "1") else { unreachable!("put returns Put") };
    record.before = Some(Before::Served);
    check(Some(there("auto", A, 4)), &DesiredState::Put(record), "replace");
}

#[test]
fn the_status_keeps_other_fields() {
    let mut current = there("auto", A, 3);
    current["status"] = json!({"conditions": [{"type": "Ready"}], "x": 1});
    let replica = ReplicaContext { instance: "a".to_owned(), alive: BTreeSet::new() };
    let desired = put("auto", A, 3, "");
    let Step::Send(Request::ReplaceStatus(after)) =
        decide(&Key::new("shop", "a"), Some(&current), &desired, &replica, AppliedParts::default())
    else {
        panic!("the status is replaced");
    };
    assert_eq!(object::version(&after), Some("5"), "the version is kept for optimistic concurrency");
    assert_eq!(after["status"]["x"], 1);
    assert_eq!(after["status"]["conditions"].as_array().map(Vec::len), Some(2));
}
