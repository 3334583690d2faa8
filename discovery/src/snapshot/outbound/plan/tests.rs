use super::*;
use crate::objects::{ExportTo, Key, Source};

/// Plans for a client of the namespace `own`. A row has namespace and name of a service, host, port
/// and protocol; the cluster is called like the service. Returns the ports and where they forward
/// to, and the conflicts.
fn plan(own: Option<&str>, rows: &[(&str, &str, u16, Protocol)]) -> (Vec<String>, Vec<String>) {
    let services: Vec<Service> = rows
        .iter()
        .map(|(service, ..)| {
            let (namespace, name) = service.split_once('/').expect("namespace/name");
            Service {
                key: Key::new(namespace, name),
                hosts: Vec::new(),
                ports: Vec::new(),
                source: Source::Inline(Vec::new()),
                export_to: ExportTo::All,
                created: None,
                last_endpoint: None,
            }
        })
        .collect();
    let upstreams = rows.iter().zip(&services).map(|((cluster, host, port, protocol), service)| Upstream {
        service,
        host,
        port: *port,
        protocol: *protocol,
        cluster,
    });
    let plan = Plan::new(own, upstreams.collect());
    let shown = plan.ports.iter().map(|(port, forwarding)| match forwarding {
        Forwarding::Tcp(cluster) => format!("{port} tcp {cluster}"),
        Forwarding::Http(hosts) => {
            let hosts: String =
                hosts.iter().map(|it| format!(" {}:{}={}", it.host, it.port, it.cluster)).collect();
            format!("{port}{hosts}")
        }
    });
    (shown.collect(), plan.conflicts.into_iter().collect())
}

#[test]
fn http_services_share_a_port() {
    let (ports, conflicts) = plan(
        None,
        &[
            ("shop/pay", "pay.shop", 80, Protocol::Http),
            ("shop/pay", "pay", 80, Protocol::Http),
            ("shop/pay", "pay.shop", 81, Protocol::Grpc),
            ("a/cart", "cart.a", 80, Protocol::Http2),
        ],
    );
    assert_eq!(
        ports,
        ["80 cart.a:80=a/cart pay:80=shop/pay pay.shop:80=shop/pay", "81 pay.shop:81=shop/pay"]
    );
    assert!(conflicts.is_empty(), "{conflicts:?}");
}

#[test]
fn other_protocols_are_forwarded_by_connection() {
    for protocol in [Protocol::Tcp, Protocol::Tls, Protocol::Https, Protocol::Mongo] {
        // A second host of the same service has the same endpoints.
        let rows = [("shop/db", "db.shop", 5432, protocol), ("shop/db", "db", 5432, protocol)];
        assert_eq!(plan(None, &rows), (vec!["5432 tcp shop/db".to_owned()], Vec::new()));
    }
}

#[test]
fn the_first_service_of_a_port_takes_precedence() {
    let (tcp, http) = (Protocol::Tcp, Protocol::Http);
    let no_listener = |service: &str, host: &str, protocol: &str, owner: &str| {
        format!(
            "ServiceEntry {service}: {host:?} port 80 with protocol {protocol} has no outbound listener: it is the port of ServiceEntry {owner}"
        )
    };
    // Two services with TCP.
    let rows = [("shop/b", "b", 80, tcp), ("shop/a", "a", 80, tcp)];
    let conflict = no_listener("shop/b", "b", "TCP", "shop/a with protocol TCP");
    assert_eq!(plan(None, &rows), (vec!["80 tcp shop/a".to_owned()], vec![conflict]));
    // HTTP and TCP.
    let rows = [("shop/a", "a", 80, http), ("shop/b", "b", 80, tcp), ("shop/c", "c", 80, http)];
    let conflict = no_listener("shop/b", "b", "TCP", "shop/a with protocol HTTP");
    assert_eq!(plan(None, &rows), (vec!["80 a:80=shop/a c:80=shop/c".to_owned()], vec![conflict]));
    // The services of the client's own namespace come first.
    let rows = [("a/db", "db.a", 80, tcp), ("shop/db", "db.shop", 80, tcp)];
    let conflict = no_listener("a/db", "db.a", "TCP", "shop/db with protocol TCP");
    assert_eq!(plan(Some("shop"), &rows), (vec!["80 tcp shop/db".to_owned()], vec![conflict]));
    assert_eq!(plan(Some("other"), &rows).0, ["80 tcp a/db"]);
}

#[test]
fn hosts_that_differ_only_in_case_are_equal() {
    let rows = [("shop/a", "Pay.shop", 80, Protocol::Http), ("shop/b", "pay.shop", 80, Protocol::Http)];
    let (ports, conflicts) = plan(None, &rows);
    assert_eq!(ports, ["80 Pay.shop:80=shop/a"]);
    assert_eq!(
        conflicts,
        [
            r#"ServiceEntry shop/b: "pay.shop" port 80 with protocol HTTP has no outbound listener: ServiceEntry shop/a has the host "Pay.shop""#
        ]
    );
}

#[test]
fn reserved_ports_get_no_listener() {
    let rows = [14999, 15000, 15014, 15100, 15101].map(|port| ("shop/a", "a", port, Protocol::Tcp));
    let (ports, conflicts) = plan(None, &rows);
    assert_eq!(ports, ["14999 tcp shop/a", "15101 tcp shop/a"]);
    assert_eq!(conflicts.len(), 3);
    assert!(conflicts.iter().all(|it| it.ends_with("ports 15000 to 15100 are those of Envoy and the agent")));
}
