use bytes::BytesMut;
use xds::put_bytes;

use super::*;

fn message(fields: &[(u64, &[u8])]) -> Bytes {
    let mut to = BytesMut::new();
    for (number, content) in fields {
        put_bytes(&mut to, *number, content);
    }
    to.freeze()
}

/// An encoded table: name, registry, short name, namespace and addresses of each host.
pub(crate) fn encoded(hosts: &[(&str, &str, &str, &str, &[&str])]) -> Bytes {
    let mut to = BytesMut::new();
    for (name, registry, short, namespace, ips) in hosts {
        let mut fields: Vec<(u64, &[u8])> = ips.iter().map(|ip| (1, ip.as_bytes())).collect();
        fields.extend([(2, registry.as_bytes()), (3, short.as_bytes()), (4, namespace.as_bytes())]);
        let host = message(&fields);
        put_bytes(&mut to, 1, &message(&[(1, name.as_bytes()), (2, &host)]));
    }
    to.freeze()
}

fn table(search: Option<&str>) -> Table {
    let hosts: &[(&str, &str, &str, &str, &[&str])] = &[
        ("web.shop.svc.cluster.local", KUBERNETES, "web", "shop", &["10.0.0.1", "fd00::1"]),
        ("db.data.svc.cluster.local", KUBERNETES, "db", "data", &["10.0.0.2"]),
        ("far.shop.svc.other.local", KUBERNETES, "far", "shop", &["10.0.0.3"]),
        ("API.example.com", "External", "", "", &["192.0.2.1"]),
        ("*.wild.example", "External", "", "", &["192.0.2.2"]),
        ("broken.example", "External", "", "", &["no address"]),
    ];
    let place = Place::new("shop", "shop.svc.cluster.local", search);
    Table::parse(&encoded(hosts), &place).unwrap()
}

fn first(table: &Table, name: &str) -> Option<String> {
    let found = table.find(name)?;
    let address = found.addresses?.v4.first()?;
    Some(format!("{address}{}", found.alias.map(|alias| format!(" of {alias}")).unwrap_or_default()))
}

#[test]
fn hosts_have_short_names() {
    let table = table(None);
    for (name, expected) in [
        ("web.shop.svc.cluster.local", Some("10.0.0.1")),
        ("web.shop.svc", Some("10.0.0.1")),
        ("web.shop", Some("10.0.0.1")),
        ("web", Some("10.0.0.1")),
        ("db.data", Some("10.0.0.2")),
        ("db", None),
        ("far.shop.svc.other.local", Some("10.0.0.3")),
        ("far.shop", None),
        ("api.example.com", Some("192.0.2.1")),
        ("x.wild.example", Some("192.0.2.2")),
        ("x.y.wild.example", Some("192.0.2.2")),
        ("wild.example", None),
        ("broken.example", None),
        ("other.example", None),
    ] {
        assert_eq!(first(&table, name).as_deref(), expected, "{name}");
    }
    assert_eq!(
        table.find("web").unwrap().addresses.unwrap().v6,
        [Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1)]
    );
}

/// A resolver adds the first search domain first.
#[test]
fn hosts_with_the_search_domain_are_aliases() {
    let table = table(Some("shop.svc.cluster.local"));
    for (name, expected) in [
        ("api.example.com.shop.svc.cluster.local", Some("192.0.2.1 of api.example.com")),
        ("db.data.shop.svc.cluster.local", Some("10.0.0.2 of db.data")),
        // Not of `web`: it is the name of the host itself.
        ("web.shop.svc.cluster.local", Some("10.0.0.1")),
        ("web.shop.svc.cluster.local.shop.svc.cluster.local", None),
        ("x.wild.example.shop.svc.cluster.local", Some("192.0.2.2 of *.wild.example")),
    ] {
        assert_eq!(first(&table, name).as_deref(), expected, "{name}");
    }
}

#[test]
fn damaged_tables_are_refused() {
    let place = Place::default();
    assert!(Table::parse(&Bytes::from_static(b"\x0a\x05a"), &place).is_err());
    assert!(Table::parse(&Bytes::from_static(b"\x08\x05"), &place).is_err());
    assert!(Table::parse(&Bytes::new(), &place).unwrap().is_empty());
}

#[test]
fn the_table_is_shown_with_derived_names() {
    let shown = table(None).to_json();
    let names = shown["table"].as_object().unwrap();
    assert_eq!(names["web"], json!({"ips": ["10.0.0.1", "fd00::1"]}));
    assert_eq!(names["api.example.com"], json!({"ips": ["192.0.2.1"]}));
    assert!(!names.contains_key("db") && !names.contains_key("broken.example"));
}
