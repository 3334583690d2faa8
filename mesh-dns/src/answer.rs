//! What a query gets.

use crate::message::{Code, Data, Query, Record, TYPE_A, TYPE_AAAA};
use crate::table::Table;

/// What to do with a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Send this response.
    Response(Vec<u8>),
    /// The table does not contain the name: ask the servers of the system.
    Forward,
}

/// Decides about a query; `table` is `None` before the first one has arrived. `limit` is the largest response in
/// bytes, and `shuffle` brings the addresses of a host in a random order.
pub fn answer(
    query: &Query,
    table: Option<&Table>,
    limit: usize,
    shuffle: impl FnOnce(&mut [Record]),
) -> Answer {
    let Some(table) = table else { return Answer::Response(query.failure(Code::ServerFailure)) };
    let Some(name) = query.name.as_deref() else { return Answer::Forward };
    let Some(found) = table.find(name) else { return Answer::Forward };
    // An alias of a wildcard has the name of the wildcard.
    let owner = if found.is_wildcard && found.alias.is_none() { name } else { found.host };
    let record = |data| Record { name: owner.to_owned(), data };
    let mut addresses: Vec<Record> = match (query.kind, found.addresses) {
        (TYPE_A, Some(found)) => found.v4.iter().map(|ip| record(Data::A(*ip))).collect(),
        (TYPE_AAAA, Some(found)) => found.v6.iter().map(|ip| record(Data::Aaaa(*ip))).collect(),
        (TYPE_A | TYPE_AAAA, None) => Vec::new(),
        _ => return Answer::Forward,
    };
    shuffle(&mut addresses);
    let alias = found.alias.filter(|_| !addresses.is_empty());
    let alias = alias.map(|host| Record { name: name.to_owned(), data: Data::Alias(host.to_owned()) });
    let records: Vec<Record> = alias.into_iter().chain(addresses).collect();
    Answer::Response(query.response(&records, limit))
}

#[cfg(test)]
mod tests;
