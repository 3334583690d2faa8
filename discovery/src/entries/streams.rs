//! The open streams, and what those that are not bound to an entry wait for.

use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use pacing::RateLimiter;
use workload_health::Report;

use super::name::RegistrationTarget;
use super::session::NewestReport;
use super::{Identity, Node, StreamId};
use crate::objects::{Group, Key};

/// The object that an unbound stream waits for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WaitingFor {
    Group(Key),
    Entry(Key),
}

#[derive(Debug)]
pub(super) struct Stream {
    pub(super) opened: Duration,
    pub(super) peer: SocketAddr,
    pub(super) identity: Option<Identity>,
    pub(super) node: Node,
    /// `None` for a client that only subscribes to clusters and endpoints.
    pub(super) target: Option<RegistrationTarget>,
    /// The entry that the stream is bound to; absent while it waits.
    pub(super) bound: Option<Key>,
    /// Set while the stream waits to be bound.
    waiting_for: Option<WaitingFor>,
    /// The newest report that has not been applied yet.
    pub(super) pending_report: Option<Report>,
    /// The newest report of an app-health agent, applied or not. It stays when the entry is deleted,
    /// and with it what the entry has accepted.
    pub(super) newest: NewestReport,
    /// The last report of an Istio reporter, which does not repeat it by itself.
    pub(super) last_istio_report: Option<Report>,
    pub(super) rate: RateLimiter,
    /// Session and group in the last hello.
    pub(super) last_hello: Option<(u64, Option<Arc<Group>>)>,
}

impl Stream {
    pub(super) fn new(
        opened: Duration,
        peer: SocketAddr,
        identity: Option<Identity>,
        node: Node,
        target: Option<RegistrationTarget>,
        rate: RateLimiter,
    ) -> Self {
        Self {
            opened,
            peer,
            identity,
            node,
            target,
            bound: None,
            waiting_for: None,
            pending_report: None,
            newest: NewestReport::default(),
            last_istio_report: None,
            rate,
            last_hello: None,
        }
    }

    /// Returns true if the peer may report on a workload of this namespace and service account.
    pub(super) fn may_report_on(&self, namespace: &str, service_account: Option<&str>) -> bool {
        let (own_namespace, own) = match &self.identity {
            Some(identity) => (Some(identity.namespace.as_str()), Some(identity.service_account.as_str())),
            // Without a certificate, the metadata is trusted.
            None => (self.node.namespace.as_deref(), self.node.service_account.as_deref()),
        };
        let account = match (service_account.filter(|account| !account.is_empty()), own) {
            (Some(wanted), Some(own)) => wanted == own,
            (Some(_), None) => self.identity.is_none(),
            (None, _) => true,
        };
        own_namespace == Some(namespace) && account
    }

    /// Unbinds the stream from its entry. The last report of an Istio reporter applies to the next
    /// entry; an app-health agent repeats its report by itself.
    pub(super) fn unbind(&mut self) {
        if self.bound.take().is_some() && self.pending_report.is_none() {
            self.pending_report = self.last_istio_report.clone();
        }
    }

    /// Returns the peer's address, with IPv4-mapped IPv6 addresses as IPv4.
    pub(super) fn peer_address(&self) -> IpAddr {
        self.peer.ip().to_canonical()
    }
}

/// The open streams, and an index of those that wait.
#[derive(Debug, Default)]
pub(super) struct Streams {
    open: HashMap<StreamId, Stream>,
    waiting: BTreeSet<(WaitingFor, StreamId)>,
}

impl Streams {
    pub(super) fn insert(&mut self, id: StreamId, stream: Stream) {
        self.open.insert(id, stream);
    }

    pub(super) fn get(&self, id: StreamId) -> Option<&Stream> {
        self.open.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        self.open.get_mut(&id)
    }

    pub(super) fn remove(&mut self, id: StreamId) -> Option<Stream> {
        self.stop_waiting(id);
        self.open.remove(&id)
    }

    /// Unbinds a stream, which waits from here on.
    pub(super) fn wait(&mut self, id: StreamId, wait: WaitingFor) {
        if let Some(stream) = self.open.get_mut(&id) {
            stream.waiting_for = Some(wait.clone());
            stream.unbind();
            self.waiting.insert((wait, id));
        }
    }

    pub(super) fn stop_waiting(&mut self, id: StreamId) {
        if let Some(wait) = self.open.get_mut(&id).and_then(|stream| stream.waiting_for.take()) {
            self.waiting.remove(&(wait, id));
        }
    }

    pub(super) fn waiting_for(&self, wait: &WaitingFor) -> Vec<StreamId> {
        let range = (wait.clone(), StreamId::MIN)..=(wait.clone(), StreamId::MAX);
        self.waiting.range(range).map(|(_, id)| *id).collect()
    }

    /// Applies that the process was suspended, which counts as a restart: all streams are new.
    pub(super) fn resumed(&mut self, now: Duration) {
        self.open.values_mut().for_each(|stream| stream.opened = now);
    }
}
