//! The plugin configuration that Envoy passes to the filter. The agent validates it before writing
//! it into the bootstrap.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::app_probers::AppProbers;
use crate::json::{self, ConfigError, Json};
use crate::ports::ProxyPorts;

const BYTES: usize = 1 << 20;
const STATUS_PORT: u16 = 15020;

/// A validated plugin configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginConfig {
    /// The Pod's IP address, the only address that is probed; `None` only if no prober is declared.
    pub pod_ip: Option<IpAddr>,
    /// The ports that a probe must not target.
    pub proxy_ports: ProxyPorts,
    /// The clusters of HTTP callouts.
    pub clusters: Clusters,
    /// The clients that may call lifecycle hooks.
    pub hook_callers: HookCallers,
    /// True if probes use a connection to the application again, which kubelet never does.
    pub reuse_connections: bool,
    /// The declared probes and hooks by path.
    pub probers: AppProbers,
    /// One line for each setting that was accepted but ignored.
    pub warnings: Vec<String>,
}

/// The clients that may call lifecycle hooks, besides loopback; `None` allows any client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HookCallers(pub Option<Vec<IpAddr>>);

impl HookCallers {
    /// Returns true if this client may call hooks; `None` is a client whose address is not known. 127.0.0.1
    /// and ::1 always may; other loopback addresses are those from which captured traffic arrives.
    pub fn allow(&self, client: Option<IpAddr>) -> bool {
        const LOOPBACK: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        let Some(callers) = &self.0 else { return true };
        client.is_some_and(|client| LOOPBACK.contains(&client) || callers.contains(&client))
    }
}

/// The names of the Envoy clusters that the filter uses for HTTP callouts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clusters {
    /// The cluster for gRPC checks in plaintext, by default `app_health_grpc`.
    pub grpc: String,
    /// The cluster for gRPC checks over TLS, by default `app_health_grpc_tls`.
    pub grpc_tls: String,
    /// The cluster for gRPC checks in plaintext that use connections again, by default
    /// `app_health_reuse_grpc`.
    pub reuse_grpc: String,
    /// The same over TLS, by default `app_health_reuse_grpc_tls`.
    pub reuse_grpc_tls: String,
    /// The cluster for redirects in plaintext, by default `app_health_callout_http`.
    pub http: String,
    /// The cluster for redirects over TLS, by default `app_health_callout_https`.
    pub https: String,
}

impl PluginConfig {
    /// Parses and validates a configuration of at most 1 MiB; returns the first error in the order
    /// of the keys.
    ///
    /// Shape: `{"podIP": "10.0.0.5", "statusPort": 15020, "reservedPorts": [19000], "clusters":
    /// {"grpc": …, "grpcTLS": …, "reuseGRPC": …, "reuseGRPCTLS": …, "http": …, "https": …},
    /// "reuseConnections": false, "hookCallers": ["10.0.0.1"], "probers": {…} or the same as a string}`.
    /// All fields are optional, but `podIP` is required if there is a prober. An empty text, `null`
    /// and `{}` are a configuration without probers.
    pub fn parse(bytes: &[u8]) -> Result<Self, ConfigError> {
        if bytes.len() > BYTES {
            return Err(ConfigError::too_large("configuration", "1 MiB"));
        }
        let root = match bytes.trim_ascii() {
            b"" => Json::Null,
            _ => Json::parse("configuration", bytes)?,
        };
        let fields = match &root {
            Json::Null => &[],
            Json::Object(fields) => fields.as_slice(),
            _ => {
                return Err(ConfigError::syntax(
                    "configuration",
                    bytes,
                    "must be an object at line 1 column 1",
                ));
            }
        };
        if json::has_duplicate_key(fields, false) {
            return Err(ConfigError::new("configuration", &root, "duplicate key"));
        }
        let clusters = clusters(fields)?;
        let pod_ip = json::field(fields, "podIP", false).map(pod_ip).transpose()?;
        let proxy_ports = proxy_ports(fields)?;
        let reuse_connections = match json::field(fields, "reuseConnections", false) {
            Some(value) => value.boolean("reuseConnections")?,
            None => false,
        };
        let hook_callers = json::field(fields, "hookCallers", false).map(hook_callers).transpose()?;
        let hook_callers = HookCallers(hook_callers);
        let mut warnings = Vec::new();
        let probers = probers(fields, &proxy_ports, &mut warnings)?;
        if pod_ip.is_none() && !probers.is_empty() {
            return Err(ConfigError::new("podIP", &Json::Null, "needed when there are probers"));
        }
        Ok(Self { pod_ip, proxy_ports, clusters, hook_callers, reuse_connections, probers, warnings })
    }
}

fn pod_ip(value: &Json) -> Result<IpAddr, ConfigError> {
    let wrong = || ConfigError::new("podIP", value, "must be an IPv4 or IPv6 address of the pod");
    let Json::String(text) = value else { return Err(wrong()) };
    let address: IpAddr = text.parse().map_err(|_| wrong())?;
    let broadcast = address == IpAddr::from([255, 255, 255, 255]);
    if address.is_unspecified() || address.is_multicast() || broadcast { Err(wrong()) } else { Ok(address) }
}

fn hook_callers(value: &Json) -> Result<Vec<IpAddr>, ConfigError> {
    let caller = |element: &Json| {
        let wrong = || ConfigError::new("hookCallers", element, "must be an IPv4 or IPv6 address");
        let Json::String(text) = element else { return Err(wrong()) };
        text.parse().map_err(|_| wrong())
    };
    value.array("hookCallers")?.iter().map(caller).collect()
}

fn proxy_ports(fields: &[(String, Json)]) -> Result<ProxyPorts, ConfigError> {
    let status = json::field(fields, "statusPort", false);
    let status = status.map_or(Ok(STATUS_PORT), |value| proxy_port(value, "statusPort"))?;
    let mut ports = vec![status];
    if let Some(value) = json::field(fields, "reservedPorts", false) {
        for (index, element) in value.array("reservedPorts")?.iter().enumerate() {
            ports.push(proxy_port(element, &format!("reservedPorts[{index}]"))?);
        }
    }
    Ok(ProxyPorts::new(ports))
}

fn proxy_port(value: &Json, key: &str) -> Result<u16, ConfigError> {
    let port = u16::try_from(value.integer(key)?).ok().filter(|port| *port > 0);
    port.ok_or_else(|| ConfigError::new(key, value, "must be 1 to 65535"))
}

fn clusters(fields: &[(String, Json)]) -> Result<Clusters, ConfigError> {
    let value = json::field(fields, "clusters", false);
    let names = value.map_or(Ok([].as_slice()), |value| value.object("clusters"))?;
    if let Some(value) = value.filter(|_| json::has_duplicate_key(names, false)) {
        return Err(ConfigError::new("clusters", value, "duplicate key"));
    }
    let name = |field: &str, default: &str| match json::field(names, field, false) {
        None => Ok(default.to_owned()),
        Some(value) => {
            let key = format!("clusters.{field}");
            match value.string(&key)? {
                "" => Err(ConfigError::new(key, value, "must be the name of a cluster")),
                name => Ok(name.to_owned()),
            }
        }
    };
    Ok(Clusters {
        grpc: name("grpc", "app_health_grpc")?,
        grpc_tls: name("grpcTLS", "app_health_grpc_tls")?,
        reuse_grpc: name("reuseGRPC", "app_health_reuse_grpc")?,
        reuse_grpc_tls: name("reuseGRPCTLS", "app_health_reuse_grpc_tls")?,
        http: name("http", "app_health_callout_http")?,
        https: name("https", "app_health_callout_https")?,
    })
}

/// Reads the probers from an object, or from a string that holds one, which is the value of
/// `ISTIO_KUBE_APP_PROBERS`.
fn probers(
    fields: &[(String, Json)],
    proxy_ports: &ProxyPorts,
    warnings: &mut Vec<String>,
) -> Result<AppProbers, ConfigError> {
    match json::field(fields, "probers", false) {
        None => Ok(AppProbers::default()),
        Some(Json::String(text)) => AppProbers::parse(text, proxy_ports, warnings),
        Some(table) => AppProbers::read(table, proxy_ports, warnings),
    }
}

#[cfg(test)]
mod tests;
