//! Processes watch events.

use std::collections::BTreeSet;

use serde_json::Value;
use tracing::{info, warn};

use super::Task;
use crate::store::kubernetes::entry_writer::Effect;
use crate::store::kubernetes::object;
use crate::store::kubernetes::watches::{Kind, WatchEvent, Watched};
use discovery::objects::Key;

impl Task {
    /// Processes one event and returns the effects for the registry.
    pub(super) fn on_watch_event(&mut self, (kind, scope, event): Watched) -> Vec<Effect> {
        let watch = (kind, scope);
        if let WatchEvent::Failed(error) = event {
            if self.failed_watches.get(&watch) != Some(&error) {
                warn!(kind = kind.names().0, error, "watch failed, retrying");
                self.failed_watches.insert(watch, error);
            }
            return Vec::new();
        }
        if self.failed_watches.remove(&watch).is_some() {
            info!(kind = kind.names().0, "watch recovered");
        }
        match event {
            WatchEvent::ListStarted => {
                self.listings.insert(watch, BTreeSet::new());
                Vec::new()
            }
            WatchEvent::ListDone => {
                let listed = self.listings.remove(&watch).unwrap_or_default();
                self.unlisted.remove(&watch);
                self.list_done(kind, watch.1.as_deref(), &listed);
                Vec::new()
            }
            WatchEvent::ListItem(object) => {
                if let (Some(listed), Some(key)) = (self.listings.get_mut(&watch), object::key(&object)) {
                    listed.insert(key);
                }
                self.object_changed(kind, object, true)
            }
            WatchEvent::Applied(object) => self.object_changed(kind, object, true),
            WatchEvent::Deleted(object) => self.object_changed(kind, object, false),
            WatchEvent::Failed(_) => Vec::new(),
        }
    }

    fn list_done(&mut self, kind: Kind, scope: Option<&str>, listed: &BTreeSet<Key>) {
        if kind == Kind::Entry {
            self.writer.list_completed(scope, listed);
            return;
        }
        for key in self.config.missing(kind, scope, listed) {
            self.update_config(kind, &key, None);
        }
    }

    fn object_changed(&mut self, kind: Kind, object: Value, exists: bool) -> Vec<Effect> {
        let Some(key) = object::key(&object) else { return Vec::new() };
        if kind == Kind::Entry {
            return self.writer.object_changed(key, object, exists);
        }
        self.update_config(kind, &key, exists.then_some(&object));
        Vec::new()
    }
}
