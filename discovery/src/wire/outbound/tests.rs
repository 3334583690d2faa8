use std::net::Ipv6Addr;

use super::*;

fn decode<M: Message + Default>(bytes: Bytes, type_url: &TypeUrl) -> M {
    let any = Any::decode(bytes).expect("an Any");
    assert_eq!(any.type_url, type_url.as_str());
    M::decode(any.value.as_slice()).expect("a message of this type")
}

/// Returns name, IP address and port of a listener, and the type and content of its only filter.
fn unpacked(bytes: Bytes) -> (String, String, Option<PortSpecifier>, Any) {
    let listener: Listener = decode(bytes, &TypeUrl::Listener);
    let Some(AddressKind::SocketAddress(address)) = listener.address.and_then(|it| it.address) else {
        panic!("no socket address")
    };
    let filter = listener.filter_chains[0].filters[0].config_type.clone();
    let Some(ConfigType::TypedConfig(config)) = filter else { panic!("no filter") };
    (listener.name, address.address, address.port_specifier, config)
}

#[test]
fn http_listeners_request_their_routes() {
    let (name, address, port, config) =
        unpacked(http_listener("::1_80", (Ipv6Addr::LOCALHOST.into(), 80), "80"));
    assert_eq!(
        (name.as_str(), address.as_str(), port),
        ("::1_80", "::1", Some(PortSpecifier::PortValue(80)))
    );
    assert_eq!(config.type_url, HTTP_MANAGER_TYPE);
    let manager = HttpConnectionManager::decode(config.value.as_slice()).expect("a manager");
    let Some(RouteSpecifier::Rds(rds)) = manager.route_specifier else { panic!("no RDS") };
    assert_eq!(rds.route_config_name, "80");
    let source = rds.config_source.and_then(|source| source.config_source_specifier);
    assert!(matches!(source, Some(ConfigSourceSpecifier::Ads(_))), "{source:?}");
    let filters: Vec<&str> = manager.http_filters.iter().map(|filter| filter.name.as_str()).collect();
    assert_eq!(filters, [ROUTER]);
}

#[test]
fn tcp_listeners_name_their_cluster() {
    let cluster = "outbound|5432||db.shop";
    let (.., config) = unpacked(tcp_listener("::1_5432", (Ipv6Addr::LOCALHOST.into(), 5432), cluster));
    assert_eq!(config.type_url, TCP_PROXY_TYPE);
    let proxy = TcpProxy::decode(config.value.as_slice()).expect("a proxy");
    assert_eq!(proxy.cluster_specifier, Some(ClusterSpecifier::Cluster(cluster.to_owned())));
    assert!(!proxy.stat_prefix.is_empty(), "Envoy rejects an empty prefix");
}

#[test]
fn routes_have_a_virtual_host_for_each_host() {
    let host = |host| HostSpec { host, port: 80, cluster: "outbound|80||pay.shop" };
    let routes: RouteConfiguration =
        decode(route("80", &[host("pay.shop"), host("cart.shop")]), &TypeUrl::Route);
    assert_eq!(routes.name, "80");
    let domains: Vec<Vec<String>> = routes.virtual_hosts.iter().map(|it| it.domains.clone()).collect();
    assert_eq!(domains, [["pay.shop", "pay.shop:80"], ["cart.shop", "cart.shop:80"]]);
    let Some(Action::Route(action)) = &routes.virtual_hosts[0].routes[0].action else { panic!("no route") };
    let cluster = RouteCluster::Cluster("outbound|80||pay.shop".to_owned());
    assert_eq!(action.cluster_specifier, Some(cluster));
    let none: RouteConfiguration = decode(route("80", &[]), &TypeUrl::Route);
    assert!(none.virtual_hosts.is_empty());
}
