//! The agent in the place of Istio's: what the injector of Istio configures, read from the environment and the
//! files of a Pod, and the certificates of the workload, requested from the CA of istiod and served to Envoy.
//!
//! What only Istio's agent can do is found before anything is bound, and leads to [`stock_agent`].

pub mod addresses;
pub mod ca_client;
pub mod contract;
pub mod dns;
mod files;
pub mod mesh_certificates;
pub mod metrics;
pub mod output_certificates;
pub mod secrets;
pub mod stock_agent;
mod stored;
pub mod trust_bundle;
pub mod workload_certificate;
pub mod yaml;
