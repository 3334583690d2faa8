//! The certificates of a workload in an Istio mesh: what is requested of its CA, what is served to Envoy, and
//! when a certificate is renewed.
//!
//! Nothing is read or sent here. The rules are those of Istio's `security/pkg/nodeagent` (1.31), with one
//! difference: a certificate stays in use while its renewal fails.

pub mod ca;
pub mod identity;
pub mod issued;
pub mod key;
pub mod pem;
pub mod renewal;
pub mod request;
pub mod secret_name;
