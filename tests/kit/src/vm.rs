//! Health on virtual machines with everything real: `app-health discovery`, an `app-health-agent` on each machine, which is a
//! loopback address with an application on it, and Envoys that balance over the machines.
//!
//! A [`scene::Scene`] holds all of them; whatever it started ends with it.

pub mod application;
pub mod certificates;
pub mod client;
pub mod discovery;
pub mod documents;
pub mod fleet;
pub mod machine;
pub mod scene;
pub mod traffic;
