//! The bootstrap of an Envoy beside Istio's agent, rendered from the template that Istio's image contains, so
//! that it follows the version of the image.
//!
//! [`proxy_config`] merges the layers of Istio's `ProxyConfig`, [`node`] makes the metadata that istiod decides
//! by, [`parameters`] what a template refers to, and [`template`] renders it. The rules are those of Istio's
//! `pkg/bootstrap` and `pilot/cmd/pilot-agent` (1.31), and `tests/istio` compares the result with its agent.

pub mod command;
pub mod downward_api;
pub mod envoy_flags;
mod go;
pub mod node;
pub mod parameters;
mod proto;
pub mod proxy_config;
pub mod support;
pub mod template;
