//! Health of virtual machines with real components: `app-health discovery`, an `app-health-agent`
//! on each machine, which is a loopback address with an application, and Envoys that balance
//! requests over the machines.
//!
//! A [`scene::Scene`] contains all of them; dropping it stops them.

pub mod application;
pub mod certificates;
pub mod client;
pub mod discovery;
pub mod documents;
pub mod fleet;
pub mod machine;
pub mod scene;
pub mod traffic;
pub mod wait;
