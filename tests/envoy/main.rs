//! Tests of the filter in a real Envoy, with the bootstrap that the agent renders and with the examples.

mod attack;
mod body;
mod config;
mod e2e;
mod grpc;
mod hooks;
mod http;
mod idle_connections;
mod ipv6;
mod leftover;
mod mtls;
mod reconfiguration;
mod redirect;
mod request;
mod reuse;
mod security;
mod strict_mtls;
mod strict_mtls_kit;
mod tcp;
mod tls;
