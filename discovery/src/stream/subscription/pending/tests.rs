use super::*;
use crate::entries::{Settings, Timestamp};
use crate::objects::{Config, LastEndpoint};
use crate::snapshot::SnapshotSettings;

fn snapshot(previous: Option<&Snapshot>) -> Snapshot {
    let (removal_limits, now) = (Settings::default().removal_limits(), Timestamp::default());
    let settings = SnapshotSettings {
        last_endpoint: LastEndpoint::Remove,
        startup_grace: false,
        outbound_listeners: None,
        removal_limits,
        now,
    };
    Snapshot::build(&Config::default(), &mut std::iter::empty(), settings, previous)
}

/// Returns the names, or `None` for all of them.
fn names(pending: &Pending) -> Option<Vec<&str>> {
    match pending.names() {
        Names::All => None,
        Names::Some(names) => Some(names.iter().map(AsRef::as_ref).collect()),
    }
}

#[test]
fn only_what_changed_is_compared() {
    let first = snapshot(None);
    let second = snapshot(Some(&first));
    let mut pending = Pending::default();
    pending.follow(&first);
    assert_eq!(names(&pending), None, "nothing was compared yet");
    pending.set_compared(["blocked".into()].into());
    pending.follow(&second);
    pending.add("requested".into());
    assert_eq!(names(&pending), Some(vec!["blocked", "requested"]));
    pending.set_compared(BTreeSet::new());
    pending.follow(&second);
    assert_eq!(names(&pending), Some(vec![]));
    pending.follow(&snapshot(None));
    assert_eq!(names(&pending), None, "the snapshots are not related");
}
