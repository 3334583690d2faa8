//! A real Envoy that gets clusters and endpoints from discovery and routes requests to the service.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use serde_json::{Value, json};

use super::certificates::{DISCOVERY_NAME, Files};
use super::documents::{CLUSTER, HOST, NAMESPACE};
use crate::caller::{self, Answer};
use crate::envoy::{Envoy, Version};
use crate::example;

/// The port of the service in `envoy-config/vm/config/payments.yaml`, and the name of its cluster.
pub const EXAMPLE_PORT: u16 = 10000;
const EXAMPLE_CLUSTER: &str = "outbound|10000||payments.shop.example.com";
/// The name of a cluster that the user defines statically.
const STATIC_CLUSTER: &str = "payments";

#[derive(Clone, Debug)]
pub struct Subscription {
    /// The address of the ADS port.
    pub discovery: SocketAddr,
    /// Whether to use the incremental variant instead of state of the world.
    pub delta: bool,
    /// Whether clusters come by CDS; otherwise the only one is static, of type EDS.
    pub dynamic: bool,
    /// Whether Envoy also subscribes to listeners and waits for them, as that of Istio's agent does.
    pub listeners: bool,
    /// The certificates, if the port requires TLS.
    pub tls: Option<Files>,
    pub version: Version,
}

impl Subscription {
    /// Uses CDS and EDS in plaintext, state of the world.
    pub fn sotw(discovery: SocketAddr) -> Self {
        Self { discovery, delta: false, dynamic: true, listeners: false, tls: None, version: Version::Newest }
    }

    /// Uses CDS and EDS in plaintext, incremental.
    pub fn delta(discovery: SocketAddr) -> Self {
        Self { delta: true, ..Self::sotw(discovery) }
    }

    /// Returns the bootstrap of an Envoy that listens at `listener` and has its admin socket in
    /// `folder`.
    pub fn bootstrap(&self, name: &str, listener: SocketAddr, folder: &Path) -> Value {
        let api = if self.delta { "DELTA_GRPC" } else { "GRPC" };
        // A static cluster has its own name and uses the endpoints of the discovered one.
        let cluster = if self.dynamic { CLUSTER } else { STATIC_CLUSTER };
        let mut clusters = vec![self.discovery_cluster()];
        let mut dynamic = json!({"ads_config": {
            "api_type": api,
            "transport_api_version": "V3",
            "set_node_on_first_message_only": true,
            "grpc_services": [{"envoy_grpc": {
                "cluster_name": "discovery",
                "retry_policy": {"retry_back_off": {"base_interval": "0.1s", "max_interval": "1s"}},
            }}],
        }});
        if self.dynamic {
            dynamic["cds_config"] = ads();
        } else {
            clusters.push(static_cluster());
        }
        if self.listeners {
            dynamic["lds_config"] = ads();
            dynamic["lds_config"]["initial_fetch_timeout"] = json!("0s");
        }
        json!({
            "node": {"id": name, "cluster": "clients", "metadata": {"NAMESPACE": NAMESPACE}},
            "admin": {"address": {"pipe": {"path": folder.join("admin.sock")}}},
            "dynamic_resources": dynamic,
            "static_resources": {"clusters": clusters, "listeners": [route(listener, cluster)]},
        })
    }

    fn discovery_cluster(&self) -> Value {
        let mut cluster = json!({
            "name": "discovery",
            "type": "STATIC",
            "connect_timeout": "2s",
            "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                "explicit_http_config": {"http2_protocol_options": {"connection_keepalive": {"interval": "30s", "timeout": "5s"}}},
            }},
            "load_assignment": {"cluster_name": "discovery", "endpoints": [{"lb_endpoints": [
                {"endpoint": {"address": socket(self.discovery)}},
            ]}]},
        });
        if let Some(files) = &self.tls {
            cluster["transport_socket"] = transport_socket(files);
        }
        cluster
    }
}

fn transport_socket(files: &Files) -> Value {
    json!({"name": "envoy.transport_sockets.tls", "typed_config": {
        "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext",
        "sni": DISCOVERY_NAME,
        "common_tls_context": {
            "tls_certificates": [{
                "certificate_chain": {"filename": files.certificate},
                "private_key": {"filename": files.key},
            }],
            "validation_context": {
                "trusted_ca": {"filename": files.authority},
                "match_typed_subject_alt_names": [{"san_type": "DNS", "matcher": {"exact": DISCOVERY_NAME}}],
            },
        },
    }})
}

fn ads() -> Value {
    json!({"ads": {}, "resource_api_version": "V3"})
}

fn static_cluster() -> Value {
    json!({
        "name": STATIC_CLUSTER,
        "type": "EDS",
        "eds_cluster_config": {"eds_config": ads(), "service_name": CLUSTER},
        "common_lb_config": {"healthy_panic_threshold": {"value": 0}},
    })
}

fn socket(address: SocketAddr) -> Value {
    json!({"socket_address": {"address": address.ip().to_string(), "port_value": address.port()}})
}

fn route(listener: SocketAddr, cluster: &str) -> Value {
    let manager = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "clients",
        "route_config": {"validate_clusters": false, "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
            {"match": {"prefix": "/"}, "route": {"cluster": cluster, "timeout": "60s"}},
        ]}]},
        "http_filters": [{"name": "envoy.filters.http.router", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router",
        }}],
    });
    let filter = json!({"name": "envoy.filters.network.http_connection_manager", "typed_config": manager});
    json!({"name": "clients", "address": socket(listener), "filter_chains": [{"filters": [filter]}]})
}

/// The Envoy of a client; killed on drop.
pub struct EnvoyClient {
    /// The listener for requests to the service.
    pub listener: SocketAddr,
    pub envoy: Envoy,
    /// The host of its requests.
    host: String,
    cluster: &'static str,
}

impl EnvoyClient {
    /// Starts Envoy with its files below `folder` and waits until it is ready.
    ///
    /// # Panics
    /// If the folder is not writable, or Envoy does not start.
    pub async fn start(folder: &Path, name: &str, ip: IpAddr, subscription: &Subscription) -> Self {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder).expect("a writable folder");
        let listener = SocketAddr::new(ip, 10000);
        let bootstrap = subscription.bootstrap(name, listener, &folder);
        let cluster = if subscription.dynamic { CLUSTER } else { STATIC_CLUSTER };
        let envoy = Envoy::start(subscription.version, folder, &bootstrap, 1).await;
        Self { listener, envoy, host: listener.to_string(), cluster }
    }

    /// Starts Envoy with a bootstrap that is written for 127.0.0.1, such as
    /// `envoy-config/vm/envoy.yaml`, but with this `discovery`, which serves `listener`.
    ///
    /// # Panics
    /// If the folder is not writable, the bootstrap has an unexpected form, or Envoy does not
    /// start.
    pub async fn example(
        folder: &Path,
        bootstrap: &str,
        discovery: SocketAddr,
        listener: SocketAddr,
    ) -> Self {
        let folder = folder.join("envoy");
        std::fs::create_dir_all(&folder).expect("a writable folder");
        let mut bootstrap = example::parse(bootstrap);
        bootstrap["admin"] = json!({"address": {"pipe": {"path": folder.join("admin.sock")}}});
        let server =
            "/static_resources/clusters/0/load_assignment/endpoints/0/lb_endpoints/0/endpoint/address";
        *bootstrap.pointer_mut(server).expect("discovery comes first") = socket(discovery);
        let envoy = Envoy::start(Version::Newest, folder, &bootstrap, 1).await;
        Self { listener, envoy, host: HOST.to_owned(), cluster: EXAMPLE_CLUSTER }
    }

    /// Returns the endpoints of the service in this Envoy; none if it does not know the cluster.
    pub async fn endpoints(&self) -> BTreeSet<SocketAddr> {
        let text = self.envoy.admin("/clusters?format=json").await.unwrap_or_default();
        endpoints(&text, self.cluster)
    }

    /// Sends one request to the service.
    pub async fn request(&self) -> Answer {
        caller::get_host(self.listener, &self.host, "/", &[("Connection", "close")]).await
    }

    /// Returns a counter or gauge of the service's cluster, for example `update_success`.
    pub async fn cluster_stat(&self, name: &str) -> Option<u64> {
        let text = self.envoy.admin("/stats").await.ok()?;
        let line = format!("cluster.{}.{name}: ", self.cluster);
        text.lines().find_map(|found| found.strip_prefix(&line)?.trim().parse().ok())
    }
}

/// Returns the endpoints of `cluster` in Envoy's response to `/clusters?format=json`.
pub fn endpoints(clusters: &str, cluster: &str) -> BTreeSet<SocketAddr> {
    let clusters: Value = serde_json::from_str(clusters).unwrap_or_default();
    let statuses = clusters["cluster_statuses"].as_array().into_iter().flatten();
    let hosts = statuses
        .filter(|status| status["name"] == cluster)
        .flat_map(|status| status["host_statuses"].as_array().into_iter().flatten());
    hosts
        .filter_map(|host| {
            let address = &host["address"]["socket_address"];
            let port = u16::try_from(address["port_value"].as_u64()?).ok()?;
            Some(SocketAddr::new(address["address"].as_str()?.parse().ok()?, port))
        })
        .collect()
}

#[cfg(test)]
mod tests;
