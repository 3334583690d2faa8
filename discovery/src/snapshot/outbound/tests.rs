//! Tests of the listeners and routes in a snapshot by viewer.

use std::net::Ipv4Addr;

use super::*;
use crate::entries::{Settings, Timestamp};
use crate::objects::{Config, ExportTo, Key, LastEndpoint, Port, Protocol, Service, Source, Spec};
use crate::snapshot::{Snapshot, SnapshotSettings, Viewer};

/// A service that is called like its host, in a namespace, with one port.
fn service(namespace: &str, host: &str, number: u16, protocol: Protocol, export_to: ExportTo) -> Service {
    Service {
        key: Key::new(namespace, host),
        hosts: vec![host.to_owned()],
        ports: vec![Port { number, name: "port".to_owned(), protocol, target_port: None }],
        source: Source::Inline(vec![Arc::new(Spec { address: "10.0.0.1".to_owned(), ..Spec::default() })]),
        export_to,
        created: None,
        last_endpoint: None,
    }
}

fn snapshot(services: &[Service], previous: Option<&Snapshot>) -> Snapshot {
    let services = services.iter().map(|service| (service.key.clone(), Arc::new(service.clone()))).collect();
    let settings = SnapshotSettings {
        last_endpoint: LastEndpoint::Remove,
        startup_grace: false,
        outbound_listeners: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
        removal_limits: Settings::default().removal_limits(),
        now: Timestamp::default(),
    };
    let config = Config { services, ..Config::default() };
    Snapshot::build(&config, &mut std::iter::empty(), settings, previous)
}

fn viewer(namespace: &str) -> Viewer {
    Viewer { namespace: Some(namespace.to_owned()), network: None }
}

/// Returns the names of listeners and routes that a client of the namespace receives.
fn names(snapshot: &Snapshot, namespace: &str) -> (Vec<String>, Vec<String>) {
    let viewer = viewer(namespace);
    let names = |resources: Vec<&Arc<Resource>>| resources.iter().map(|it| it.name.to_string()).collect();
    (names(snapshot.listeners(&viewer).collect()), names(snapshot.routes(&viewer).collect()))
}

fn route(snapshot: &Snapshot, namespace: &str, name: &str) -> Arc<Resource> {
    snapshot.route(&viewer(namespace), name).expect("a route configuration").clone()
}

#[test]
fn clients_receive_the_services_that_they_see() {
    let (all, own) = (ExportTo::All, ExportTo::OwnNamespace);
    let services = [
        service("a", "pay", 80, Protocol::Http, all),
        service("b", "cart", 80, Protocol::Http, own),
        service("b", "db", 5432, Protocol::Tcp, own),
        // The same host in two namespaces.
        service("c", "pay", 80, Protocol::Http, all),
    ];
    let snapshot = snapshot(&services, None);
    assert_eq!(names(&snapshot, "a"), (vec!["127.0.0.1_80".into()], vec!["80".into()]));
    assert_eq!(names(&snapshot, "other"), names(&snapshot, "a"));
    let of_b = (vec!["127.0.0.1_5432".into(), "127.0.0.1_80".into()], vec!["80".into()]);
    assert_eq!(names(&snapshot, "b"), of_b);
    assert_ne!(route(&snapshot, "b", "80").version, route(&snapshot, "a", "80").version);
    // Both clusters have the same name, so the routes are equal, and stored once.
    assert!(Arc::ptr_eq(&route(&snapshot, "c", "80"), &route(&snapshot, "a", "80")));
    assert_eq!(snapshot.outbound_conflicts().count(), 0);
}

#[test]
fn resources_change_with_the_services_only() {
    let pay = service("a", "pay", 80, Protocol::Http, ExportTo::All);
    let cart = service("a", "cart", 80, Protocol::Http, ExportTo::All);
    let first = snapshot(std::slice::from_ref(&pay), None);
    let listener =
        |snapshot: &Snapshot| snapshot.listener(&viewer("a"), "127.0.0.1_80").expect("a listener").version;
    let changed = |next: &Snapshot, previous: &Snapshot| -> Vec<String> {
        let changed = next.changed_since(previous.id()).expect("the previous snapshot");
        changed.filter(|name| !name.starts_with("outbound|")).map(ToString::to_string).collect()
    };
    let same = snapshot(std::slice::from_ref(&pay), Some(&first));
    assert!(Arc::ptr_eq(&route(&same, "a", "80"), &route(&first, "a", "80")));
    assert!(changed(&same, &first).is_empty());

    let both = snapshot(&[pay, cart], Some(&same));
    assert_eq!(listener(&both), listener(&first));
    assert_ne!(route(&both, "a", "80").version, route(&first, "a", "80").version);
    assert!(changed(&both, &same).contains(&"80".to_owned()));

    let none = snapshot(&[], Some(&both));
    assert_eq!(names(&none, "a"), (Vec::new(), Vec::new()));
    assert_eq!(changed(&none, &both), ["127.0.0.1_80", "80"]);
    assert!(none.serves_outbound());
}

/// A tenant can take neither the host nor the port of a service that existed before.
#[test]
fn the_oldest_export_takes_precedence() {
    let created = |second: u32, service: Service| Service {
        created: Some(format!("2026-01-01T00:00:{second:02}Z")),
        ..service
    };
    let pay = service("shop", "pay.shop", 80, Protocol::Http, ExportTo::All);
    let redis = service("shop", "redis.shop", 6379, Protocol::Tcp, ExportTo::All);
    let taken = service("aaa", "pay.shop", 80, Protocol::Http, ExportTo::All);
    let port = service("aaa", "redis.aaa", 6379, Protocol::Tcp, ExportTo::All);
    let services = [created(1, pay), created(1, redis), created(2, taken), created(2, port)];
    let snapshot = snapshot(&services, None);
    let sees = |namespace: &str, of: &str| {
        let cluster = snapshot.cluster(&viewer(namespace), "outbound|80||pay.shop").expect("a cluster");
        let clusters = &snapshot.clusters["outbound|80||pay.shop"];
        clusters.iter().any(|it| it.namespace == of && Arc::ptr_eq(&it.resource, cluster))
    };
    assert!(sees("other", "shop") && sees("shop", "shop") && sees("aaa", "aaa"));
    let listener = snapshot.listener(&Viewer::default(), "127.0.0.1_6379").expect("a listener");
    let text = String::from_utf8_lossy(&listener.any).into_owned();
    assert!(text.contains("redis.shop") && !text.contains("redis.aaa"), "{text}");
    let conflict = "ServiceEntry aaa/pay.shop: \"pay.shop\" port 80 is exported by namespace \"shop\" already, which other namespaces get";
    assert_eq!(snapshot.export_conflicts().iter().collect::<Vec<_>>(), [conflict]);
}

#[test]
fn only_allowed_namespaces_export() {
    let services = ["aaa", "shop"]
        .map(|namespace| service(namespace, &format!("pay.{namespace}"), 80, Protocol::Http, ExportTo::All));
    let services = services.into_iter().map(|service| (service.key.clone(), Arc::new(service))).collect();
    let mut config = Config { services, ..Config::default() };
    let warnings = config.restrict_exports(&["shop".to_owned()].into());
    let warning = "ServiceEntry aaa/pay.aaa: not exported: namespace \"aaa\" is not in --export-namespaces";
    assert_eq!(warnings, [warning]);
    let exported: Vec<_> =
        config.services.values().map(|service| service.export_to == ExportTo::All).collect();
    assert_eq!(exported, [false, true]);
}
