//! State of an open stream.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use pacing::RateLimiter;
use workload_health::State;

use super::name::RegistrationTarget;
use super::{Identity, Node, Report};
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
    pub(super) waiting_for: Option<WaitingFor>,
    /// The newest report that has not been applied yet.
    pub(super) pending_report: Option<Report>,
    /// Epoch, generation and state of the newest report of an app-health agent, applied or not. It stays
    /// when the entry is deleted, and with it what the entry has accepted.
    pub(super) newest: Option<(String, u64, State)>,
    /// The last report of an Istio reporter, which does not repeat it by itself.
    pub(super) last_istio_report: Option<Report>,
    pub(super) rate: RateLimiter,
    /// Session and group in the last hello.
    pub(super) last_hello: Option<(u64, Option<Arc<Group>>)>,
}

impl Stream {
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
