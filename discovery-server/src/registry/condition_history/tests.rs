use super::*;
use discovery::entries::{Condition, DeletionReason};

fn key() -> Key {
    Key::new("shop", "pay-1")
}

fn transition(status: Status) -> Event {
    let condition = Condition {
        status,
        reason: ConditionReason::ProbeFailed,
        message: "a long text that is not kept".to_owned(),
        last_probe_time: None,
        last_transition_time: Timestamp::from_seconds(1),
    };
    Event::Transition { key: key(), condition: Some(condition), served: status == Status::True }
}

#[test]
fn the_last_changes_are_kept_until_the_machine_is_deleted() {
    let mut history = ConditionHistory::default();
    for second in 1..=20 {
        let status = if second % 2 == 0 { Status::True } else { Status::False };
        history.record(&transition(status), Timestamp::from_seconds(second));
    }
    let changes = history.of(&key());
    assert_eq!(changes.len(), CAPACITY);
    assert_eq!(changes[0].at, Timestamp::from_seconds(13));
    assert!(changes[7].served && !changes[6].served);
    history
        .record(&Event::Deleted { key: key(), reason: DeletionReason::Removed }, Timestamp::from_seconds(21));
    assert_eq!(history.of(&key()), []);
}
