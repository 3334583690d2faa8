//! Tests of virtual machines: discovery with real agents, applications and Envoys.

mod agent_restart;
mod demo;
mod departure;
mod endpoints;
mod last_endpoint;
mod live_edit;
mod mass_silence;
mod outbound;
mod page;
mod prober_capture;
mod prober_http;
mod prober_kinds;
mod prober_lifecycle;
mod prober_support;
mod reconnect_storm;
mod reporter;
mod reporter_faults;
mod reporter_support;
mod reporter_tls;
mod restart;
mod tls;
mod workloads_command;
mod xds_proxy;
