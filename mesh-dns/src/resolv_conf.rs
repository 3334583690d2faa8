//! `/etc/resolv.conf`: the servers that are asked for other names.

use std::net::IpAddr;

/// What is read of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResolvConf {
    pub servers: Vec<IpAddr>,
    pub search: Vec<String>,
}

/// Reads the file. Lines that are not understood are ignored; the last `search` or `domain` counts.
pub fn parse(text: &str) -> ResolvConf {
    let mut found = ResolvConf::default();
    for line in text.lines() {
        let line = line.split(['#', ';']).next().unwrap_or_default();
        let mut words = line.split_whitespace();
        match words.next() {
            Some("nameserver") => {
                // The zone of a link-local address is not supported.
                found.servers.extend(words.next().and_then(|server| server.parse::<IpAddr>().ok()));
            }
            Some("search") => found.search = words.map(str::to_owned).collect(),
            Some("domain") => found.search = words.take(1).map(str::to_owned).collect(),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests;
