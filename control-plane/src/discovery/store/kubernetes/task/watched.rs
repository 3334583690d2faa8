//! Processes watch events.

use std::collections::BTreeSet;

use serde_json::Value;
use tracing::{info, warn};

use super::Task;
use crate::discovery::store::kubernetes::object;
use crate::discovery::store::kubernetes::watches::{Kind, Seen, Watched};
use crate::discovery::store::kubernetes::writes::Effect;
use discovery::objects::Key;

impl Task {
    /// Processes one event and returns the effects for the registry.
    pub(super) fn watched(&mut self, (kind, scope, seen): Watched) -> Vec<Effect> {
        let place = (kind, scope);
        if let Seen::Broken(error) = seen {
            if self.broken.get(&place) != Some(&error) {
                warn!(kind = kind.words().0, error, "watch failed, retrying");
                self.broken.insert(place, error);
            }
            return Vec::new();
        }
        if self.broken.remove(&place).is_some() {
            info!(kind = kind.words().0, "watch recovered");
        }
        match seen {
            Seen::Listing => {
                self.listings.insert(place, BTreeSet::new());
                Vec::new()
            }
            Seen::Complete => {
                let listed = self.listings.remove(&place).unwrap_or_default();
                self.waiting.remove(&place);
                self.complete(kind, place.1.as_deref(), &listed);
                Vec::new()
            }
            Seen::Listed(object) => {
                if let (Some(listed), Some(key)) = (self.listings.get_mut(&place), object::key(&object)) {
                    listed.insert(key);
                }
                self.changed(kind, object, true)
            }
            Seen::Is(object) => self.changed(kind, object, true),
            Seen::Gone(object) => self.changed(kind, object, false),
            Seen::Broken(_) => Vec::new(),
        }
    }

    fn complete(&mut self, kind: Kind, scope: Option<&str>, listed: &BTreeSet<Key>) {
        if kind == Kind::Entry {
            self.writes.listed(scope, listed);
            return;
        }
        for key in self.configuration.missing(kind, scope, listed) {
            self.configured(kind, &key, None);
        }
    }

    fn changed(&mut self, kind: Kind, object: Value, is_there: bool) -> Vec<Effect> {
        let Some(key) = object::key(&object) else { return Vec::new() };
        match (kind, is_there) {
            (Kind::Entry, true) => self.writes.seen(key, object),
            (Kind::Entry, false) => self.writes.gone(key, object),
            (_, is_there) => {
                self.configured(kind, &key, is_there.then_some(&object));
                Vec::new()
            }
        }
    }
}
