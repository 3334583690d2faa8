//! Tests of virtual machines: discovery with real agents, applications and Envoys.

mod demo;
mod end;
mod endpoints;
mod last_endpoint;
mod live_edit;
mod operator;
mod prober;
mod prober_capture;
mod prober_http;
mod prober_kinds;
mod prober_life;
mod reporter;
mod reporter_faults;
mod reporter_kit;
mod reporter_tls;
mod restart;
mod storm;
mod tls;
