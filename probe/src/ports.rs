//! The ports of the proxy, which no probe may target.

/// The ports of Envoy and Istio that always belong to the proxy: Envoy admin 15000, outbound 15001,
/// the agent's local server 15004, inbound 15006, HBONE 15008 and 15009, probes 15020,
/// readiness 15021, DNS 15053, Prometheus statistics 15090.
pub const PROXY_PORTS: [u16; 10] = [15000, 15001, 15004, 15006, 15008, 15009, 15020, 15021, 15053, 15090];

/// The ports of the proxy. A probe of one of them would reach the proxy instead of the application,
/// from an address that the proxy treats as loopback.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyPorts(Vec<u16>);

impl ProxyPorts {
    /// Returns [`PROXY_PORTS`] plus `more`, which holds the status port and the ports of relocated
    /// listeners.
    pub fn new(more: impl IntoIterator<Item = u16>) -> Self {
        Self(PROXY_PORTS.into_iter().chain(more).collect())
    }

    /// Returns true if `port` belongs to the proxy.
    pub fn contains(&self, port: u16) -> bool {
        self.0.contains(&port)
    }
}
