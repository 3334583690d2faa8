//! The HTTP servers of the agent: readiness for kubelet, Envoy's metrics, and the local server with its
//! status page.

pub mod local_peer;
pub mod local_server;
pub mod machine_view;
pub mod page;
pub mod readiness_server;
pub mod stats_server;
pub mod status_server;
