//! The probes that a rendered bootstrap declares, as the status page shows them: without headers and
//! without queries, which may contain secrets.

use address::without_query;
use probe::{GrpcMode, Handler, PluginConfig, ProbeKind, Scheme};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredProbe {
    pub container: String,
    pub kind: ProbeKind,
    /// What is probed, such as `http :8080/healthz`, `tcp :5432` or `grpc :9000 catalog`.
    pub target: String,
    /// Cluster of Envoy whose connections are the probes of this scheme; `None` if connections are
    /// used again, so that their lifetime is not that of a probe.
    pub cluster: Option<&'static str>,
}

/// Returns the probes of a plugin configuration, in the order of their paths.
pub fn declared_probes(configuration: &str) -> Vec<DeclaredProbe> {
    let Ok(config) = PluginConfig::parse(configuration.as_bytes()) else {
        return Vec::new();
    };
    let probes = config.probers.iter().map(|(path, prober)| {
        let (target, cluster) = target(&prober.handler);
        DeclaredProbe {
            container: path.container().to_owned(),
            kind: path.kind(),
            target,
            cluster: Some(cluster).filter(|_| !config.reuse_connections),
        }
    });
    probes.collect()
}

fn target(handler: &Handler) -> (String, &'static str) {
    match handler {
        Handler::HttpGet(http) => {
            let path = without_query(&http.path);
            let cluster = match http.scheme {
                Scheme::Http => "app_health_http",
                Scheme::Https => "app_health_https",
            };
            (format!("{} :{}{path}", http.scheme.word(), http.port), cluster)
        }
        Handler::TcpSocket(tcp) => (format!("tcp :{}", tcp.port), "app_health_tcp"),
        Handler::Grpc(grpc) => {
            let (scheme, cluster) = match grpc.mode {
                GrpcMode::Plaintext => ("grpc", "app_health_grpc"),
                GrpcMode::Tls => ("grpc+tls", "app_health_grpc_tls"),
            };
            (format!("{scheme} :{} {}", grpc.port, grpc.service).trim_end().to_owned(), cluster)
        }
    }
}

#[cfg(test)]
mod tests;
