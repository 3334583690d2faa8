//! Envoy's listeners, as `/config_dump` of the admin interface shows them, and which drain reaches
//! them.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU16;

use clap::ValueEnum;
use serde::Deserialize;
use serde_json::Value;

/// Paths whose responses [`parse`] reads.
pub const STATIC_LISTENERS: &str = "/config_dump?resource=static_listeners";
pub const DYNAMIC_LISTENERS: &str = "/config_dump?resource=dynamic_listeners";
/// Limit for each of these responses in bytes. A listener of a mesh has some 10 KB.
pub const LIMIT: usize = 16 * 1024 * 1024;
/// Prefix of the statistics of Envoy's internal listeners, which accept connections of Envoy itself.
const INTERNAL_PREFIX: &str = "envoy_internal_";
/// Listeners whose connections are not the application's: those of the generated bootstrap and
/// Envoy's admin listener.
const OWN_LISTENERS: [&str; 4] = ["app_health", "app_health_stats", "admin", "admin.main_thread"];

/// The requests that drain Envoy. With `graceful`, open connections continue; with `skip_exit`, the
/// listeners stay open, so that clients which do not know about the drain yet are not refused.
const DRAIN_ALL: &str = "/drain_listeners?graceful&skip_exit";
const DRAIN_INBOUND: &str = "/drain_listeners?graceful&skip_exit&inboundonly";

/// Which listeners are drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DrainScope {
    /// Every listener except those with traffic_direction OUTBOUND.
    Inbound,
    /// Every listener, regardless of its direction.
    All,
    /// Those with traffic_direction INBOUND, as Istio's agent drains a sidecar. The listeners of Istio's
    /// bootstrap have no direction.
    #[value(skip)]
    Sidecar,
}

/// A listener of the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    pub name: String,
    /// Name in Envoy's statistics; `None` if the configuration does not determine it.
    stat_name: Option<String>,
    direction: Direction,
    /// True if a filter chain takes part in the drain of the listener's direction.
    has_chain_of_direction: bool,
    /// True if a network filter takes part in a drain of all listeners only.
    has_chain_of_all: bool,
    /// True if connections of a filter chain take part in no drain.
    has_undrained_chain: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Inbound,
    Outbound,
    Unspecified,
}

/// How to drain Envoy, and which connections the drain waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrainPlan {
    /// Path for Envoy's admin interface.
    pub path: &'static str,
    /// Names in Envoy's statistics of the listeners that are not drained.
    undrained: BTreeSet<String>,
}

impl DrainPlan {
    /// Envoy can drain either its inbound listeners or all. With the scope `inbound`, outbound
    /// listeners are spared if no other listener needs the drain of all. If the listeners are
    /// unknown, all are drained, so that no connection is cut that could have been closed.
    pub fn new(scope: DrainScope, listeners: Option<&[Listener]>) -> Self {
        if scope == DrainScope::Sidecar {
            let is_inbound = |listener: &&Listener| listener.direction == Direction::Inbound;
            let (inbound, others): (Vec<_>, Vec<_>) = listeners.into_iter().flatten().partition(is_inbound);
            let name = |listener: &Listener| listener.stat_name.clone();
            let mut undrained: BTreeSet<String> = others.into_iter().filter_map(name).collect();
            inbound.into_iter().filter_map(name).for_each(|name| drop(undrained.take(&name)));
            return Self { path: DRAIN_INBOUND, undrained };
        }
        let (DrainScope::Inbound, Some(listeners)) = (scope, listeners) else {
            return Self { path: DRAIN_ALL, undrained: BTreeSet::new() };
        };
        let (outbound, drained): (Vec<_>, Vec<_>) =
            listeners.iter().partition(|listener| listener.direction == Direction::Outbound);
        let is_all = drained.iter().any(|listener| listener.needs_drain_of_all());
        let mut undrained: BTreeSet<String> =
            outbound.into_iter().filter_map(|listener| listener.stat_name.clone()).collect();
        for listener in drained {
            // Listeners can share a name in the statistics.
            listener.stat_name.as_ref().map(|name| undrained.remove(name));
        }
        Self { path: if is_all { DRAIN_ALL } else { DRAIN_INBOUND }, undrained }
    }

    /// Returns the number of connections that a drain waits for: the sum of
    /// `listener.*.downstream_cx_active` over the user's listeners that are drained. Statistics of
    /// single workers are skipped, because the listener's total includes them. Returns `None` if a
    /// line is malformed or if there are no lines.
    pub fn open_connections(&self, stats: &str) -> Option<u64> {
        let mut sum = None;
        for line in stats.lines() {
            let (name, value) = line.split_once(": ")?;
            let listener = name.strip_prefix("listener.")?.strip_suffix(".downstream_cx_active")?;
            let value: u64 = value.parse().ok()?;
            let is_part = listener.rsplit('.').next().is_some_and(|last| last.starts_with("worker_"));
            let is_counted = !is_part && !is_own(listener) && !self.undrained.contains(listener);
            sum = Some(sum.unwrap_or(0) + if is_counted { value } else { 0 });
        }
        sum
    }
}

fn is_own(listener: &str) -> bool {
    OWN_LISTENERS.contains(&listener) || listener.starts_with(INTERNAL_PREFIX)
}

impl Listener {
    fn needs_drain_of_all(&self) -> bool {
        self.has_chain_of_all || self.lacks_direction()
    }

    /// Returns true if only the drain of all listeners reaches it, because it has no direction.
    fn lacks_direction(&self) -> bool {
        self.direction == Direction::Unspecified && self.has_chain_of_direction
    }
}

/// What an operator should know if the listeners are unknown with the scope `inbound`: at the
/// start, and at the drain.
pub const UNKNOWN_AT_START: &str = "envoy's listeners are unknown: /config_dump of its admin interface did not return them in time, or more than 16 MiB; \
     if it does not return them at the drain either, --drain-scope inbound drains outbound listeners too";
pub const UNKNOWN_AT_DRAIN: &str =
    "envoy's listeners are unknown: --drain-scope inbound drains outbound listeners too";

/// Returns what an operator should know about the drain of these listeners, one line each.
pub fn warnings(scope: DrainScope, listeners: &[Listener]) -> Vec<String> {
    if scope == DrainScope::Sidecar {
        return Vec::new();
    }
    let is_outbound = |listener: &&Listener| listener.direction == Direction::Outbound;
    let (spared, drained): (Vec<_>, Vec<_>) =
        listeners.iter().partition(|listener| scope == DrainScope::Inbound && is_outbound(listener));
    let names = |chosen: &dyn Fn(&Listener) -> bool| {
        let chosen = drained.iter().filter(|listener| chosen(listener));
        chosen.map(|listener| listener.name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let mut warnings = Vec::new();
    let undrained = names(&|listener| listener.has_undrained_chain);
    if !undrained.is_empty() {
        warnings.push(format!(
            "no drain closes the connections of these listeners, because they are not HTTP: {undrained}; a drain waits for \
             their clients to close them, at most until --drain-deadline-seconds"
        ));
    }
    let unspecified = names(&|listener| listener.lacks_direction() && !listener.has_chain_of_all);
    if !spared.is_empty() && !unspecified.is_empty() {
        warnings.push(format!(
            "listeners without traffic_direction: {unspecified}; Envoy can drain them only together with the outbound \
             listeners; set traffic_direction: INBOUND to drain them alone"
        ));
    }
    warnings
}

/// Returns the user's listeners from the responses to [`STATIC_LISTENERS`] and
/// [`DYNAMIC_LISTENERS`]; `None` if a response does not come from Envoy.
pub fn parse(responses: [&str; 2]) -> Option<Vec<Listener>> {
    let mut listeners = Vec::new();
    for response in responses {
        let dump: Dump = serde_json::from_str(response).ok()?;
        for RawEntry { listener, active_state, draining_state } in dump.configs {
            let states = [active_state, draining_state].into_iter().flatten();
            let raw = listener.into_iter().chain(states.filter_map(|state| state.listener));
            listeners.extend(raw.map(Listener::from));
        }
    }
    listeners.retain(|listener| !listener.stat_name.as_deref().is_some_and(is_own));
    Some(listeners)
}

#[derive(Deserialize)]
struct Dump {
    /// Absent if there are no listeners of the kind.
    #[serde(default)]
    configs: Vec<RawEntry>,
}

/// A static listener, or the states of a dynamic one.
#[derive(Deserialize)]
struct RawEntry {
    listener: Option<RawListener>,
    active_state: Option<RawState>,
    draining_state: Option<RawState>,
}

#[derive(Deserialize)]
struct RawState {
    listener: Option<RawListener>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawListener {
    name: String,
    stat_prefix: String,
    traffic_direction: String,
    address: RawAddress,
    internal_listener: Option<Value>,
    filter_chains: Vec<RawChain>,
    default_filter_chain: Option<RawChain>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawAddress {
    socket_address: Option<SocketAddressFields>,
    pipe: Option<Pipe>,
}

#[derive(Deserialize)]
struct SocketAddressFields {
    address: String,
    /// Absent if the port has a name.
    #[serde(default)]
    port_value: u16,
}

#[derive(Deserialize)]
struct Pipe {
    path: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawChain {
    filters: Vec<RawFilter>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawFilter {
    typed_config: RawType,
}

#[derive(Deserialize, Default)]
struct RawType {
    #[serde(rename = "@type", default)]
    url: String,
}

impl From<RawListener> for Listener {
    fn from(raw: RawListener) -> Self {
        let chains = raw.filter_chains.iter().chain(&raw.default_filter_chain);
        let reaches: Vec<DrainReach> = chains.map(DrainReach::of).collect();
        Self {
            stat_name: raw.stat_name(),
            direction: match raw.traffic_direction.as_str() {
                "INBOUND" => Direction::Inbound,
                "OUTBOUND" => Direction::Outbound,
                _ => Direction::Unspecified,
            },
            // A listener without chains receives them over xDS.
            has_chain_of_direction: reaches.is_empty() || reaches.contains(&DrainReach::OfDirection),
            has_chain_of_all: reaches.contains(&DrainReach::OfAll),
            has_undrained_chain: reaches.contains(&DrainReach::Never),
            name: if raw.name.is_empty() { "(no name)".to_owned() } else { raw.name },
        }
    }
}

impl RawListener {
    fn stat_name(&self) -> Option<String> {
        if self.internal_listener.is_some() {
            return Some(format!("{INTERNAL_PREFIX}{}", self.name));
        }
        if !self.stat_prefix.is_empty() {
            return Some(sanitized(&self.stat_prefix));
        }
        match &self.address {
            RawAddress { socket_address: Some(SocketAddressFields { address, port_value }), .. } => {
                // The kernel chooses the port 0, and a port with a name has none here.
                let (ip, port): (IpAddr, _) = (address.parse().ok()?, NonZeroU16::new(*port_value)?);
                Some(sanitized(&SocketAddr::new(ip, port.get()).to_string()))
            }
            RawAddress { pipe, .. } => Some(sanitized(&pipe.as_ref()?.path)),
        }
    }
}

/// Replaces what Envoy replaces in names of statistics.
fn sanitized(name: &str) -> String {
    name.replace("://", "_").replace(":/", "_").replace([':', '\0'], "_")
}

/// Which drain makes Envoy close the connections of a filter chain. This depends on the terminal
/// filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DrainReach {
    /// One of the listener's direction: HTTP.
    OfDirection,
    /// One of all listeners, whatever the direction of this listener is.
    OfAll,
    /// None: TCP connections end when a peer closes them.
    Never,
}

impl DrainReach {
    fn of(chain: &RawChain) -> Self {
        let Some(terminal) = chain.filters.last() else { return Self::OfDirection };
        match terminal.typed_config.url.rsplit('.').next().unwrap_or_default() {
            "HttpConnectionManager" => Self::OfDirection,
            "RedisProxy" | "MongoProxy" | "ThriftProxy" | "GenericProxy" => Self::OfAll,
            // A filter whose configuration Envoy receives over xDS is not known here.
            "" => Self::OfDirection,
            _ => Self::Never,
        }
    }
}

#[cfg(test)]
mod tests;
