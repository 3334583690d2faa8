//! A response on its way to Envoy: what Envoy receives, and what is known once it has accepted or rejected
//! the response.

use bytes::Bytes;
use xds::{Response, Variant};

use super::{Content, Delivered, TypeState};
use crate::last_good::GoodType;
use crate::names::Mark;

impl TypeState {
    /// Records a response that is sent to Envoy. `good` is the last good configuration. Returns the
    /// encoded fields that follow the message: the nonce, and another version if this one is in use.
    pub(crate) fn deliver(&mut self, mut delivered: Delivered, good: Option<&GoodType>) -> Bytes {
        let mut suffix = Response::nonce_suffix(&delivered.ours.to_string());
        if self.is_version_in_use(&delivered.content, good) {
            delivered.version = format!("{}#{}", delivered.version, delivered.ours);
            suffix = [suffix, Response::version_suffix(&delivered.version)].concat().into();
        }
        if delivered.server.is_some() {
            self.confirm();
        }
        self.wants_answer = false;
        self.last = Some((delivered.ours, delivered.server.clone()));
        if delivered.content.is_cut {
            delivered.content.forget_resources();
        }
        if !self.is_untracked && !self.receives_whole_sets() {
            for name in delivered.content.names() {
                self.names.add(Mark::Delivered, name);
            }
        }
        self.in_flight.push_back(delivered);
        suffix
    }

    /// Returns true if Envoy could not say by this version whether it has accepted the content.
    fn is_version_in_use(&self, content: &Content, good: Option<&GoodType>) -> bool {
        let is_in_use = self.version == content.version
            || self.in_flight.iter().any(|delivered| delivered.version == content.version);
        let is_known = || self.in_flight.is_empty() && good.is_some_and(|good| self.equals(content, good));
        // A resource without a content extends the life of the one with the same version.
        let is_heartbeat = content.resources.iter().any(|new| !new.is_storable);
        self.variant == Variant::Sotw && is_in_use && !is_heartbeat && !is_known()
    }

    /// Returns true if the content is what is stored; all of it if the type is received as whole sets.
    pub(super) fn equals(&self, content: &Content, good: &GoodType) -> bool {
        content.is_stored(good)
            && (self.variant == Variant::Delta || content.version == good.version)
            && (!self.receives_whole_sets() || content.resources.len() == good.len())
    }

    /// Applies an accepted response: to what Envoy holds, and to the last good resources. Returns true if
    /// these may have changed.
    pub(crate) fn accept(&mut self, delivered: Delivered, good: &mut GoodType) -> bool {
        let Delivered { server, content, .. } = delivered;
        let is_whole = self.receives_whole_sets();
        let mut names: Vec<String> = Vec::new();
        if !self.is_untracked && !is_whole {
            names
                .extend(content.resources.iter().map(|new| new.name.clone()).filter(|name| !name.is_empty()));
            for name in &content.removed {
                self.names.remove(Mark::Held, name);
                self.names.remove(Mark::Synced, name);
                self.names.remove(Mark::Delivered, name);
            }
        }
        if self.variant == Variant::Delta {
            names.iter().for_each(|name| self.names.add(Mark::Held, name));
        }
        self.is_synced = is_whole;
        // A response from the cache may follow a newer one that Envoy has unsubscribed from meanwhile.
        let is_changed = server.is_some() || !content.is_stored(good);
        if is_changed {
            content.apply(good, is_whole);
            if !self.is_wildcard {
                good.retain(|name| self.names.has(Mark::Subscribed, name));
            }
        }
        for name in names.iter().filter(|name| good.has(name)) {
            self.names.add(Mark::Synced, name);
        }
        is_changed
    }

    /// Envoy may have applied a part of a rejected response, so what it holds is unknown.
    pub(crate) fn reject(&mut self, delivered: &Delivered) {
        self.is_synced = false;
        if delivered.server.is_none() {
            self.from_cache = None;
        }
        for name in delivered.content.names() {
            self.names.remove(Mark::Synced, name);
            if self.variant == Variant::Delta && !self.is_untracked {
                self.names.add(Mark::Held, name);
            }
        }
    }
}
