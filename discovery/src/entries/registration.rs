//! Registers new streams: binds them to their entry, or lets them wait for it.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use pacing::RateLimiter;

use super::entry::Entry;
use super::name::{self, RegistrationTarget};
use super::registration_limits::Registrant;
use super::streams::{Stream, WaitingFor};
use super::{Code, Entries, Event, Identity, Node, PeerAddressCheck, RejectionReason, StreamId, content};
use crate::objects::Key;

/// Reason why a stream is not bound to an entry.
enum Unbound {
    Pending(WaitingFor, &'static str),
    Rejected(Code, RejectionReason, String),
}

impl Entries {
    pub(super) fn open(&mut self, id: StreamId, peer: SocketAddr, identity: Option<Identity>, node: Node) {
        let target = match name::target(&node, peer.ip().to_canonical()) {
            Ok(target) => target,
            Err(text) => return self.reject(id, Code::InvalidArgument, RejectionReason::Node, text),
        };
        if let (Some(identity), Some(_)) = (&identity, &target)
            && node.namespace.as_ref() != Some(&identity.namespace)
        {
            let text = format!("NAMESPACE: the certificate is for namespace {}", identity.namespace);
            return self.reject(id, Code::PermissionDenied, RejectionReason::Identity, text);
        }
        let rate = RateLimiter::new(self.settings.report_interval, self.settings.report_burst);
        self.streams.insert(id, Stream::new(self.at.now, peer, identity, node, target, rate));
        self.bind(id);
    }

    /// Binds a stream to its entry, or makes it wait for the entry. If the stream is bound already,
    /// because its group changed, the entry is updated.
    pub(super) fn bind(&mut self, id: StreamId) {
        self.streams.stop_waiting(id);
        let Some(stream) = self.streams.get(id) else { return };
        let (is_bound, is_agent) = (stream.bound.is_some(), stream.node.app_health);
        let target = stream.target.clone();
        if let Some(RegistrationTarget::Group { entry: key, .. } | RegistrationTarget::Entry(key)) = &target
            && is_agent
            && !is_bound
            && self.is_session_of_another(id, key)
        {
            return self.reject_supersession(id, key);
        }
        let bound = match target {
            Some(RegistrationTarget::Group { group, entry, address }) => {
                self.bind_to_group(id, &group, &entry, address)
            }
            Some(RegistrationTarget::Entry(key)) if !is_bound => self.bind_to_entry(id, &key),
            _ => return,
        };
        match bound {
            Ok(key) if is_bound => {
                self.hello(id);
                self.reconcile(&key);
            }
            Ok(key) => self.attach(id, &key),
            Err(Unbound::Rejected(code, reason, text)) => self.reject(id, code, reason, text),
            Err(Unbound::Pending(wait, why)) => self.wait(id, wait, why),
        }
    }

    /// Unbinds streams whose entry was deleted or belongs to another controller now, and tries to
    /// bind them again.
    pub(super) fn rebind(&mut self, streams: BTreeSet<StreamId>) {
        for id in streams {
            if let Some(stream) = self.streams.get_mut(id) {
                stream.unbind();
            }
            self.bind(id);
        }
    }

    fn wait(&mut self, id: StreamId, wait: WaitingFor, why: &'static str) {
        let (WaitingFor::Group(key) | WaitingFor::Entry(key)) = wait.clone();
        let stream = self.streams.get(id);
        let left = stream.and_then(|stream| Some((stream.bound.clone()?, stream.opened)));
        self.streams.wait(id, wait);
        self.emit(Event::Pending { stream: id, key, reason: why });
        if let Some((entry, opened)) = left {
            self.leave_entry(id, &entry, opened);
        }
        self.hello(id);
    }

    /// Returns true if a client with another certificate identity, or with none, reports on the
    /// entry. An agent that could supersede it could report for its machine.
    pub(super) fn is_session_of_another(&self, id: StreamId, key: &Key) -> bool {
        let reporter = self.entries.get(key).and_then(|entry| entry.session.reporter());
        let old = reporter.filter(|old| *old != id).and_then(|old| self.streams.get(old));
        old.zip(self.streams.get(id)).is_some_and(|(old, new)| old.identity != new.identity)
    }

    pub(super) fn reject_supersession(&mut self, id: StreamId, key: &Key) {
        let text = format!("an agent with another certificate reports on entry {key}");
        self.reject(id, Code::FailedPrecondition, RejectionReason::Identity, text);
    }

    fn bind_to_group(
        &mut self,
        id: StreamId,
        group: &Key,
        key: &Key,
        address: IpAddr,
    ) -> Result<Key, Unbound> {
        let Some(group) = self.config.groups.get(group).cloned() else {
            return Err(Unbound::Pending(WaitingFor::Group(group.clone()), "its group does not exist"));
        };
        let Some(stream) = self.streams.get(id) else { return Ok(key.clone()) };
        check_identity(stream, key, group.group.template.service_account.as_deref())?;
        let entry = self.entries.get(key);
        if entry.is_some_and(|entry| entry.record.is_foreign()) {
            return Err(Unbound::Pending(
                WaitingFor::Entry(key.clone()),
                "another controller owns its entry",
            ));
        }
        let conflicts = |entry: &Entry| match &entry.record.auto {
            Some(auto) => auto.group != group.key.name,
            None => entry.manual.is_some(),
        };
        if self.config.entries.contains_key(key) || entry.is_some_and(conflicts) {
            let text = format!("entry {key} exists and does not belong to group {}", group.key.name);
            return Err(Unbound::Rejected(Code::FailedPrecondition, RejectionReason::NameTaken, text));
        }
        let mut auto = content::build(&group, &stream.node, address, self.settings.trust_node_labels);
        let is_app_health_agent = stream.node.app_health;
        // False if the peer cannot know of a probe that was added to the group later.
        let can_know_probe = is_app_health_agent || stream.node.readiness_probe;
        let is_bound = stream.bound.is_some();
        let service_account = stream.identity.as_ref().map(|identity| identity.service_account.clone());
        self.check_peer(id, key, Some(address))?;
        let at = self.at;
        let registrant = Registrant { service_account, source: address.into() };
        if self.entries.get(key).is_none_or(|entry| entry.record.auto.is_none()) {
            self.check_limits(key, address, &registrant)
                .map_err(|text| Unbound::Rejected(Code::ResourceExhausted, RejectionReason::Limit, text))?;
        }
        let entry = self.entries.entry(key.clone()).or_default();
        self.registrations.replace(&key.namespace, entry.registrant.as_ref(), Some(&registrant));
        entry.registrant = Some(registrant);
        let is_owned = self.ownership.owns(&entry.record);
        if !auto.health_checks && !is_bound {
            // No report of this workload is expected that could end the condition.
            entry.forget_disconnection();
        }
        match &entry.record.auto {
            None => {
                let is_checked = auto.health_checks;
                entry.record.auto = Some(auto);
                if is_checked && entry.record.condition.is_none() {
                    entry.set_awaiting_first_report(&self.settings, at);
                }
            }
            // The Envoy of the workload must not overwrite what its reporting agent has set.
            Some(_)
                if !is_app_health_agent
                    && (entry.session.reporter().is_some_and(|reporter| reporter != id) || !is_owned) => {}
            Some(old) => {
                // Adding a probe must not remove the endpoint immediately. The entry becomes
                // health-checked with the first probe result, or when none has arrived for too
                // long.
                let expects_verdict = auto.health_checks && !old.health_checks && can_know_probe;
                let is_unreported = is_bound
                    && !old.health_checks
                    && entry.session.reporter().is_none()
                    && entry.record.session > 0;
                auto.health_checks = old.health_checks;
                entry.record.auto = Some(auto);
                if expects_verdict {
                    let within = content::time_to_first_result(group.group.probe.as_ref());
                    entry.liveness.expect_result(at.now + within);
                }
                // The agent is gone that reported while the group had no probe.
                if is_unreported && group.group.probe.is_some() {
                    entry.liveness.expect_report(&self.settings, at.now);
                }
            }
        }
        Ok(key.clone())
    }

    fn bind_to_entry(&mut self, id: StreamId, key: &Key) -> Result<Key, Unbound> {
        let pending = |why| Err(Unbound::Pending(WaitingFor::Entry(key.clone()), why));
        let Some(entry) = self.entries.get(key) else { return pending("its entry does not exist") };
        let Some(spec) = entry.spec().cloned() else { return pending("its entry does not exist") };
        if entry.record.is_foreign() {
            return pending("another controller owns its entry");
        }
        let Some(stream) = self.streams.get(id) else { return Ok(key.clone()) };
        let is_app_health_agent = stream.node.app_health;
        check_identity(stream, key, spec.service_account.as_deref())?;
        self.check_peer(id, key, spec.address.parse::<IpAddr>().ok())?;
        let at = self.at;
        if let Some(entry) = self.entries.get_mut(key)
            && entry.record.condition.is_none()
            && !entry.ignores_health()
            && is_app_health_agent
        {
            entry.set_awaiting_first_report(&self.settings, at);
        }
        Ok(key.clone())
    }

    fn check_peer(&mut self, id: StreamId, key: &Key, address: Option<IpAddr>) -> Result<(), Unbound> {
        let Some(stream) = self.streams.get(id) else { return Ok(()) };
        let (address, peer) = (address.map(|address| address.to_canonical()), stream.peer_address());
        // All loopback addresses are this machine.
        let is_local = peer.is_loopback() && address.is_some_and(|address| address.is_loopback());
        if is_local || address == Some(peer) || self.settings.peer_address_check == PeerAddressCheck::Off {
            return Ok(());
        }
        let refused = self.settings.peer_address_check == PeerAddressCheck::Require;
        let peer = stream.peer;
        self.emit(Event::PeerAddress { key: key.clone(), peer, refused });
        if refused {
            let text = format!(
                "entry {key} does not have the address {} of this client (--peer-address-check)",
                peer.ip().to_canonical()
            );
            return Err(Unbound::Rejected(Code::PermissionDenied, RejectionReason::PeerAddress, text));
        }
        Ok(())
    }

    /// Adds the stream to the streams of the entry.
    fn attach(&mut self, id: StreamId, key: &Key) {
        let at = self.at;
        let Some(stream) = self.streams.get_mut(id) else { return };
        stream.bound = Some(key.clone());
        let is_app_health_agent = stream.node.app_health;
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.session.attach(id);
        self.snapshot_needs.stop_waiting(key);
        let is_owned = entry.record.controller.is_none() || self.ownership.owns(&entry.record);
        if is_owned && entry.record.auto.is_some() {
            if entry.record.connected_at.is_none() || entry.record.disconnected_at.is_some() {
                entry.record.connected_at = Some(at.wall);
            }
            entry.record.controller = Some(self.ownership.controller.clone());
            entry.record.disconnected_at = None;
        }
        entry.liveness.expect_no_stream();
        entry.retention.set_entry_deadline(None);
        if is_owned && !is_app_health_agent && entry.session.reporter().is_none() && entry.record.session > 0
        {
            // The reporting stream has not been opened again yet.
            entry.liveness.expect_report(&self.settings, at.now);
        }
        self.emit(Event::Registered { stream: id, key: key.clone() });
        if is_app_health_agent {
            self.begin_session(id, key);
        }
        self.reconcile(key);
        self.apply_pending(id);
    }
}

/// Checks that the stream has the namespace of the entry, and its service account if it has one.
fn check_identity(stream: &Stream, key: &Key, service_account: Option<&str>) -> Result<(), Unbound> {
    if stream.may_report_on(&key.namespace, service_account) {
        return Ok(());
    }
    let text = format!("entry {key} requires another service account");
    Err(Unbound::Rejected(Code::PermissionDenied, RejectionReason::Identity, text))
}
