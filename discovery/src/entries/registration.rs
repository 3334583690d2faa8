//! Registers new streams: binds them to their entry, or lets them wait for it.

use std::net::{IpAddr, SocketAddr};

use pacing::RateLimiter;

use super::entry::Entry;
use super::name::{self, Target};
use super::stream::{Stream, Wait};
use super::{
    Code, Entries, Event, Identity, Node, PeerAddressCheck, Reason, Refusal, Status, StreamId, content,
};
use crate::objects::Key;

/// Reason why a stream is not bound to an entry.
enum Unbound {
    Pending(Wait, &'static str),
    Refused(Code, Refusal, String),
}

impl Entries {
    pub(super) fn open(&mut self, id: StreamId, peer: SocketAddr, identity: Option<Identity>, node: Node) {
        let target = match name::target(&node) {
            Ok(target) => target,
            Err(text) => return self.refuse(id, Code::InvalidArgument, Refusal::Node, text),
        };
        if let (Some(identity), Some(_)) = (&identity, &target)
            && node.namespace.as_ref() != Some(&identity.namespace)
        {
            let text = format!("NAMESPACE: the certificate is for namespace {}", identity.namespace);
            return self.refuse(id, Code::PermissionDenied, Refusal::Identity, text);
        }
        let stream = Stream {
            opened: self.at.now,
            peer,
            identity,
            node,
            target,
            bound: None,
            waits: None,
            held: None,
            last: None,
            rate: RateLimiter::new(self.settings.report_interval, self.settings.report_burst),
            told: None,
        };
        self.streams.insert(id, stream);
        self.bind(id);
    }

    /// Binds a stream to its entry, or makes it wait for the entry.
    pub(super) fn bind(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if let Some(wait) = stream.waits.take()
            && let Some(waiting) = self.waiting.get_mut(&wait)
        {
            waiting.remove(&id);
            if waiting.is_empty() {
                self.waiting.remove(&wait);
            }
        }
        let Some(target) = stream.target.clone() else { return };
        let bound = match &target {
            Target::Group { group, entry, address } => self.bind_to_group(id, group, entry, *address),
            Target::Entry(key) => self.bind_to_entry(id, key),
        };
        match bound {
            Ok(key) => self.join(id, &key),
            Err(Unbound::Refused(code, refusal, text)) => self.refuse(id, code, refusal, text),
            Err(Unbound::Pending(wait, why)) => self.wait(id, wait, why),
        }
    }

    /// Binds the stream again after its group changed, which updates the entry.
    pub(super) fn bind_again(&mut self, id: StreamId) {
        let Some(Target::Group { group, entry, address }) =
            self.streams.get(&id).and_then(|stream| stream.target.clone())
        else {
            return;
        };
        match self.bind_to_group(id, &group, &entry, address) {
            Ok(key) => {
                self.hello(id);
                self.settle(&key);
                self.arm(&key);
            }
            Err(Unbound::Refused(code, refusal, text)) => self.refuse(id, code, refusal, text),
            Err(Unbound::Pending(wait, why)) => self.wait(id, wait, why),
        }
    }

    fn wait(&mut self, id: StreamId, wait: Wait, why: &'static str) {
        let (Wait::Group(key) | Wait::Entry(key)) = wait.clone();
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.waits = Some(wait.clone());
            stream.unbind();
            self.waiting.entry(wait).or_default().insert(id);
        }
        self.note(Event::Pending { stream: id, key, why });
        self.hello(id);
    }

    fn bind_to_group(
        &mut self,
        id: StreamId,
        group: &Key,
        key: &Key,
        address: IpAddr,
    ) -> Result<Key, Unbound> {
        let Some(group) = self.config.groups.get(group).cloned() else {
            return Err(Unbound::Pending(Wait::Group(group.clone()), "its group does not exist"));
        };
        let Some(stream) = self.streams.get(&id) else { return Ok(key.clone()) };
        may_speak(stream, key, group.group.template.service_account.as_deref())?;
        let entry = self.entries.get(key);
        if entry.is_some_and(Entry::is_foreign) {
            return Err(Unbound::Pending(Wait::Entry(key.clone()), "another controller owns its entry"));
        }
        let is_taken = |entry: &Entry| match &entry.record.auto {
            Some(auto) => auto.group != group.key.name,
            None => entry.manual.is_some(),
        };
        if self.config.entries.contains_key(key) || entry.is_some_and(is_taken) {
            let text = format!("entry {key} exists and does not belong to group {}", group.key.name);
            return Err(Unbound::Refused(Code::FailedPrecondition, Refusal::NameTaken, text));
        }
        let mut auto = content::of(&group, &stream.node, address);
        let is_ours = stream.node.app_health;
        // False if the peer cannot know of a probe that was added to the group later.
        let may_know = is_ours || stream.node.readiness_probe;
        self.check_peer(id, key, Some(address))?;
        let at = self.at;
        let entry = self.entries.entry(key.clone()).or_default();
        let is_mine = entry.is_owned(&self.settings, &self.controller, self.alive.as_ref());
        match &entry.record.auto {
            None => {
                let is_checked = auto.health_checks;
                entry.record.auto = Some(auto);
                if is_checked && entry.record.condition.is_none() {
                    let (status, reason) = (Status::Unknown, Reason::AwaitingFirstReport);
                    entry.set(&self.settings, at, status, reason, "no report yet", None);
                }
            }
            // The Envoy of the workload must not overwrite what its reporting agent has set.
            Some(_) if !is_ours && (entry.reporter.is_some_and(|reporter| reporter != id) || !is_mine) => {}
            Some(old) => {
                // Adding a probe must not remove the endpoint immediately. The entry becomes
                // health-checked with the first probe result, or when none has arrived for too
                // long.
                let expects_verdict = auto.health_checks && !old.health_checks && may_know;
                auto.health_checks = old.health_checks;
                entry.record.auto = Some(auto);
                if expects_verdict {
                    let deadline = at.now + content::verdict_time(group.group.probe.as_ref());
                    entry.verdict.get_or_insert(deadline);
                }
            }
        }
        Ok(key.clone())
    }

    fn bind_to_entry(&mut self, id: StreamId, key: &Key) -> Result<Key, Unbound> {
        let pending = |why| Err(Unbound::Pending(Wait::Entry(key.clone()), why));
        let Some(entry) = self.entries.get(key) else { return pending("its entry does not exist") };
        let Some(spec) = entry.spec().cloned() else { return pending("its entry does not exist") };
        if entry.is_foreign() {
            return pending("another controller owns its entry");
        }
        let Some(stream) = self.streams.get(&id) else { return Ok(key.clone()) };
        let is_ours = stream.node.app_health;
        may_speak(stream, key, spec.service_account.as_deref())?;
        self.check_peer(id, key, spec.address.parse::<IpAddr>().ok())?;
        let at = self.at;
        if let Some(entry) = self.entries.get_mut(key)
            && entry.record.condition.is_none()
            && !entry.is_unchecked()
            && is_ours
        {
            let (status, reason) = (Status::Unknown, Reason::AwaitingFirstReport);
            entry.set(&self.settings, at, status, reason, "no report yet", None);
        }
        Ok(key.clone())
    }

    fn check_peer(&mut self, id: StreamId, key: &Key, address: Option<IpAddr>) -> Result<(), Unbound> {
        let Some(stream) = self.streams.get(&id) else { return Ok(()) };
        let is_same = address.map(|address| address.to_canonical()) == Some(stream.peer_address());
        if is_same || self.settings.peer_address_check == PeerAddressCheck::Off {
            return Ok(());
        }
        let refused = self.settings.peer_address_check == PeerAddressCheck::Require;
        let peer = stream.peer;
        self.note(Event::PeerAddress { key: key.clone(), peer, refused });
        if refused {
            let text = format!("entry {key} does not have the address {}", peer.ip().to_canonical());
            return Err(Unbound::Refused(Code::PermissionDenied, Refusal::PeerAddress, text));
        }
        Ok(())
    }

    /// Adds the stream to the streams of the entry.
    fn join(&mut self, id: StreamId, key: &Key) {
        let at = self.at;
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.bound = Some(key.clone());
        let is_ours = stream.node.app_health;
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.streams.insert(id);
        self.lingering.remove(key);
        let is_mine = entry.record.controller.is_none()
            || entry.is_owned(&self.settings, &self.controller, self.alive.as_ref());
        if is_mine && entry.record.auto.is_some() {
            if entry.record.connected_at.is_none() || entry.record.disconnected_at.is_some() {
                entry.record.connected_at = Some(at.wall);
            }
            entry.record.controller = Some(self.controller.clone());
            entry.record.disconnected_at = None;
        }
        entry.lost = None;
        if is_mine && !is_ours && entry.reporter.is_none() && entry.record.session > 0 {
            // The reporting stream has not been opened again yet.
            let deadline = self.settings.grace_from(at.now, entry.is_restored);
            entry.mute.get_or_insert(deadline);
        }
        self.note(Event::Registered { stream: id, key: key.clone() });
        if is_ours {
            self.begin_session(id, key);
        }
        self.settle(key);
        self.arm(key);
        self.apply_held(id);
    }
}

/// Checks that the stream has the namespace of the entry, and its service account if it has one.
fn may_speak(stream: &Stream, key: &Key, service_account: Option<&str>) -> Result<(), Unbound> {
    if stream.may_speak_for(&key.namespace, service_account) {
        return Ok(());
    }
    let text = format!("entry {key} requires another service account");
    Err(Unbound::Refused(Code::PermissionDenied, Refusal::Identity, text))
}
