//! Tests with the programs of a real Istio: our agent and Envoys with istiod, and Istio's agent with
//! our discovery. They are ignored by default; `./justw test-istio` runs them.

mod agent_with_istiod;
mod bootstraps;
mod certificates;
mod csr;
mod dns;
mod mutual_tls;
mod page;
mod pilot_agent;
mod pilot_agent_with_discovery;
mod probes;
mod proxied_machine;
mod proxy_with_istiod;
mod reconnects;
mod sidecar_with_istiod;
