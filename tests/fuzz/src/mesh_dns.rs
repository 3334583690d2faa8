//! Feeds arbitrary messages to the DNS proxy.

use bytes::Bytes;
use mesh_dns::answer::{Answer, answer};
use mesh_dns::message::{self, Code, NoQuery, Query};
use mesh_dns::table::{Place, Table};

/// Answers a query over UDP, with a table that the bytes after the first 512 contain. Each response belongs to the
/// query and fits the limit; names of the table are found.
///
/// # Panics
/// Panics if one of these does not hold.
pub fn dns_query(bytes: &[u8]) {
    let (query, names) = bytes.split_at(bytes.len().min(512));
    let place = Place::new("shop", "shop.svc.cluster.local", Some("shop.svc.cluster.local"));
    let table = Table::parse(&Bytes::copy_from_slice(names), &place).ok();
    let is_own =
        |response: &[u8]| response.len() >= 12 && response[..2] == query[..2] && response[2] & 0x80 != 0;
    let query = match Query::parse(query) {
        Ok(query) => query,
        Err(NoQuery::Ignored) => return,
        Err(NoQuery::Refused(response)) => return assert!(is_own(&response)),
    };
    let failure = query.failure(Code::ServerFailure);
    assert!(is_own(&failure) && message::answers(&failure, bytes));
    if let Answer::Response(response) = answer(&query, table.as_ref(), query.limit, |_| ()) {
        assert!(is_own(&response) && message::answers(&response, bytes));
        assert!(response.len() <= query.limit.max(512), "{} bytes of {}", response.len(), query.limit);
    }
}

/// Reads a table of names, each of which is found afterwards.
///
/// # Panics
/// Panics if one is not.
pub fn name_table(bytes: &[u8]) {
    let place = Place::new("shop", "shop.svc.cluster.local", Some("shop.svc.cluster.local"));
    let Ok(table) = Table::parse(&Bytes::copy_from_slice(bytes), &place) else { return };
    let shown = table.to_json();
    let names = shown["table"].as_object().expect("an object");
    assert_eq!(names.len(), table.len());
    for name in names.keys() {
        let found = table.find(name).expect("a name of the table");
        assert!(found.addresses.is_some() && message::is_name(name), "{name}");
    }
}
