//! The names of a mesh: a `NameTable` of istiod, prepared for queries.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;
use serde_json::{Value, json};
use xds::{Malformed, fields};

use crate::message::is_name;

/// The type URL of the table.
pub const TYPE_URL: &str = "type.googleapis.com/istio.networking.nds.v1.NameTable";
const KUBERNETES: &str = "Kubernetes";

/// Addresses of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    pub v4: Vec<Ipv4Addr>,
    pub v6: Vec<Ipv6Addr>,
}

/// What istiod says of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Host {
    addresses: Addresses,
    registry: String,
    short_name: String,
    namespace: String,
    others: Vec<String>,
}

/// Where the Pod is, which decides the short names that it may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    namespace: String,
    /// The domain without the namespace, such as `svc.cluster.local`.
    domain: String,
    /// The first search domain of the system's resolver.
    search: Option<String>,
}

impl Place {
    /// `domain` may begin with the namespace, as in `shop.svc.cluster.local`.
    pub fn new(namespace: &str, domain: &str, search: Option<&str>) -> Self {
        let rest = domain.split_once('.').filter(|(first, _)| *first == namespace).map(|(_, rest)| rest);
        let search = search.map(|search| search.trim_end_matches('.').to_ascii_lowercase());
        Self {
            namespace: namespace.to_owned(),
            domain: if domain == namespace { String::new() } else { rest.unwrap_or(domain).to_owned() },
            search: search.filter(|search| !search.is_empty()),
        }
    }
}

/// The names, in lower case and without the dot at the end. A mesh has thousands of them: each is stored once, and
/// what a resolver makes of it is recognized when it is looked up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    names: HashMap<Box<str>, Name>,
    hosts: Vec<Addresses>,
    /// The first search domain of the system's resolver.
    search: Option<Box<str>>,
}

/// A name of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Name {
    /// Position in the list of hosts.
    host: usize,
    /// True if the name with the search domain behind it stands for this name.
    has_alias: bool,
}

/// A name that the table contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found<'a> {
    /// The host that the name is an alias of.
    pub alias: Option<&'a str>,
    pub addresses: Option<&'a Addresses>,
    /// True if the host is `*.` and a part of the name.
    pub is_wildcard: bool,
    /// The name of the host.
    pub host: &'a str,
}

impl Table {
    /// Reads an encoded `NameTable`. Hosts without a valid address are left out.
    ///
    /// # Errors
    /// If it is not such a message.
    pub fn parse(message: &Bytes, place: &Place) -> Result<Self, Malformed> {
        let mut parsed: BTreeMap<String, Host> = BTreeMap::new();
        for field in fields(message) {
            let field = field?;
            if field.number == 1 {
                let (name, host) = entry(&field.bytes()?)?;
                parsed.insert(name, host);
            }
        }
        let mut table = Self { search: place.search.as_deref().map(Box::from), ..Self::default() };
        for (name, host) in parsed {
            if !host.addresses.v4.is_empty() || !host.addresses.v6.is_empty() {
                table.add(&names(&name, &host, place), host.addresses);
            }
        }
        table.names.shrink_to_fit();
        table.hosts.shrink_to_fit();
        Ok(table)
    }

    fn add(&mut self, names: &BTreeSet<String>, addresses: Addresses) {
        let host = self.hosts.len();
        self.hosts.push(addresses);
        for name in names.iter().filter(|name| is_name(name)) {
            let is_expandable = self.search.as_deref().is_some_and(|search| {
                let expanded = format!("{name}.{search}");
                !is_within(name, search) && !names.contains(&expanded) && is_name(&expanded)
            });
            let name = self.names.entry(name.as_str().into()).or_insert(Name { host, has_alias: false });
            name.host = host;
            name.has_alias |= is_expandable;
        }
    }

    /// Number of names with addresses.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Describes the table in the format of a `NameTable` as JSON, with the names that are derived from others.
    pub fn to_json(&self) -> Value {
        let ips = |Addresses { v4, v6 }: &Addresses| {
            let v4 = v4.iter().map(ToString::to_string);
            v4.chain(v6.iter().map(ToString::to_string)).collect::<Vec<_>>()
        };
        let hosts: BTreeMap<&str, Value> = self
            .names
            .iter()
            .filter_map(|(name, found)| Some((&**name, json!({"ips": ips(self.hosts.get(found.host)?)}))))
            .collect();
        json!({ "table": hosts })
    }

    /// Looks up a name in lower case, or the wildcard that it matches.
    pub fn find(&self, name: &str) -> Option<Found<'_>> {
        if let Some(found) = self.exact(name, false) {
            return Some(found);
        }
        let mut rest = name;
        while let Some((_, parent)) = rest.split_once('.') {
            if let Some(found) = self.exact(&format!("*.{parent}"), true) {
                return Some(found);
            }
            rest = parent;
        }
        None
    }

    fn exact(&self, name: &str, is_wildcard: bool) -> Option<Found<'_>> {
        if let Some((host, found)) = self.expanded(name) {
            let addresses = self.hosts.get(found.host);
            return Some(Found { alias: Some(host), addresses, is_wildcard, host });
        }
        let (host, found) = self.names.get_key_value(name)?;
        Some(Found { alias: None, addresses: self.hosts.get(found.host), is_wildcard, host })
    }

    /// Returns the name to which a resolver has added the search domain.
    fn expanded(&self, name: &str) -> Option<(&str, &Name)> {
        let name = name.strip_suffix(self.search.as_deref()?)?.strip_suffix('.')?;
        let (host, found) = self.names.get_key_value(name)?;
        found.has_alias.then_some((&**host, found))
    }
}

/// Returns true for `a.b.c` and `b.c`, and also for `ab.c` and `b.c`, as Istio's agent has it.
fn is_within(name: &str, domain: &str) -> bool {
    name.ends_with(domain)
}

/// All names of a host.
fn names(name: &str, host: &Host, place: &Place) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut add = |name: &str| names.extend([name.to_ascii_lowercase()]);
    if host.registry != KUBERNETES {
        add(name.strip_suffix('.').unwrap_or(name));
        return names;
    }
    if name.ends_with('.') {
        return names;
    }
    add(name);
    let Host { short_name, namespace, others, .. } = host;
    let Some(first) = place.domain.split('.').next().filter(|first| !first.is_empty()) else { return names };
    if !name.ends_with(&place.domain) {
        return names;
    }
    add(&format!("{short_name}.{namespace}"));
    if place.namespace == *namespace {
        add(short_name);
    }
    add(&format!("{short_name}.{namespace}.{first}"));
    others.iter().for_each(|other| add(other));
    names
}

/// Reads an entry of the map.
fn entry(message: &Bytes) -> Result<(String, Host), Malformed> {
    let (mut name, mut host) = (String::new(), Host::default());
    for field in fields(message) {
        let field = field?;
        match field.number {
            1 => name = field.text()?,
            2 => host = read_host(&field.bytes()?)?,
            _ => {}
        }
    }
    Ok((name, host))
}

fn read_host(message: &Bytes) -> Result<Host, Malformed> {
    let mut host = Host::default();
    for field in fields(message) {
        let field = field?;
        match field.number {
            1 => match field.text()?.parse::<IpAddr>().map(|ip| ip.to_canonical()) {
                Ok(IpAddr::V4(ip)) => host.addresses.v4.push(ip),
                Ok(IpAddr::V6(ip)) => host.addresses.v6.push(ip),
                Err(_) => {}
            },
            2 => host.registry = field.text()?,
            3 => host.short_name = field.text()?,
            4 => host.namespace = field.text()?,
            5 => host.others.push(field.text()?),
            _ => {}
        }
    }
    Ok(host)
}

#[cfg(test)]
pub(crate) mod tests;
