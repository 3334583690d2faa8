//! Decides the next API request for the desired state of an entry, given the current object. The
//! session is compared first, then the owner of the entry, then the content.

use std::collections::BTreeSet;

use serde_json::Value;

use super::object;
use super::request::Request;
use discovery::entries::Record;
use discovery::objects::Key;

/// Desired state of an entry; only the newest one matters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DesiredState {
    /// The entry should exist with this record.
    Put(Box<Record>),
    /// The entry should be deleted, unless its session is newer than this one.
    Delete(u64),
}

/// The replica that writes.
#[derive(Clone, Debug, Default)]
pub struct ReplicaContext {
    pub instance: String,
    /// Instances that are alive, including this one.
    pub alive: BTreeSet<String>,
}

/// Which parts were already written for this desired state. An API server may drop or change what
/// is written to it; then the part is not written again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AppliedParts {
    /// True if the desired state does not concern the spec, which then stays as it is, whatever
    /// else edits it.
    pub spec: bool,
    /// True if metadata and spec were written.
    pub main: bool,
    /// True if the status was written.
    pub status: bool,
}

impl AppliedParts {
    /// Both parts may have to be written again.
    pub fn reset(&mut self) {
        *self = Self { spec: self.spec, ..Self::default() };
    }
}

/// Next action for an entry.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// The object has the desired state.
    UpToDate,
    /// Another replica or controller owns the entry: the registry must decide again.
    OwnedByOther,
    Send(Request),
}

/// Returns the next step towards the desired state.
pub fn decide(
    key: &Key,
    current: Option<&Value>,
    desired: &DesiredState,
    replica: &ReplicaContext,
    applied: AppliedParts,
) -> Step {
    match (current, desired) {
        (None, DesiredState::Delete(_)) => Step::UpToDate,
        (None, DesiredState::Put(record)) => match &record.auto {
            Some(auto) if is_ours(record, replica) && record.disconnected_at.is_none() => {
                Step::Send(Request::Create(object::created(key, record, auto)))
            }
            // An entry is not created again if its agent is connected to another replica or to none:
            // another replica may have deleted it. Nor if a user created it.
            _ => Step::OwnedByOther,
        },
        (Some(current), _) if object::is_foreign(current) => Step::OwnedByOther,
        (Some(current), DesiredState::Delete(session)) => delete(current, *session, replica),
        (Some(current), DesiredState::Put(record)) => put(current, record, replica, applied),
    }
}

fn is_ours(record: &Record, replica: &ReplicaContext) -> bool {
    let controller = record.controller.as_deref().and_then(|name| name.strip_prefix(object::OUR_CONTROLLER));
    controller == Some(&replica.instance)
}

fn delete(current: &Value, session: u64, replica: &ReplicaContext) -> Step {
    if !object::is_auto(current) {
        return Step::UpToDate;
    }
    let controller = object::annotation(current, object::CONTROLLER).unwrap_or_default();
    let instance = controller.strip_prefix(object::OUR_CONTROLLER).unwrap_or(&replica.instance);
    let is_owner_alive = instance != replica.instance && replica.alive.contains(instance);
    if object::session(current) > session || is_owner_alive {
        return Step::OwnedByOther;
    }
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    Step::Send(Request::Delete { uid: text(object::uid(current)), version: text(object::version(current)) })
}

fn put(current: &Value, record: &Record, replica: &ReplicaContext, applied: AppliedParts) -> Step {
    let controller = object::annotation(current, object::CONTROLLER);
    let session = object::session(current);
    let same_controller = controller.is_none() || controller == record.controller.as_deref();
    if session > record.session || session == record.session && !same_controller {
        return Step::OwnedByOther;
    }
    // A write on behalf of another replica is allowed only if the object is unchanged since the
    // registry read it.
    let is_begun = applied.main || applied.status;
    if !(is_ours(record, replica) || is_begun)
        && object::version(current) != record.resource_version.as_deref()
    {
        return Step::OwnedByOther;
    }
    if record.auto.is_some() != object::is_auto(current) {
        return Step::OwnedByOther;
    }
    let main = || object::updated(current, record, !applied.spec).filter(|_| !applied.main);
    let status = || object::with_status(current, record).filter(|_| !applied.status);
    if needs_status_first(current, record)
        && let Some(object) = status()
    {
        return Step::Send(Request::ReplaceStatus(object));
    }
    if let Some(object) = main() {
        return Step::Send(Request::Replace(object));
    }
    status().map_or(Step::UpToDate, |object| Step::Send(Request::ReplaceStatus(object)))
}

/// True if the metadata without the condition would remove the endpoint from the other replicas, which see
/// the object between the two writes. A new session is always written first, because it says which replica
/// owns the entry.
fn needs_status_first(current: &Value, record: &Record) -> bool {
    let known = object::record(current);
    let is_checked = |record: &Record| record.auto.as_ref().is_some_and(|auto| auto.health_checks);
    let is_explained = known.before.is_some() && record.before.is_none();
    let becomes_checked = known.condition.is_none() && !is_checked(&known) && is_checked(record);
    (is_explained || becomes_checked)
        && known.session == record.session
        && known.controller == record.controller
}

/// True if the desired state changes what other components act on, not only informative fields.
pub fn is_urgent(current: Option<&Value>, desired: &DesiredState) -> bool {
    let (Some(current), DesiredState::Put(record)) = (current, desired) else { return true };
    let known = object::record(current);
    let status =
        |record: &Record| record.condition.as_ref().map(|condition| (condition.status, condition.reason));
    known.session != record.session
        || known.controller != record.controller
        || known.auto != record.auto
        || status(&known) != status(record)
}

#[cfg(test)]
mod tests;
