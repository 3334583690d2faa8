//! To whom, as whom and how often health is reported: from flags and the WorkloadGroup's file to checked values.

use std::net::IpAddr;
use std::time::Duration;

use hyper::http::uri::Authority;
use probe::health_report::{
    APP_HEALTH, AUTO_REGISTER_GROUP, CLUSTER_ID, INSTANCE_IPS, LABELS, NAMESPACE, NETWORK, PROTOCOL_VERSION,
    SERVICE_ACCOUNT, WORKLOAD_ENTRY,
};
use probe::workload_group::WorkloadGroup;
use serde_json::{Map, Value, json};

use super::istio::go_duration;
use super::{Environment, bootstrap::absolute};
use crate::address::Endpoint;
use crate::args::{DiscoveryArgs, Xds};
use crate::exit::Failure;
use crate::report::tls::{San, TlsError, TlsFiles};
use crate::xds::Node;

/// Istio's name of the cluster, and what it is where nobody names it.
const ISTIO_CLUSTER_ID: &str = "ISTIO_META_CLUSTER_ID";
const DEFAULT_CLUSTER_ID: &str = "Kubernetes";
/// Where nothing says otherwise.
const DEFAULT_NAME: &str = "default";

/// Reporting, checked.
#[derive(Debug, Clone)]
pub struct DiscoveryConfig {
    /// One at least.
    pub servers: Vec<DiscoveryServer>,
    /// Absent: plaintext.
    pub tls: Option<TlsFiles>,
    /// Of the protocol.
    pub variant: Xds,
    /// Who we are, but for the probe.
    pub node: Node,
    /// Towards our server, a second at least.
    pub heartbeat: Duration,
    /// Towards a plain server; absent: none.
    pub plain_heartbeat: Option<Duration>,
    /// The longest wait for the goodbye's acknowledgement.
    pub goodbye_timeout: Duration,
}

/// One `--discovery`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiscoveryServer {
    /// As it was given, `discovery.example:15012`.
    pub authority: String,
    /// Whom to dial.
    pub endpoint: Endpoint,
    /// What its certificate must carry.
    pub san: San,
}

impl DiscoveryConfig {
    /// `None` without `--discovery`. `group`: of the file; `hostname`: of this machine.
    pub(super) fn new(
        args: DiscoveryArgs,
        group: Option<&WorkloadGroup>,
        instance_ip: IpAddr,
        hostname: &str,
        environment: &Environment,
    ) -> Result<Option<Self>, Failure> {
        if args.discovery.is_empty() {
            return Ok(None);
        }
        let tls = tls_files(&args)?;
        let servers = args.discovery.iter().map(|server| one_server(server, &args));
        let servers: Vec<DiscoveryServer> = servers.collect::<Result<_, _>>()?;
        if let Some(server) = servers.iter().find(|server| !is_loopback(&server.endpoint))
            && tls.is_none()
            && !args.insecure
        {
            return Err(Failure::Usage(format!(
                "--discovery = {}: --discovery-plaintext is for loopback addresses; other machines need certificates, or --insecure",
                server.authority
            )));
        }
        if let Some(files) = &tls {
            usable(files, &servers).map_err(|error| Failure::Usage(error.to_string()))?;
        }
        let heartbeat = duration("--heartbeat", &args.heartbeat)?;
        if heartbeat < Duration::from_secs(1) {
            return Err(Failure::Usage(format!(
                "--heartbeat = {}: must be 1s or more; a server takes a silent agent for dead",
                args.heartbeat
            )));
        }
        let plain = duration("--plain-heartbeat", &args.plain_heartbeat)?;
        if !plain.is_zero() && plain < Duration::from_secs(1) {
            return Err(Failure::Usage(format!(
                "--plain-heartbeat = {}: must be 0 or 1s or more",
                args.plain_heartbeat
            )));
        }
        Ok(Some(Self {
            servers,
            tls,
            variant: args.xds,
            node: node(&args, group, instance_ip, hostname, environment)?,
            heartbeat,
            plain_heartbeat: (!plain.is_zero()).then_some(plain),
            goodbye_timeout: duration("--goodbye-timeout", &args.goodbye_timeout)?,
        }))
    }
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
                "{flag} and --discovery-plaintext exclude each other: choose one of them"
            ))),
            None => Ok(None),
        };
    }
    let file = |(flag, file): &(&str, &Option<std::path::PathBuf>)| match file {
        Some(file) => absolute(flag, file),
        None => Err(Failure::Usage(format!(
            "{flag}: --discovery needs it, with --discovery-ca, --discovery-cert and --discovery-key; or --discovery-plaintext"
        ))),
    };
    let [ca, cert, key] = &files;
    Ok(Some(TlsFiles { ca: file(ca)?, cert: file(cert)?, key: file(key)? }))
}

/// Files that a stream could not be opened with are a mistake now; later ones leave the old in force.
fn usable(files: &TlsFiles, servers: &[DiscoveryServer]) -> Result<(), TlsError> {
    let content = files.read()?;
    servers.iter().try_for_each(|server| files.client(&content, &server.san).map(drop))
}

fn one_server(text: &str, args: &DiscoveryArgs) -> Result<DiscoveryServer, Failure> {
    let wrong =
        || Failure::Usage(format!("--discovery = {text:?}: must be HOST:PORT, an IPv6 address in brackets"));
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
        Some(san) => San::new(san, bare).ok_or_else(|| {
            Failure::Usage(format!(
                "--discovery-san = {san:?}: must be a DNS name, an address, or a URI that begins with spiffe://"
            ))
        })?,
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

fn node(
    args: &DiscoveryArgs,
    group: Option<&WorkloadGroup>,
    ip: IpAddr,
    hostname: &str,
    environment: &Environment,
) -> Result<Node, Failure> {
    let (entry_key, entry) = match (&args.workload_entry, &args.group, group) {
        (Some(_), Some(_), _) => {
            return Err(Failure::Usage(
                "--group and --workload-entry exclude each other: choose one of them".to_owned(),
            ));
        }
        (Some(entry), None, _) => (WORKLOAD_ENTRY, entry.clone()),
        (None, Some(group), _) => (AUTO_REGISTER_GROUP, group.clone()),
        (None, None, Some(group)) => (AUTO_REGISTER_GROUP, group.name.clone()),
        (None, None, None) => {
            return Err(Failure::Usage(
                "--discovery: whose health is it? --workload-group, --group or --workload-entry says so"
                    .to_owned(),
            ));
        }
    };
    let template = group.map(|group| &group.template);
    let or_default = |flag: &Option<String>, file: Option<&String>| {
        flag.as_ref().or(file).map_or(DEFAULT_NAME, String::as_str).to_owned()
    };
    let namespace = or_default(&args.namespace, group.and_then(|group| group.namespace.as_ref()));
    let service_account =
        or_default(&args.service_account, template.and_then(|template| template.service_account.as_ref()));
    let cluster = environment.text(ISTIO_CLUSTER_ID)?.unwrap_or(DEFAULT_CLUSTER_ID);
    let mut metadata = json!({
        NAMESPACE: namespace,
        SERVICE_ACCOUNT: service_account,
        INSTANCE_IPS: ip.to_string(),
        entry_key: entry,
        CLUSTER_ID: cluster,
        APP_HEALTH: { "version": PROTOCOL_VERSION },
    });
    if let Value::Object(fields) = &mut metadata {
        fields.extend(args.network.clone().map(|network| (NETWORK.to_owned(), network.into())));
        let labels = labels(&args.label)?;
        fields.extend((!labels.is_empty()).then(|| (LABELS.to_owned(), labels.into())));
    }
    Ok(Node {
        id: format!("sidecar~{ip}~{hostname}.{namespace}~{namespace}.svc.cluster.local"),
        locality: args.locality.as_deref().map(locality).transpose()?,
        metadata,
    })
}

fn labels(labels: &[String]) -> Result<Map<String, Value>, Failure> {
    let label = |text: &String| {
        let (key, value) = text
            .split_once('=')
            .filter(|(key, _)| !key.is_empty())
            .ok_or_else(|| Failure::Usage(format!("--label = {text:?}: must be KEY=VALUE")))?;
        Ok((key.to_owned(), value.into()))
    };
    labels.iter().map(label).collect()
}

fn locality(text: &str) -> Result<[String; 3], Failure> {
    let mut parts = text.split('/').map(str::to_owned);
    let locality = [(); 3].map(|()| parts.next().unwrap_or_default());
    let [region, zone, sub_zone] = &locality;
    if parts.next().is_some() || region.is_empty() || (zone.is_empty() && !sub_zone.is_empty()) {
        return Err(Failure::Usage(format!("--locality = {text:?}: must be REGION[/ZONE[/SUBZONE]]")));
    }
    Ok(locality)
}

#[cfg(test)]
mod tests;
