//! The ports of the proxy itself, which no probe may target.

/// Envoy's and Istio's ports that are always the proxy's own: admin 15000, outbound 15001, the agent's local
/// port 15004, inbound 15006, HBONE 15008 and 15009, probes 15020, readiness 15021, DNS 15053, stats 15090.
pub const ALWAYS: [u16; 10] = [15000, 15001, 15004, 15006, 15008, 15009, 15020, 15021, 15053, 15090];

/// The proxy's own ports: a probe that dialled one of them would probe the proxy, from an address that counts as
/// loopback there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnPorts(Vec<u16>);

impl OwnPorts {
    /// The well-known ports and `more`: the status port and whatever listener was moved.
    pub fn new(more: impl IntoIterator<Item = u16>) -> Self {
        Self(ALWAYS.into_iter().chain(more).collect())
    }

    /// Whether `port` is the proxy's.
    pub fn contains(&self, port: u16) -> bool {
        self.0.contains(&port)
    }
}
