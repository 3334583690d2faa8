//! The type URLs of resources and health reports.

pub const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
pub const ENDPOINT: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
pub const LISTENER: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
pub const ROUTE: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
/// Certificates and keys.
pub const SECRET: &str = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret";
/// The wrapper that carries a name, in state of the world.
pub(crate) const RESOURCE: &str = "type.googleapis.com/envoy.service.discovery.v3.Resource";
/// A health report (istio `pkg/model/xds.go`).
pub const HEALTH_INFORMATION: &str = "type.googleapis.com/istio.v1.HealthInformation";
/// The hello message, which only the app-health discovery server sends.
pub const PROBE: &str = "type.googleapis.com/app_health.v1.Probe";

/// Returns true for clusters and listeners, of which a response in state of the world contains every
/// resource.
pub fn is_complete(type_url: &str) -> bool {
    type_url == CLUSTER || type_url == LISTENER
}
