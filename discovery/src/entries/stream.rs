//! A stream and how fast it may report.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use super::name::Target;
use super::{Identity, Node, Report};
use crate::objects::{Group, Key};

/// What a pending stream waits for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Wait {
    Group(Key),
    Entry(Key),
}

/// An open stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) opened: Duration,
    pub(super) peer: SocketAddr,
    pub(super) identity: Option<Identity>,
    pub(super) node: Node,
    /// `None`: a client for clusters and endpoints.
    pub(super) target: Option<Target>,
    /// Its entry; absent while it is pending.
    pub(super) bound: Option<Key>,
    /// Under what it is found while it is pending.
    pub(super) waits: Option<Wait>,
    /// The newest report that could not be applied yet.
    pub(super) held: Option<Report>,
    /// What a plain reporter said last: of itself it says it only once.
    pub(super) last: Option<Report>,
    pub(super) rate: Rate,
    /// What the last hello said.
    pub(super) told: Option<(u64, Option<Arc<Group>>)>,
}

impl Stream {
    /// Whether this peer may speak for a workload of this service account.
    pub(super) fn may_speak_for(&self, namespace: &str, service_account: Option<&str>) -> bool {
        let (own_namespace, own) = match &self.identity {
            Some(identity) => (Some(identity.namespace.as_str()), Some(identity.service_account.as_str())),
            // Without a certificate the metadata is believed.
            None => (self.node.namespace.as_deref(), self.node.service_account.as_deref()),
        };
        let account = match (service_account.filter(|account| !account.is_empty()), own) {
            (Some(wanted), Some(own)) => wanted == own,
            (Some(_), None) => self.identity.is_none(),
            (None, _) => true,
        };
        own_namespace == Some(namespace) && account
    }

    /// It has no entry any more. The next one hears what was said of this one, unless our agent says it again by itself.
    pub(super) fn unbind(&mut self) {
        if self.bound.take().is_some() && self.held.is_none() {
            self.held = self.last.clone();
        }
    }

    /// The peer's address as IPv4 where it is one.
    pub(super) fn peer_address(&self) -> IpAddr {
        self.peer.ip().to_canonical()
    }
}

/// Generic cell rate: the time by which everything that was let through would be paid for.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate(Duration);

impl Rate {
    /// Whether one more may pass at `now`; if not, when.
    pub(super) fn pass(&mut self, now: Duration, interval: Duration, burst: u32) -> Result<(), Duration> {
        let paid = self.0.max(now);
        let credit = interval * burst.saturating_sub(1);
        if paid > now + credit {
            return Err(paid - credit);
        }
        self.0 = paid + interval;
        Ok(())
    }
}
