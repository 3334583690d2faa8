//! Tests of the endpoints in a snapshot by host, port and viewer.

use std::collections::BTreeMap;

use super::*;
use crate::entries::{Presence, Timestamp};
use crate::objects::{Protocol, Source, Spec};

fn port(number: u16, name: &str, target_port: Option<u16>) -> Port {
    Port { number, name: name.to_owned(), protocol: Protocol::Http, target_port }
}

fn service(key: &Key, ports: Vec<Port>, source: Source) -> Service {
    Service {
        key: key.clone(),
        hosts: vec!["pay.shop".to_owned()],
        ports,
        source,
        export_to: ExportTo::All,
        created: None,
        last_endpoint: None,
    }
}

fn labels(app: &str) -> BTreeMap<String, String> {
    BTreeMap::from([("app".to_owned(), app.to_owned())])
}

fn config(services: Vec<Service>) -> Config {
    let services = services.into_iter().map(|service| (service.key.clone(), Arc::new(service))).collect();
    Config { services, ..Config::default() }
}

fn workload(name: &str, served: bool, since: i64) -> Workload {
    let address = format!("10.0.0.{}", name.len());
    Workload {
        key: Key::new("shop", name),
        spec: Arc::new(Spec { address, labels: labels("pay"), ..Spec::default() }),
        served,
        preservable: true,
        presence: Presence::Reporting,
        unserved_since: (!served).then(|| Timestamp::from_seconds(since)),
        accounted_for: true,
        source: None,
    }
}

fn settings(last_endpoint: LastEndpoint) -> SnapshotSettings {
    let (removal_limits, now) =
        (crate::entries::Settings::default().removal_limits(), Timestamp::from_seconds(1_000));
    SnapshotSettings { last_endpoint, startup_grace: false, outbound_listeners: None, removal_limits, now }
}

fn build(config: &Config, workloads: &[Workload], last_endpoint: LastEndpoint) -> Snapshot {
    Snapshot::build(config, &mut workloads.iter().cloned(), settings(last_endpoint), None)
}

fn viewer(namespace: &str, network: Option<&str>) -> Viewer {
    Viewer { namespace: Some(namespace.to_owned()), network: network.map(str::to_owned) }
}

/// Returns `address:port*weight` of the endpoints; `None` without an assignment.
fn endpoints(snapshot: &Snapshot, viewer: &Viewer, port: u16) -> Option<Vec<String>> {
    let assignment = snapshot.assignment(viewer, &format!("outbound|{port}||pay.shop"))?;
    let addresses =
        assignment.endpoints().iter().map(|it| format!("{}:{}*{}", it.address, it.port, it.weight));
    Some(addresses.collect())
}

#[test]
fn endpoint_port_prefers_entry_then_target_port_then_number() {
    let key = Key::new("shop", "pay");
    let specs = [
        Spec {
            address: "10.0.0.1".to_owned(),
            ports: BTreeMap::from([("http".to_owned(), 1)]),
            ..Spec::default()
        },
        Spec { address: "10.0.0.2".to_owned(), weight: 7, ..Spec::default() },
        Spec { address: "unix:///run/pay".to_owned(), ..Spec::default() },
        // Two endpoints with the same address are one.
        Spec { address: "10.0.0.2".to_owned(), weight: 9, ..Spec::default() },
    ];
    let ports = vec![port(80, "http", Some(8080)), port(81, "grpc", None)];
    let config =
        config(vec![service(&key, ports, Source::Inline(specs.iter().cloned().map(Arc::new).collect()))]);
    let snapshot = build(&config, &[], LastEndpoint::Remove);
    for (number, expected) in [
        (80, ["10.0.0.1:1*1", "10.0.0.2:8080*7", "unix:///run/pay:0*1"]),
        (81, ["10.0.0.1:81*1", "10.0.0.2:81*7", "unix:///run/pay:0*1"]),
    ] {
        let found = endpoints(&snapshot, &viewer("shop", None), number).expect("an assignment");
        assert_eq!(found, expected);
    }
}

#[test]
fn visibility_by_namespace_and_network() {
    let key = Key::new("shop", "pay");
    let in_network = |address: &str, network: Option<&str>| Spec {
        address: address.to_owned(),
        network: network.map(str::to_owned),
        ..Spec::default()
    };
    let specs = vec![
        in_network("1.1.1.1", None),
        in_network("2.2.2.2", Some("dc1")),
        in_network("3.3.3.3", Some("dc2")),
    ];
    let ours = Service {
        export_to: ExportTo::OwnNamespace,
        ..service(
            &key,
            vec![port(80, "http", None)],
            Source::Inline(specs.into_iter().map(Arc::new).collect()),
        )
    };
    let theirs = service(
        &Key::new("other", "pay"),
        vec![port(80, "http", None)],
        Source::Inline(vec![Arc::new(in_network("9.9.9.9", None))]),
    );
    let snapshot = build(&config(vec![ours.clone(), theirs]), &[], LastEndpoint::Remove);
    for (namespace, network, expected) in [
        ("shop", None, vec!["1.1.1.1:80*1", "2.2.2.2:80*1", "3.3.3.3:80*1"]),
        ("shop", Some("dc1"), vec!["1.1.1.1:80*1", "2.2.2.2:80*1"]),
        ("shop", Some("dc9"), vec!["1.1.1.1:80*1"]),
        // Of services with the same host, a namespace sees its own, other namespaces the exported
        // one.
        ("other", None, vec!["9.9.9.9:80*1"]),
        ("third", Some("dc1"), vec!["9.9.9.9:80*1"]),
    ] {
        let found = endpoints(&snapshot, &viewer(namespace, network), 80);
        assert_eq!(found.expect("an assignment"), expected, "{namespace} {network:?}");
    }
    let alone = build(&config(vec![ours]), &[], LastEndpoint::Remove);
    assert_eq!(endpoints(&alone, &viewer("third", None), 80), None);
    assert_eq!(alone.clusters(&viewer("third", None)).count(), 0);
}

/// Checks which entries are preserved. A row has the name, whether the entry is served, and since when
/// it is not.
fn check_preserved(policy: LastEndpoint, rows: &[(&str, bool, i64)], expected: &[&str]) {
    let source = Source::Selector(labels("pay"));
    let config = config(vec![service(&Key::new("shop", "pay"), vec![port(80, "http", None)], source)]);
    let workloads: Vec<Workload> =
        rows.iter().map(|(name, served, since)| workload(name, *served, *since)).collect();
    let snapshot = build(&config, &workloads, policy);
    let preserved: Vec<&str> = snapshot.preserved().keys().map(|key| key.name.as_str()).collect();
    assert_eq!(preserved, expected, "{rows:?}");
    let served = rows.iter().filter(|(_, served, _)| *served).count();
    let found = endpoints(&snapshot, &viewer("shop", None), 80).expect("an assignment");
    assert_eq!(found.len(), served + expected.len());
}

#[test]
fn last_endpoint_policies() {
    let rows = [("a", false, 5), ("bb", false, 9), ("ccc", false, 9)];
    check_preserved(LastEndpoint::Remove, &rows, &[]);
    check_preserved(LastEndpoint::Keep, &rows, &["bb"]);
    check_preserved(LastEndpoint::Keep, &[("a", false, 5), ("bb", true, 0)], &[]);
    check_preserved(LastEndpoint::Keep, &[], &[]);
}

#[test]
fn unchanged_resources_are_reused() {
    let source = || Source::Selector(labels("pay"));
    let config_of =
        |target| config(vec![service(&Key::new("shop", "pay"), vec![port(80, "http", target)], source())]);
    let (viewer, name) = (viewer("shop", None), "outbound|80||pay.shop");
    let two = [workload("a", true, 0), workload("bb", true, 0)];
    let turned = [two[1].clone(), two[0].clone()];
    let first = build(&config_of(None), &two, LastEndpoint::Remove);
    let resource =
        |snapshot: &Snapshot| snapshot.assignment(&viewer, name).expect("an assignment").resource.clone();
    assert_eq!(resource(&first), resource(&build(&config_of(None), &turned, LastEndpoint::Remove)));
    assert_eq!(resource(&first).version.endpoints, Some(2));

    let next = |config: &Config, workloads: &[Workload], previous: &Snapshot| {
        let settings = settings(LastEndpoint::Remove);
        Snapshot::build(config, &mut workloads.iter().cloned(), settings, Some(previous))
    };
    let same = next(&config_of(None), &two, &first);
    assert!(Arc::ptr_eq(&resource(&same), &resource(&first)));
    let sick = [workload("a", false, 0), two[1].clone()];
    let other = next(&config_of(None), &sick, &same);
    assert_eq!(endpoints(&other, &viewer, 80), Some(vec!["10.0.0.2:80*1".to_owned()]));
    // The cluster remains the same, and a changed target port changes the endpoints.
    let cluster = |snapshot: &Snapshot| snapshot.cluster(&viewer, name).expect("a cluster").clone();
    assert!(Arc::ptr_eq(&cluster(&other), &cluster(&first)));
    let moved = next(&config_of(Some(8080)), &sick, &other);
    assert_eq!(endpoints(&moved, &viewer, 80), Some(vec!["10.0.0.2:8080*1".to_owned()]));
}
