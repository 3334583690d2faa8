use bytes::Bytes;

use super::*;
use crate::message::tests::question;
use crate::table::Place;
use crate::table::tests::encoded;

fn decided(name: &str, kind: u16, table: Option<&Table>) -> Answer {
    let query = Query::parse(&question(name, kind)).unwrap();
    answer(&query, table, 512, |_| {})
}

fn records(answer: &Answer) -> (u8, u8, usize) {
    let Answer::Response(message) = answer else { panic!("{answer:?}") };
    (message[3] & 0xf, message[7], message.len())
}

#[test]
fn known_names_are_answered_and_others_forwarded() {
    let hosts: &[(&str, &str, &str, &str, &[&str])] =
        &[("a.example", "External", "", "", &["10.0.0.1", "10.0.0.2"])];
    let table = Table::parse(&encoded(hosts), &Place::new("shop", "svc.local", Some("svc.local"))).unwrap();
    let found = decided("a.example", TYPE_A, Some(&table));
    assert_eq!((records(&found).0, records(&found).1), (0, 2));
    // A host without addresses of the kind exists nevertheless.
    let found = decided("a.example", TYPE_AAAA, Some(&table));
    assert_eq!((records(&found).0, records(&found).1), (0, 0));
    let found = decided("a.example.svc.local", TYPE_A, Some(&table));
    assert_eq!((records(&found).0, records(&found).1), (0, 3));
    assert_eq!(decided("a.example", 16, Some(&table)), Answer::Forward);
    assert_eq!(decided("b.example", TYPE_A, Some(&table)), Answer::Forward);
    assert_eq!(decided("a b", TYPE_A, Some(&table)), Answer::Forward);
    // Without a table, a name of the mesh cannot be told from others.
    assert_eq!(records(&decided("b.example", TYPE_A, None)).0, 2);
}

#[test]
fn many_addresses_are_cut() {
    let ips: Vec<String> = (0..200).map(|number| format!("10.0.1.{number}")).collect();
    let ips: Vec<&str> = ips.iter().map(String::as_str).collect();
    let hosts: &[(&str, &str, &str, &str, &[&str])] = &[("a.example", "External", "", "", &ips)];
    let table = Table::parse(&encoded(hosts), &Place::default()).unwrap();
    let Answer::Response(message) = decided("a.example", TYPE_A, Some(&table)) else { panic!() };
    assert!(message.len() <= 512 && message[2] & 2 != 0, "{} bytes", message.len());
    let query = Query::parse(&question("a.example", TYPE_A)).unwrap();
    let Answer::Response(message) = answer(&query, Some(&table), 65_535, |records| records.reverse()) else {
        panic!()
    };
    assert_eq!((message[7], message[2] & 2), (200, 0));
    assert_eq!(message.last(), Some(&0), "the first address is the last one");
    assert!(Table::parse(&Bytes::new(), &Place::default()).unwrap().is_empty());
}
