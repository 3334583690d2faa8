//! Decides which of the instances that share a store handles an entry.

use std::collections::BTreeSet;

use super::{Record, Settings};

/// Prefix of the controller names of app-health instances.
const CONTROLLER_PREFIX: &str = "app-health/";

#[derive(Debug)]
pub(super) struct Ownership {
    /// The controller name of this instance, `app-health/<instance>`.
    pub(super) controller: String,
    is_shared: bool,
    pub(super) live_instances: Option<BTreeSet<String>>,
}

impl Ownership {
    pub(super) fn new(settings: &Settings) -> Self {
        let controller = format!("{CONTROLLER_PREFIX}{}", settings.instance);
        Self { controller, is_shared: settings.shared, live_instances: None }
    }

    /// Returns true if this instance handles the timeouts of the entry: it owns the entry, or the
    /// instance that owns it is not alive.
    pub(super) fn owns(&self, record: &Record) -> bool {
        let Some(controller) = &record.controller else { return !self.is_shared };
        let is_dead = |instance| self.live_instances.as_ref().is_some_and(|live| !live.contains(instance));
        !self.is_shared || *controller == self.controller || Self::instance(record).is_some_and(is_dead)
    }

    /// Returns the name of the app-health instance that owns the entry.
    pub(super) fn instance(record: &Record) -> Option<&str> {
        record.controller.as_deref()?.strip_prefix(CONTROLLER_PREFIX)
    }
}

impl Record {
    /// Returns true if a controller other than app-health owns the entry.
    pub(super) fn is_foreign(&self) -> bool {
        self.controller.as_ref().is_some_and(|controller| !controller.starts_with(CONTROLLER_PREFIX))
    }
}
