//! The declared probes, prepared for requests.

use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Mutex;

use probe::permits::Permits;
use probe::{
    Grpc, GrpcMode, Handler, HookCallers, PluginConfig, ProbePath, Prober, ProxyPorts, Reason, Request,
    Scheme,
};
use prober::Target;

/// The probes of a Pod by path.
#[derive(Debug)]
pub struct DeclaredProbes {
    pub(crate) target: Target,
    /// The Pod's address as in a URL, without brackets.
    pub(crate) pod_ip: String,
    /// The ports that a redirect must not reach.
    pub(crate) proxy_ports: ProxyPorts,
    pub(crate) hook_callers: HookCallers,
    probes: HashMap<String, DeclaredProbe>,
}

#[derive(Debug)]
pub(crate) struct DeclaredProbe {
    pub(crate) path: ProbePath,
    pub(crate) prober: Prober,
    pub(crate) action: Action,
    /// The permits of the node, and those of all other clients.
    pub(crate) permits: [Mutex<Permits>; 2],
    pub(crate) last: Mutex<Option<Reason>>,
}

/// What a probe does.
#[derive(Debug)]
pub(crate) enum Action {
    /// Sends this request first.
    HttpGet(Box<Request>),
    TcpSocket(u16),
    Grpc(Grpc),
}

/// A probe that this build of the agent cannot run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported(String);

impl fmt::Display for Unsupported {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(
            formatter,
            "probers[{:?}]: this build of the agent has no TLS; answer its probes in Envoy with --probes envoy, \
             or use the build for virtual machines",
            self.0
        )
    }
}

impl DeclaredProbes {
    /// Prepares the probes of a configuration. Each connection is made from one of `sources` that has the
    /// family of the Pod's address, if there is one.
    ///
    /// # Errors
    /// If a probe needs TLS, and `has_tls` is false.
    pub fn new(config: PluginConfig, sources: &[IpAddr], has_tls: bool) -> Result<Self, Unsupported> {
        let PluginConfig { pod_ip, proxy_ports, hook_callers, probers, .. } = config;
        // Only a configuration without probes has no address.
        let ip = pod_ip.unwrap_or(IpAddr::from([127, 0, 0, 1]));
        let source = sources.iter().copied().find(|source| source.is_ipv4() == ip.is_ipv4());
        let host = match ip {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        let mut probes = HashMap::new();
        for (path, prober) in probers.iter() {
            if needs_tls(&prober.handler) && !has_tls {
                return Err(Unsupported(path.to_string()));
            }
            let action = match &prober.handler {
                Handler::HttpGet(get) => {
                    Action::HttpGet(Box::new(Request::new(get, &format!("{host}:{}", get.port))))
                }
                Handler::TcpSocket(tcp) => Action::TcpSocket(tcp.port),
                Handler::Grpc(grpc) => Action::Grpc(grpc.clone()),
            };
            let probe = DeclaredProbe {
                path: path.clone(),
                prober: prober.clone(),
                action,
                permits: Default::default(),
                last: Mutex::default(),
            };
            probes.insert(path.to_string(), probe);
        }
        Ok(Self { target: Target { ip, source }, pod_ip: ip.to_string(), proxy_ports, hook_callers, probes })
    }

    pub(crate) fn get(&self, path: &str) -> Option<&DeclaredProbe> {
        self.probes.get(path)
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &ProbePath> {
        self.probes.values().map(|probe| &probe.path)
    }
}

fn needs_tls(handler: &Handler) -> bool {
    match handler {
        Handler::HttpGet(get) => get.scheme == Scheme::Https,
        Handler::TcpSocket(_) => false,
        Handler::Grpc(grpc) => grpc.mode == GrpcMode::Tls,
    }
}

#[cfg(test)]
mod tests;
