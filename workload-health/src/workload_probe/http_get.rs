//! The `httpGet` handler of a virtual machine's probe.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::num::NonZeroU16;

use serde_json::{Value, json};

use super::port;
use crate::fields::{self, Findings, Object};
use probe::{Header, Scheme};

const PATH_BYTES: usize = 8 << 10;
const HEADERS: usize = 100;
const HEADER_BYTES: usize = 16 << 10;
/// Headers that the prober writes itself, because they determine the message length and the use of
/// the connection.
const OWN_HEADERS: [&str; 7] =
    ["connection", "content-length", "transfer-encoding", "upgrade", "te", "trailer", "expect"];

/// A GET whose status decides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadHttpGet {
    /// The path and query as they are sent: beginning with a slash, percent-encoded, without
    /// fragment.
    pub path: String,
    /// The port; never a port of the proxy.
    pub port: NonZeroU16,
    /// The scheme, by default HTTP.
    pub scheme: Scheme,
    /// An IP address or a DNS name; the instance IP if absent.
    pub host: Option<String>,
    /// The headers as declared, in their order. `Host` in any case sets the authority.
    pub headers: Vec<Header>,
}

impl WorkloadHttpGet {
    pub(super) fn read(fields: &Object, findings: &mut Findings) -> Option<Self> {
        let path = match request_path(fields.string("path", findings)) {
            Ok(path) => path,
            Err(reason) => {
                findings
                    .error(&fields.field_path("path"), format_args!("not a valid request path: {reason}"));
                String::new()
            }
        };
        let scheme = match fields.string("scheme", findings) {
            "" | "HTTP" => Scheme::Http,
            "HTTPS" => Scheme::Https,
            other => {
                let got = fields::excerpt(&other.into());
                findings
                    .error(&fields.field_path("scheme"), format_args!("must be HTTP or HTTPS, got {got}"));
                Scheme::Http
            }
        };
        let host = host(fields, findings);
        let headers = headers(fields, findings);
        Some(Self { path, port: port(fields, findings)?, scheme, host, headers })
    }

    pub(super) fn to_json(&self) -> Value {
        let header = |header: &Header| json!({ "name": header.name, "value": header.value });
        let mut fields = serde_json::Map::new();
        fields.insert("path".to_owned(), self.path.as_str().into());
        fields.insert("port".to_owned(), self.port.get().into());
        fields.insert("scheme".to_owned(), self.scheme.word().to_ascii_uppercase().into());
        if let Some(host) = &self.host {
            fields.insert("host".to_owned(), host.as_str().into());
        }
        if !self.headers.is_empty() {
            fields.insert("httpHeaders".to_owned(), self.headers.iter().map(header).collect());
        }
        Value::Object(fields)
    }

    /// Returns the value of a declared `Host` that is not empty.
    pub fn declared_host(&self) -> Option<&str> {
        self.headers
            .iter()
            .find(|header| header.has_name("host"))
            .map(Header::trimmed_value)
            .filter(|host| !host.is_empty())
    }
}

/// Returns the field `host`; `None` if it is empty.
pub(super) fn host(fields: &Object, findings: &mut Findings) -> Option<String> {
    let host = fields.string("host", findings);
    if host.is_empty() {
        return None;
    }
    if !(host.parse::<IpAddr>().is_ok() || is_dns_name(host)) {
        let got = fields::excerpt(&host.into());
        findings
            .error(&fields.field_path("host"), format_args!("must be an IP address or DNS name, got {got}"));
    }
    Some(host.to_owned())
}

/// Returns true for labels of 1 to 63 letters, digits, `-` and `_`. The last label must not consist
/// of digits, because some resolvers would take the name for an IP address.
fn is_dns_name(host: &str) -> bool {
    let name = host.strip_suffix('.').unwrap_or(host);
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    name.len() <= 253 && name.split('.').all(label) && !last.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the path that is sent for a declared path: with a leading slash, without fragment, and
/// with every byte encoded that a request line cannot contain.
fn request_path(declared: &str) -> Result<String, String> {
    if declared.len() > PATH_BYTES {
        return Err("longer than 8 KiB".into());
    }
    if is_absolute(declared) {
        return Err("an absolute URL; set host, port and scheme in their fields".into());
    }
    let path = declared.split('#').next().unwrap_or_default();
    let mut sent = String::new();
    if !path.starts_with('/') {
        sent.push('/');
    }
    let mut rest = path.as_bytes();
    while let [byte, tail @ ..] = rest {
        match byte {
            0..=0x1f | 0x7f => return Err(format!("control byte 0x{byte:02x}")),
            b'%' if !matches!(tail, [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit()) => {
                let shown: String =
                    tail.iter().take(2).copied().filter(u8::is_ascii_graphic).map(char::from).collect();
                return Err(format!("bad escape %{shown}"));
            }
            b' ' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}' | 0x80.. => {
                let _ = write!(sent, "%{byte:02X}");
            }
            byte => sent.push(char::from(*byte)),
        }
        rest = tail;
    }
    Ok(sent)
}

fn is_absolute(declared: &str) -> bool {
    let Some((scheme, _)) = declared.split_once("://") else { return false };
    let rest = |char: char| char.is_ascii_alphanumeric() || "+-.".contains(char);
    scheme.starts_with(|char: char| char.is_ascii_alphabetic()) && scheme.chars().all(rest)
}

fn headers(fields: &Object, findings: &mut Findings) -> Vec<Header> {
    let elements = fields.list("httpHeaders", findings);
    let path = fields.field_path("httpHeaders");
    if elements.len() > HEADERS {
        findings.error(&path, format_args!("must be at most {HEADERS} headers"));
        return Vec::new();
    }
    let headers: Vec<Header> =
        elements.into_iter().filter_map(|(path, value)| header(value, path, findings)).collect();
    let bytes: usize =
        headers.iter().map(|header| header.name.len().saturating_add(header.value.len())).sum();
    if bytes > HEADER_BYTES {
        findings.error(&path, "must be at most 16 KiB");
    }
    headers
}

fn header(value: &Value, path: String, findings: &mut Findings) -> Option<Header> {
    let fields = Object::new(value, path, findings)?;
    fields.warn_unknown(&["name", "value"], findings);
    let (name, value) = (fields.string("name", findings), fields.string("value", findings));
    let lower = name.to_ascii_lowercase();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_name) {
        findings.error(&fields.field_path("name"), "must match [-_A-Za-z0-9]+");
    } else if OWN_HEADERS.contains(&lower.as_str()) || lower.starts_with("proxy-") {
        findings.error(&fields.field_path("name"), format_args!("\"{name}\" is set by the prober"));
    }
    let header = Header { name: name.to_owned(), value: value.to_owned() };
    let host = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:[]".contains(&byte);
    if value.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0)) {
        findings.error(&fields.field_path("value"), "must not contain CR, LF or NUL");
    } else if value.bytes().any(|byte| (byte < b' ' && byte != b'\t') || byte == 0x7f) {
        findings.error(&fields.field_path("value"), "must not contain control characters");
    } else if lower == "host" && !header.trimmed_value().bytes().all(host) {
        findings.error(&fields.field_path("value"), "must be a host");
    }
    Some(header)
}
