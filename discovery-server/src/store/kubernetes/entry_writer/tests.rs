mod server;

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::time::Duration;

use proptest::collection::vec;
use proptest::{prop_assert, prop_assert_eq, proptest};
use serde_json::json;

use super::{Effect, EntryWriter};
use crate::store::kubernetes::decision::{DesiredState, ReplicaContext};
use crate::store::kubernetes::object::record as record_of;
use crate::store::kubernetes::request::{ApiError, Request};
use discovery::entries::{Auto, Condition, ConditionReason, Record, Status, Timestamp};
use discovery::objects::Key;
use server::Server;

fn key() -> Key {
    Key::new("shop", "a")
}

fn writer(instance: &str) -> EntryWriter {
    let replica =
        ReplicaContext { instance: instance.to_owned(), alive: BTreeSet::from(["a".into(), "b".into()]) };
    EntryWriter::new(replica, NonZeroU32::new(50).expect("not 0"))
}

fn record(controller: &str, session: u64, status: Status) -> Record {
    Record {
        auto: Some(Auto { group: "g".to_owned(), ..Auto::default() }),
        controller: Some(format!("app-health/{controller}")),
        session,
        condition: Some(Condition {
            status,
            reason: ConditionReason::ProbeSucceeded,
            message: String::new(),
            last_probe_time: None,
            last_transition_time: Timestamp::default(),
        }),
        ..Record::default()
    }
}

fn put(controller: &str, session: u64, status: Status) -> DesiredState {
    DesiredState::Put(Box::new(record(controller, session, status)))
}

/// Describes effects as text.
fn describe(effects: &[Effect]) -> Vec<String> {
    let word = |effect: &Effect| match effect {
        Effect::Send(_, request) => match request {
            Request::Read => "read".to_owned(),
            Request::Create(_) => "create".to_owned(),
            Request::Replace(_) => "replace".to_owned(),
            Request::ReplaceStatus(_) => "status".to_owned(),
            Request::Delete { .. } => "delete".to_owned(),
        },
        Effect::Stored(_, write) => format!("stored {write}"),
        Effect::Observed(_, record) => {
            format!("observed {:?}", record.as_ref().map(|record| record.session))
        }
        Effect::ConfigChanged(key) => format!("changed {}", key.name),
    };
    effects.iter().map(word).collect()
}

/// Answers requests until nothing is left to do at `now`; returns all effects as text.
fn settle(writer: &mut EntryWriter, server: &mut Server, now: Duration) -> Vec<String> {
    let mut all = Vec::new();
    loop {
        let effects = writer.step(now);
        if effects.is_empty() {
            return all;
        }
        all.extend(describe(&effects));
        for effect in effects {
            if let Effect::Send(key, request) = effect {
                let answer = server.answer(&request);
                let effects = writer.on_response(now, key, answer);
                all.extend(describe(&effects));
            }
        }
    }
}

#[test]
fn create_then_status_then_stored() {
    let (mut writer, mut server) = (writer("a"), Server::default());
    writer.set_desired(key(), 1, put("a", 1, Status::True));
    assert_eq!(settle(&mut writer, &mut server, Duration::ZERO), ["create", "status", "stored 1"]);
    writer.set_desired(key(), 2, put("a", 1, Status::False));
    writer.set_desired(key(), 3, put("a", 1, Status::True));
    assert_eq!(
        settle(&mut writer, &mut server, Duration::ZERO),
        ["stored 3"],
        "the object already has the newest state"
    );
    writer.set_desired(key(), 4, DesiredState::Delete(1));
    let done = settle(&mut writer, &mut server, Duration::ZERO);
    assert_eq!(done, ["delete", "stored 4"]);
    assert_eq!(server.object, None);
    assert_eq!((writer.pending_count(), writer.next_due()), (0, None));
}

#[test]
fn own_writes_are_not_events_but_others_are() {
    let (mut writer, mut server) = (writer("a"), Server::default());
    writer.set_desired(key(), 1, put("a", 1, Status::True));
    settle(&mut writer, &mut server, Duration::ZERO);
    let own = server.object.clone().expect("it is there");
    assert!(writer.object_changed(key(), own, true).is_empty());
    server.edit(|object| object["metadata"]["labels"] = json!({"x": "y"}));
    assert!(
        writer.object_changed(key(), server.object.clone().expect("it is there"), true).is_empty(),
        "labels are not our fields"
    );
    server.edit(|object| object["status"]["conditions"][0]["status"] = "False".into());
    assert_eq!(
        describe(&writer.object_changed(key(), server.object.clone().expect("it is there"), true)),
        ["observed Some(1)"]
    );
    let last = server.object.take().expect("it is there");
    assert_eq!(describe(&writer.object_changed(key(), last, false)), ["observed None"]);
}

#[test]
fn a_conflict_causes_a_read() {
    let (mut writer, mut server) = (writer("a"), Server::default());
    writer.set_desired(key(), 1, put("a", 1, Status::True));
    settle(&mut writer, &mut server, Duration::ZERO);
    server.edit(|object| {
        object["status"]["conditions"].as_array_mut().expect("some").push(json!({"type": "X"}))
    });
    writer.set_desired(key(), 2, put("a", 1, Status::False));
    assert_eq!(settle(&mut writer, &mut server, Duration::ZERO), ["status", "read", "status", "stored 2"]);
    let object = server.object.expect("it is there");
    assert_eq!(object["status"]["conditions"][1], json!({"type": "X"}));
    assert_eq!(object["status"]["conditions"][0]["status"], "False");
}

#[test]
fn a_conflict_with_a_newer_session_is_reported_to_the_registry() {
    let (mut writer, mut server) = (writer("a"), Server::default());
    writer.set_desired(key(), 1, put("a", 1, Status::True));
    settle(&mut writer, &mut server, Duration::ZERO);
    server.edit(|object| {
        object["metadata"]["annotations"]["app-health.io/session"] = "2".into();
        object["metadata"]["annotations"]["istio.io/workloadController"] = "app-health/b".into();
    });
    writer.set_desired(key(), 2, put("a", 1, Status::False));
    let done = settle(&mut writer, &mut server, Duration::ZERO);
    assert_eq!(done[..2], ["status", "read"]);
    assert!(done[2..].iter().all(|word| word == "observed Some(2)") && done.len() > 2, "{done:?}");
    assert_eq!(writer.pending_count(), 0);
}

#[test]
fn repeated_lost_writes_back_off() {
    let (mut writer, mut server) = (writer("a"), Server::default());
    server.object =
        Some(json!({"metadata": {"name": "a", "namespace": "shop", "uid": "u", "resourceVersion": "3"}}));
    writer.object_changed(key(), server.object.clone().expect("it is there"), true);
    for (write, expected) in [(1, 1), (2, 0)] {
        writer.set_desired(key(), write, put("a", 1, Status::True));
        assert_eq!(settle(&mut writer, &mut server, Duration::ZERO).len(), expected);
    }
    assert_eq!(writer.next_due(), Some(Duration::from_secs(5)));
    assert_eq!(settle(&mut writer, &mut server, Duration::from_secs(5)).len(), 1);
}

#[test]
fn an_unreachable_api_server_gets_single_requests_with_backoff() {
    let mut writer = writer("a");
    for index in 0..100 {
        writer.set_desired(Key::new("shop", format!("e{index}")), index, put("a", 1, Status::True));
    }
    let mut now = Duration::ZERO;
    let mut sent: Vec<Key> = keys(&writer.step(now));
    assert_eq!(sent.len(), 16);
    let mut waits = Vec::new();
    for _ in 0..10 {
        for key in sent.drain(..) {
            writer.on_response(now, key, Err(ApiError::Unreachable(String::new())));
        }
        assert!(writer.is_unreachable() && writer.step(now).is_empty());
        let due = writer.next_due().expect("a next attempt");
        waits.push((due - now).as_millis());
        now = due;
        sent = keys(&writer.step(now));
        assert_eq!(sent.len(), 1);
    }
    assert_eq!(*waits.last().expect("some"), 5000, "{waits:?}");
    assert_eq!(writer.pending_count(), 100, "no write is lost");
    writer.on_response(now, sent.remove(0), Err(ApiError::NotFound));
    assert_eq!(keys(&writer.step(now)).len(), 16, "concurrency is restored");
}

fn keys(effects: &[Effect]) -> Vec<Key> {
    effects
        .iter()
        .filter_map(|effect| if let Effect::Send(key, _) = effect { Some(key.clone()) } else { None })
        .collect()
}

#[test]
fn writes_are_rate_limited() {
    let (mut writer, mut server) = (writer("a"), Server::default());
    writer.set_desired(key(), 1, put("a", 1, Status::True));
    settle(&mut writer, &mut server, Duration::ZERO);
    let mut sent = 0;
    let now = Duration::from_secs(10);
    for index in 0..200 {
        writer.set_desired(Key::new("shop", format!("e{index}")), index + 10, put("a", 1, Status::True));
    }
    for second in 0..3 {
        let now = now + Duration::from_secs(second);
        loop {
            let effects = writer.step(now);
            if effects.is_empty() {
                break;
            }
            for key in keys(&effects) {
                sent += 1;
                writer.on_response(now, key, Err(ApiError::Rejected(String::new())));
            }
        }
        assert_eq!(sent, 50 * (second as usize + 1));
    }
}

#[test]
fn objects_missing_from_a_list_are_read() {
    let (mut writer, mut server) = (writer("a"), Server::default());
    writer.set_desired(key(), 1, put("a", 1, Status::True));
    settle(&mut writer, &mut server, Duration::ZERO);
    writer.list_completed(None, &BTreeSet::new());
    assert_eq!(settle(&mut writer, &mut server, Duration::ZERO), ["read"], "it was created after the list");
    server.object = None;
    writer.list_completed(None, &BTreeSet::new());
    assert_eq!(settle(&mut writer, &mut server, Duration::ZERO), ["read", "observed None"]);
}

#[test]
fn a_deleted_entry_is_created_again_with_its_status() {
    let (mut writer, mut server) = (writer("a"), Server::default());
    writer.set_desired(key(), 1, put("a", 1, Status::True));
    settle(&mut writer, &mut server, Duration::ZERO);
    server.object = None;
    writer.set_desired(key(), 2, put("a", 1, Status::False));
    let done = settle(&mut writer, &mut server, Duration::ZERO);
    assert_eq!(done, ["status", "create", "status", "stored 2"]);
}

#[test]
fn an_edit_of_the_spec_survives_a_pending_write() {
    let (mut writer, mut server) = (writer("a"), Server::default());
    writer.set_desired(key(), 1, put("a", 1, Status::True));
    settle(&mut writer, &mut server, Duration::ZERO);
    // The registry, which does not know of the edit, sees a reconnect and a change of health.
    server.edit(|object| object["spec"]["labels"] = json!({"edited": "yes"}));
    writer.set_desired(key(), 2, put("a", 2, Status::False));
    let done = settle(&mut writer, &mut server, Duration::ZERO);
    assert_eq!(done, ["replace", "read", "observed Some(1)", "replace", "status", "stored 2"]);
    assert_eq!(server.object.expect("it is there")["spec"]["labels"]["edited"], "yes");
}

proptest! {
    /// Whatever is rejected, lost, delayed or written by others: the newest desired state is stored
    /// in the end, and fields of other writers are preserved.
    #[test]
    fn the_newest_desired_state_is_stored_and_foreign_fields_are_preserved(dice in vec(0_u8..12, 1..200)) {
        let (mut writer, mut server) = (writer("a"), Server::default());
        let (mut now, mut write, mut count, mut wanted, mut stored) = (Duration::ZERO, 0, 0, Status::True, 0);
        let mut sent: Vec<(Key, Request)> = Vec::new();
        for die in dice.into_iter().chain([0]).chain([9; 60]) {
            now += Duration::from_millis(700);
            let mut effects = Vec::new();
            match die {
                0..3 => {
                    write += 1;
                    wanted = if die == 1 { Status::True } else { Status::False };
                    writer.set_desired(key(), write, put("a", 1, wanted));
                }
                3 if server.object.is_some() => {
                    count += 1;
                    server.edit(|object| {
                        object["spec"]["count"] = count.into();
                        object["status"]["count"] = count.into();
                    });
                }
                4 => if let Some(object) = server.object.clone() {
                    effects = writer.object_changed(key(), object, true);
                },
                5 => if let Some((key, request)) = sent.pop() {
                    // The request was executed, but the response was lost.
                    let _ = server.answer(&request);
                    effects = writer.on_response(now, key, Err(ApiError::Unreachable(String::new())));
                },
                6 => if let Some((key, _)) = sent.pop() {
                    effects = writer.on_response(now, key, Err(ApiError::Rejected(String::new())));
                },
                _ => if let Some((key, request)) = sent.pop() {
                    let answer = server.answer(&request);
                    effects = writer.on_response(now, key, answer);
                },
            }
            effects.extend(writer.step(now));
            for effect in effects {
                match effect {
                    Effect::Send(key, request) => sent.push((key, request)),
                    Effect::Stored(_, write) => stored = write,
                    Effect::Observed(..) | Effect::ConfigChanged(_) => {}
                }
            }
            prop_assert!(sent.len() <= 1, "one request at a time");
        }
        prop_assert_eq!((stored, writer.pending_count()), (write, 0));
        let object = server.object.expect("it is there");
        let condition = record_of(&object).condition.map(|condition| condition.status);
        prop_assert_eq!(condition, Some(wanted));
        if count > 0 {
            prop_assert_eq!([&object["spec"]["count"], &object["status"]["count"]], [&json!(count), &json!(count)]);
        }
    }
}
