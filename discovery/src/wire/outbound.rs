//! Encodes the listeners and route configurations for outbound requests.

use std::net::IpAddr;

use bytes::Bytes;
use envoy_types::pb::envoy::config::core::v3::address::Address as AddressKind;
use envoy_types::pb::envoy::config::core::v3::config_source::ConfigSourceSpecifier;
use envoy_types::pb::envoy::config::core::v3::socket_address::PortSpecifier;
use envoy_types::pb::envoy::config::core::v3::{
    Address, AggregatedConfigSource, ApiVersion, ConfigSource, SocketAddress, TrafficDirection,
};
use envoy_types::pb::envoy::config::listener::v3::filter::ConfigType;
use envoy_types::pb::envoy::config::listener::v3::{Filter, FilterChain, Listener};
use envoy_types::pb::envoy::config::route::v3::route::Action;
use envoy_types::pb::envoy::config::route::v3::route_action::ClusterSpecifier as RouteCluster;
use envoy_types::pb::envoy::config::route::v3::route_match::PathSpecifier;
use envoy_types::pb::envoy::config::route::v3::{
    Route, RouteAction, RouteConfiguration, RouteMatch, VirtualHost,
};
use envoy_types::pb::envoy::extensions::filters::http::router::v3::Router;
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::http_connection_manager::{
    RouteSpecifier, UpgradeConfig,
};
use envoy_types::pb::envoy::extensions::filters::network::http_connection_manager::v3::{
    HttpConnectionManager, HttpFilter, Rds, http_filter,
};
use envoy_types::pb::envoy::extensions::filters::network::tcp_proxy::v3::TcpProxy;
use envoy_types::pb::envoy::extensions::filters::network::tcp_proxy::v3::tcp_proxy::ClusterSpecifier;
use envoy_types::pb::google::protobuf::{Any, Duration};
use prost::Message;

use super::resources::any;
use crate::message::TypeUrl;

const HTTP_MANAGER: &str = "envoy.filters.network.http_connection_manager";
const HTTP_MANAGER_TYPE: &str =
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
const ROUTER: &str = "envoy.filters.http.router";
const ROUTER_TYPE: &str = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router";
const TCP_PROXY: &str = "envoy.filters.network.tcp_proxy";
const TCP_PROXY_TYPE: &str = "type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy";
/// As in Istio, a request or stream has no time limit except that of its client.
const NO_TIMEOUT: Duration = Duration { seconds: 0, nanos: 0 };

/// A host of a route configuration, and the cluster that its requests are forwarded to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostSpec<'a> {
    pub host: &'a str,
    pub port: u16,
    pub cluster: &'a str,
}

/// Encodes a listener whose route configuration with the name `route` comes by RDS over the same
/// stream.
pub fn http_listener(name: &str, address: (IpAddr, u16), route: &str) -> Bytes {
    let source = ConfigSource {
        resource_api_version: ApiVersion::V3.into(),
        config_source_specifier: Some(ConfigSourceSpecifier::Ads(AggregatedConfigSource {})),
        ..ConfigSource::default()
    };
    let routes = Rds { config_source: Some(source), route_config_name: route.to_owned() };
    let router = HttpFilter {
        name: ROUTER.to_owned(),
        config_type: Some(http_filter::ConfigType::TypedConfig(message(ROUTER_TYPE, &Router::default()))),
        ..HttpFilter::default()
    };
    let web_socket = UpgradeConfig { upgrade_type: "websocket".to_owned(), ..UpgradeConfig::default() };
    let manager = HttpConnectionManager {
        stat_prefix: format!("outbound_{name}"),
        route_specifier: Some(RouteSpecifier::Rds(routes)),
        http_filters: vec![router],
        upgrade_configs: vec![web_socket],
        stream_idle_timeout: Some(NO_TIMEOUT),
        ..HttpConnectionManager::default()
    };
    listener(name, address, HTTP_MANAGER, message(HTTP_MANAGER_TYPE, &manager))
}

/// Encodes a listener that forwards each connection to `cluster`.
pub fn tcp_listener(name: &str, address: (IpAddr, u16), cluster: &str) -> Bytes {
    let proxy = TcpProxy {
        stat_prefix: cluster.to_owned(),
        cluster_specifier: Some(ClusterSpecifier::Cluster(cluster.to_owned())),
        ..TcpProxy::default()
    };
    listener(name, address, TCP_PROXY, message(TCP_PROXY_TYPE, &proxy))
}

fn listener(name: &str, (ip, port): (IpAddr, u16), filter: &str, config: Any) -> Bytes {
    let address = SocketAddress {
        address: ip.to_string(),
        port_specifier: Some(PortSpecifier::PortValue(port.into())),
        ..SocketAddress::default()
    };
    let filter = Filter { name: filter.to_owned(), config_type: Some(ConfigType::TypedConfig(config)) };
    let message = Listener {
        name: name.to_owned(),
        address: Some(Address { address: Some(AddressKind::SocketAddress(address)) }),
        filter_chains: vec![FilterChain { filters: vec![filter], ..FilterChain::default() }],
        traffic_direction: TrafficDirection::Outbound.into(),
        ..Listener::default()
    };
    any(TypeUrl::Listener.as_str(), &message)
}

/// Encodes a route configuration with a virtual host for each host. Envoy responds with 404 to a
/// request with any other host.
pub fn route(name: &str, hosts: &[HostSpec]) -> Bytes {
    let message = RouteConfiguration {
        name: name.to_owned(),
        virtual_hosts: hosts.iter().map(virtual_host).collect(),
        ..RouteConfiguration::default()
    };
    any(TypeUrl::Route.as_str(), &message)
}

fn virtual_host(spec: &HostSpec) -> VirtualHost {
    let HostSpec { host, port, cluster } = *spec;
    let action = RouteAction {
        cluster_specifier: Some(RouteCluster::Cluster(cluster.to_owned())),
        timeout: Some(NO_TIMEOUT),
        ..RouteAction::default()
    };
    let every_path =
        RouteMatch { path_specifier: Some(PathSpecifier::Prefix("/".to_owned())), ..RouteMatch::default() };
    let route = Route { r#match: Some(every_path), action: Some(Action::Route(action)), ..Route::default() };
    let name = format!("{host}:{port}");
    VirtualHost {
        domains: vec![host.to_owned(), name.clone()],
        name,
        routes: vec![route],
        ..VirtualHost::default()
    }
}

fn message(type_url: &str, message: &impl Message) -> Any {
    Any { type_url: type_url.to_owned(), value: message.encode_to_vec() }
}

#[cfg(test)]
mod tests;
