//! Validated configuration of health reporting, from the flags and the WorkloadGroup file: the
//! servers, the node identity, and the intervals.

mod node;

use std::net::IpAddr;
use std::time::Duration;

use hyper::http::uri::Authority;
use serde_json::{Map, Value};
use workload_health::workload_group::{WorkloadGroup, is_dns_label, is_dns_subdomain};

use super::istio::go_duration;
use super::{Environment, bootstrap::absolute};
use crate::address::Endpoint;
use crate::args::DiscoveryArgs;
use crate::exit::Failure;
use crate::report::DiscoveryConfig;
use crate::report::connection::DiscoveryServer;
use crate::report::tls::{San, TlsError, TlsFiles};
use node::{is_label_value, labels, locality, node};

/// Lower bound of heartbeat intervals.
const SECOND: Duration = Duration::from_secs(1);

impl DiscoveryConfig {
    /// Returns `None` without `--discovery`. `group` is the content of the WorkloadGroup file.
    pub(super) fn new(
        args: DiscoveryArgs,
        group: Option<&WorkloadGroup>,
        instance_ip: IpAddr,
        hostname: &str,
        environment: &Environment,
    ) -> Result<Option<Self>, Failure> {
        let checked = Checked::new(&args)?;
        if args.discovery.is_empty() {
            return Ok(None);
        }
        let servers = args.discovery.iter().map(|server| parse_server(server, &args));
        let servers: Vec<DiscoveryServer> = servers.collect::<Result<_, _>>()?;
        let tls = tls_files(&args)?;
        if let Some(server) = servers.iter().find(|server| !is_loopback(&server.endpoint))
            && tls.is_none()
            && !args.insecure
        {
            return Err(Failure::Usage(format!(
                "--discovery = {}: --discovery-plaintext is allowed only for loopback addresses; for other machines set --discovery-ca, --discovery-cert and --discovery-key, or --insecure",
                server.authority
            )));
        }
        if let Some(files) = &tls {
            check_tls_files(files, &servers).map_err(|error| Failure::Usage(error.to_string()))?;
        }
        Ok(Some(Self {
            servers,
            tls,
            variant: args.xds,
            node: node(&args, group, instance_ip, hostname, &checked, environment)?,
            heartbeat: checked.heartbeat,
            plain_heartbeat: (!checked.plain_heartbeat.is_zero()).then_some(checked.plain_heartbeat),
            goodbye_timeout: checked.goodbye_timeout,
        }))
    }
}

/// Settings that are validated even without `--discovery`, so that a mistake does not stay hidden
/// until that flag is set.
struct Checked {
    heartbeat: Duration,
    plain_heartbeat: Duration,
    goodbye_timeout: Duration,
    locality: Option<[String; 3]>,
    labels: Map<String, Value>,
}

impl Checked {
    fn new(args: &DiscoveryArgs) -> Result<Self, Failure> {
        let heartbeat = duration("--heartbeat", &args.heartbeat)?;
        if heartbeat < SECOND {
            return Err(Failure::Usage(format!(
                "--heartbeat = {}: must be 1s or more; a server treats an agent that does not report as failed",
                args.heartbeat
            )));
        }
        let plain_heartbeat = duration("--plain-heartbeat", &args.plain_heartbeat)?;
        if !plain_heartbeat.is_zero() && plain_heartbeat < SECOND {
            let given = &args.plain_heartbeat;
            return Err(Failure::Usage(format!("--plain-heartbeat = {given}: must be 0 or 1s or more")));
        }
        let label = "a DNS-1123 label: lower-case letters, digits and dashes";
        let subdomain = "a DNS-1123 subdomain: lower-case letters, digits, dashes and dots";
        name("--group", args.group.as_deref(), is_dns_subdomain, subdomain)?;
        name("--workload-entry", args.workload_entry.as_deref(), is_dns_subdomain, subdomain)?;
        name("--namespace", args.namespace.as_deref(), is_dns_label, label)?;
        name("--service-account", args.service_account.as_deref(), is_dns_subdomain, subdomain)?;
        name(
            "--network",
            args.network.as_deref(),
            is_label_value,
            "letters, digits, dashes, dots and underscores",
        )?;
        if let Some(name) = &args.discovery_san {
            san(name, "discovery")?;
        }
        Ok(Self {
            heartbeat,
            plain_heartbeat,
            goodbye_timeout: duration("--goodbye-timeout", &args.goodbye_timeout)?,
            locality: args.locality.as_deref().map(locality).transpose()?,
            labels: labels(&args.label)?,
        })
    }
}

fn name(flag: &str, name: Option<&str>, is_valid: fn(&str) -> bool, what: &str) -> Result<(), Failure> {
    match name.filter(|name| !is_valid(name)) {
        Some(name) => Err(Failure::Usage(format!("{flag} = {name:?}: must be {what}"))),
        None => Ok(()),
    }
}

fn san(name: &str, host: &str) -> Result<San, Failure> {
    San::new(name, host).ok_or_else(|| {
        Failure::Usage(format!(
            "--discovery-san = {name:?}: must be a DNS name, an address, or a URI that begins with spiffe://"
        ))
    })
}

fn duration(flag: &str, text: &str) -> Result<Duration, Failure> {
    let wrong = || Failure::Usage(format!("{flag} = {text:?}: must be a duration such as 60s or 5m"));
    go_duration(text).ok_or_else(wrong)
}

fn tls_files(args: &DiscoveryArgs) -> Result<Option<TlsFiles>, Failure> {
    let files = [
        ("--discovery-ca", &args.discovery_ca),
        ("--discovery-cert", &args.discovery_cert),
        ("--discovery-key", &args.discovery_key),
    ];
    if args.discovery_plaintext {
        let given = files.iter().find(|(_, file)| file.is_some());
        return match given {
            Some((flag, _)) => Err(Failure::Usage(format!(
                "{flag} and --discovery-plaintext are mutually exclusive: set only one of them"
            ))),
            None => Ok(None),
        };
    }
    let file = |(flag, file): &(&str, &Option<std::path::PathBuf>)| match file {
        Some(file) => absolute(flag, file),
        None => Err(Failure::Usage(format!(
            "{flag}: --discovery requires --discovery-ca, --discovery-cert and --discovery-key, or --discovery-plaintext"
        ))),
    };
    let [ca, cert, key] = &files;
    Ok(Some(TlsFiles { ca: file(ca)?, cert: file(cert)?, key: file(key)? }))
}

/// Checks that the TLS files are usable at startup. After startup, unusable files leave the
/// previous ones in use.
fn check_tls_files(files: &TlsFiles, servers: &[DiscoveryServer]) -> Result<(), TlsError> {
    let content = files.read()?;
    servers.iter().try_for_each(|server| files.client(&content, &server.san).map(drop))
}

fn parse_server(text: &str, args: &DiscoveryArgs) -> Result<DiscoveryServer, Failure> {
    let wrong = || {
        Failure::Usage(format!(
            "--discovery = {text:?}: must be HOST:PORT, with brackets around an IPv6 address"
        ))
    };
    let authority: Authority = text.parse().map_err(|_| wrong())?;
    let port = authority.port_u16().filter(|port| *port != 0 && !text.contains('@')).ok_or_else(wrong)?;
    let host = authority.host();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let endpoint = match bare.parse::<IpAddr>() {
        Ok(ip) => Endpoint::Ip((ip, port).into()),
        Err(_) if host.is_empty() || bare != host => return Err(wrong()),
        Err(_) if host.eq_ignore_ascii_case("localhost") => Endpoint::Localhost(port),
        Err(_) => Endpoint::Name(host.to_owned(), port),
    };
    let san = match &args.discovery_san {
        Some(name) => san(name, bare)?,
        None => San::new(bare, bare).ok_or_else(wrong)?,
    };
    Ok(DiscoveryServer { authority: text.to_owned(), endpoint, san })
}

fn is_loopback(endpoint: &Endpoint) -> bool {
    match endpoint {
        Endpoint::Unix(_) | Endpoint::Localhost(_) => true,
        Endpoint::Ip(address) => address.ip().to_canonical().is_loopback(),
        Endpoint::Name(..) => false,
    }
}

#[cfg(test)]
mod tests;
