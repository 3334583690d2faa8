//! Parsers of flag values about the node and its reports.

use std::time::Duration;

use workload_health::workload_group::{is_dns_label, is_dns_subdomain};

use crate::args::go_duration;

pub(super) fn duration(text: &str) -> Result<Duration, &'static str> {
    go_duration(text).ok_or("must be a duration such as 60s or 5m")
}

pub(super) fn heartbeat(text: &str) -> Result<Duration, &'static str> {
    let is_valid = |interval: &Duration| *interval >= Duration::from_secs(1);
    let what = "must be 1s or more; a server treats an agent that does not report as failed";
    Some(duration(text)?).filter(is_valid).ok_or(what)
}

pub(super) fn heartbeat_or_zero(text: &str) -> Result<Duration, &'static str> {
    let is_valid = |interval: &Duration| interval.is_zero() || *interval >= Duration::from_secs(1);
    Some(duration(text)?).filter(is_valid).ok_or("must be 0 or 1s or more")
}

pub(super) fn dns_label(text: &str) -> Result<String, &'static str> {
    valid(text, is_dns_label, "must be a DNS-1123 label: lower-case letters, digits and dashes")
}

pub(super) fn dns_subdomain(text: &str) -> Result<String, &'static str> {
    let what = "must be a DNS-1123 subdomain: lower-case letters, digits, dashes and dots";
    valid(text, is_dns_subdomain, what)
}

pub(super) fn label_value(text: &str) -> Result<String, &'static str> {
    valid(text, is_label_value, "must be letters, digits, dashes, dots and underscores")
}

fn valid(text: &str, is_valid: fn(&str) -> bool, what: &'static str) -> Result<String, &'static str> {
    if is_valid(text) { Ok(text.to_owned()) } else { Err(what) }
}

/// Parses `KEY=VALUE`; the value may be empty.
pub(super) fn label(text: &str) -> Result<(String, String), &'static str> {
    let label = text.split_once('=').filter(|(key, _)| !key.is_empty());
    label.map(|(key, value)| (key.to_owned(), value.to_owned())).ok_or("must be KEY=VALUE")
}

/// Parses `REGION[/ZONE[/SUBZONE]]`; the parts that are not given are empty.
pub(super) fn locality(text: &str) -> Result<[String; 3], &'static str> {
    let mut parts = text.split('/');
    let locality = [(); 3].map(|()| parts.next());
    if parts.next().is_some() || !locality.iter().flatten().all(|part| is_label_value(part)) {
        return Err("must be REGION[/ZONE[/SUBZONE]]");
    }
    Ok(locality.map(|part| part.unwrap_or_default().to_owned()))
}

/// Returns true for a non-empty Kubernetes label value. Networks and localities are label values.
fn is_label_value(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    let is_outer = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = text.as_bytes();
    bytes.len() <= 63
        && is_outer(bytes.first())
        && is_outer(bytes.last())
        && bytes.iter().copied().all(is_inner)
}
