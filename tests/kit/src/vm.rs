//! Health of virtual machines with real components: `app-health discovery`, an `app-health-agent`
//! on each machine, which is a loopback address with an application, and Envoys that balance
//! requests over the machines.
//!
//! A [`fixture::Fixture`] contains all of them; dropping it stops them.

pub mod ads_client;
mod ads_server;
pub mod application;
pub mod certificates;
pub mod discovery;
pub mod documents;
pub mod envoy_client;
pub mod envoy_stream;
pub mod faulty_ads;
pub mod fixture;
pub mod fleet;
pub mod machine;
pub mod push_server;
pub mod scripted_ads;
pub mod stored_xds;
pub mod stranger;
pub mod traffic;
pub mod versioned_ads;
pub mod xds_resources;
