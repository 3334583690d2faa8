//! PURE. What a wish of the brain takes, given the object that is there: the session first, then whose entry it is, then the difference.

use std::collections::BTreeSet;

use serde_json::Value;

use super::object;
use discovery::entries::Record;
use discovery::objects::Key;

/// What should become of an entry; the newest wish is enough.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wish {
    /// It should be so.
    Put(Box<Record>),
    /// It should not be, as far as this session is known.
    Delete(u64),
}

/// Who writes.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    /// This replica's name.
    pub instance: String,
    /// Those that live, oneself among them.
    pub alive: BTreeSet<String>,
}

/// Which of its two parts were written for this wish already. An API server may drop or change what it gets: then it is not asked again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// The spec is not what the wish is about: it stays as it is, however somebody edits it meanwhile.
    pub spec: bool,
    /// Metadata and spec.
    pub main: bool,
    /// Status.
    pub status: bool,
}

/// What to do.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// It is so.
    Done,
    /// It is another's: the brain should look at it again.
    Lost,
    /// Make it.
    Create(Value),
    /// Replace metadata and spec.
    Replace(Value),
    /// Replace the status.
    ReplaceStatus(Value),
    /// Delete exactly this one.
    Delete {
        /// Its uid.
        uid: String,
        /// Its version.
        version: String,
    },
}

/// The next step towards the wish.
pub fn decide(key: &Key, current: Option<&Value>, wish: &Wish, writer: &Writer, written: Written) -> Step {
    match (current, wish) {
        (None, Wish::Delete(_)) => Step::Done,
        (None, Wish::Put(record)) => match &record.auto {
            Some(auto) if is_own(record, writer) => Step::Create(object::created(key, record, auto)),
            // Whose agent is not here, or what a person made, is not ours to bring back.
            _ => Step::Lost,
        },
        (Some(current), _) if object::is_foreign(current) => Step::Lost,
        (Some(current), Wish::Delete(session)) => delete(current, *session, writer),
        (Some(current), Wish::Put(record)) => put(current, record, writer, written),
    }
}

fn is_own(record: &Record, writer: &Writer) -> bool {
    let controller = record.controller.as_deref().and_then(|name| name.strip_prefix(object::OUR_CONTROLLER));
    controller == Some(&writer.instance)
}

fn delete(current: &Value, session: u64, writer: &Writer) -> Step {
    if !object::is_auto(current) {
        return Step::Done;
    }
    let controller = object::annotation(current, object::CONTROLLER).unwrap_or_default();
    let instance = controller.strip_prefix(object::OUR_CONTROLLER).unwrap_or(&writer.instance);
    let lives_elsewhere = instance != writer.instance && writer.alive.contains(instance);
    if object::session(current) > session || lives_elsewhere {
        return Step::Lost;
    }
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    Step::Delete { uid: text(object::uid(current)), version: text(object::version(current)) }
}

fn put(current: &Value, record: &Record, writer: &Writer, written: Written) -> Step {
    let controller = object::annotation(current, object::CONTROLLER);
    let session = object::session(current);
    let same_controller = controller.is_none() || controller == record.controller.as_deref();
    if session > record.session || session == record.session && !same_controller {
        return Step::Lost;
    }
    // On behalf of another one, only if nobody has written since the brain looked.
    let is_begun = written.main || written.status;
    if !(is_own(record, writer) || is_begun) && object::version(current) != record.resource_version.as_deref()
    {
        return Step::Lost;
    }
    if record.auto.is_some() != object::is_auto(current) {
        return Step::Lost;
    }
    if !written.main
        && let Some(object) = object::updated(current, record, !written.spec)
    {
        return Step::Replace(object);
    }
    if !written.status
        && let Some(object) = object::with_status(current, record)
    {
        return Step::ReplaceStatus(object);
    }
    Step::Done
}

#[cfg(test)]
mod tests;
