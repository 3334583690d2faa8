//! The configuration of a sidecar that Istio's injector has configured.

mod certificates;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU16;
use std::path::Path;
use std::time::Duration;

use clap::Parser;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use istio_agent::ca_client::CaClient;
use istio_agent::contract::{Contract, NotOurs};
use istio_agent::dns::DnsConfig;
use istio_agent::workload_certificate::CertificateConfig;
use istio_bootstrap::parameters::localhost;
use istio_bootstrap::support::Unsupported;
use istio_certificates::identity::WorkloadIdentity;
use istio_certificates::key::KeyKind;
use istio_certificates::renewal::Schedule;
use mesh_dns::resolv_conf;
use mesh_dns::table::Place;
use probe_server::ProbeClients;
use readiness::listeners::DrainScope;
use workload_health::WorkloadProbe;
use workload_prober::source::LocalRules;
use xds::{Node, Variant};
use xds_client::token::TokenFile;
use xds_client::{DiscoveryConfig, DiscoveryServer, ProxyConfig};

use super::{Environment, RunConfig};
use crate::args::{Args, Command, go_duration};
use crate::machine::Machine;
use crate::vm::IstioConfig;
use agent_output::exit::Failure;
use envoy_process::state_dir::write_unless_equal;

/// Name of the agent's directory, in the one of Envoy's configuration, which is in memory.
const STATE: &str = "app-health";
const ADS_SOCKET: &str = "XDS";
const TOKEN: &str = "./var/run/secrets/tokens/istio-token";
const RESOLV_CONF: &str = "/etc/resolv.conf";
/// The port of the servers of the system.
const DNS_PORT: u16 = 53;
const REVOKED: &str = "/var/run/secrets/istio/crl/ca-crl.pem";
/// The name that istiod's certificate has if the address of istiod is this machine.
const ISTIOD: &str = "istiod.istio-system.svc";
/// How old the configuration may be that is served while istiod is unavailable.
const CACHE_AGE: Duration = Duration::from_secs(24 * 3600);
/// Maximum size of a response of istiod in bytes. In the incremental variant, too, the first one has all
/// clusters or endpoints of the mesh.
const RESPONSE_LIMIT: usize = 512 << 20;
/// The port of Envoy on which kubelet asks for readiness.
const READY_PORT: u16 = 15021;
/// How often a report of health is sent again, because istiod confirms none.
const ISTIO_HEARTBEAT: Duration = Duration::from_secs(300);
/// How long the last report of health may take.
const FINAL_REPORT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long connections may stay open after SIGTERM with EXIT_ON_ZERO_ACTIVE_CONNECTIONS.
const LONGEST_DRAIN: Duration = Duration::from_secs(3600);

impl RunConfig {
    /// Configures a sidecar as Istio's agent would. The flags of `run` that have no counterpart in Istio
    /// apply by their variables.
    ///
    /// # Errors
    /// What has to be left to Istio's agent.
    pub fn of_istio(contract: &Contract, environment: &Environment) -> Result<Self, NotOurs> {
        let config = &contract.config;
        let path = |name: &str| contract.path(name);
        let state_dir = path(config.text("configPath")).join(STATE);
        let status_port = config.port("statusPort").ok_or_else(|| Unsupported {
            setting: "statusPort = 0".to_owned(),
            why: "the status port cannot be switched off",
        })?;
        let (minimum, deadline) = drain(contract)?;
        let local_target = contract.is_on("REWRITE_PROBE_LEGACY_LOCALHOST_DESTINATION");
        let mut words: Vec<String> = vec!["app-health-agent".to_owned(), "run".to_owned()];
        let mut flag = |name: &str, value: String| words.push(format!("--{name}={value}"));
        flag("probes", "agent".to_owned());
        flag("probe-address", format!("[::]:{status_port}"));
        flag("stats-address", "off".to_owned());
        let admin_port = config.port("proxyAdminPort").map_or(0, NonZeroU16::get);
        flag("admin", SocketAddr::new(localhost(&contract.sources), admin_port).to_string());
        flag("state-dir", state_dir.display().to_string());
        flag("envoy-config", contract.bootstrap_file.display().to_string());
        flag("envoy", path(config.text("binaryPath")).display().to_string());
        flag("dynamic", "on".to_owned());
        let ready_port = contract.variable("ENVOY_STATUS_PORT").and_then(|port| port.parse().ok());
        let ready_port: u16 = ready_port.unwrap_or(READY_PORT);
        // Envoy answers whatever it is asked there.
        let data_path = SocketAddr::new(localhost(&contract.sources), ready_port);
        flag("data-path", format!("http://{data_path}"));
        flag("drain-deadline-seconds", deadline.as_secs().max(1).to_string());
        flag("drain-seconds", minimum.as_secs().to_string());
        flag("log-level", log_level(&contract.command.log_output_level).to_owned());
        if contract.command.log_as_json {
            flag("log-format", "json".to_owned());
        }
        if local_target {
            flag("instance-ip", "127.0.0.1".to_owned());
        }
        if environment.get("APP_HEALTH_ENVOY_RESTART").is_none() {
            flag("envoy-restart", "limited".to_owned());
        }
        let invalid = |failure: &dyn std::fmt::Display| NotOurs::Invalid(failure.to_string());
        let parsed = Args::try_parse_from(&words).map_err(|error| invalid(&error))?;
        let Command::Run(args) = parsed.command else { return Err(invalid(&"not the command run")) };
        let machine = Machine::here();
        let mut run = Self::on(*args, environment, &machine).map_err(|failure| invalid(&failure))?;
        // Envoy serves port 15021, and asks the status port.
        run.ready_address.set_port(status_port.get());
        run.has_ready_listener = false;
        run.requires_data_path = false;
        run.drain.scope = DrainScope::Sidecar;
        let has_local_metrics = contract.is_on("METRICS_LOCALHOST_ACCESS_ONLY");
        if let Some(probes) = &mut run.probes {
            probes.istio_metrics = Some(has_local_metrics);
            // kubelet has connections that no other client takes. Hooks are answered for all, as by Istio's agent.
            let node = contract.variable("HOST_IP").and_then(|address| address.parse().ok());
            let kubelet: Vec<IpAddr> = node.into_iter().chain(machine.gateways).collect();
            probes.clients = ProbeClients::new(Vec::new(), kubelet);
        }
        run.warnings.extend(contract.warnings.iter().cloned());
        if let Some(envoy) = &mut run.envoy {
            envoy.flags = contract.envoy_flags.iter().map(Into::into).collect();
            let workers = config.concurrency().and_then(|workers| u32::try_from(workers).ok());
            envoy.concurrency = workers.unwrap_or_default();
        }
        let probe = readiness_probe(contract, &run.vm.health.rules)?;
        run.vm.discovery = Some(discovery(contract, probe.is_some())?);
        let istio = istio(contract, &state_dir)?;
        run.vm.health.is_reported = probe.is_some();
        // The rules of Istio's iptables program exclude this source, so that Envoy does not answer instead.
        run.vm.health.target.capture = true;
        run.vm.health.probe = probe;
        run.vm.proxy = Some(ProxyConfig {
            sockets: vec![
                contract.socket(&path(config.text("configPath")).join(ADS_SOCKET)),
                contract.secrets_socket(),
            ],
            state_dir,
            max_age: Some(CACHE_AGE),
        });
        run.vm.istio = Some(istio);
        Ok(run)
    }
}

/// The shortest and the longest time from SIGTERM to the end of Envoy.
fn drain(contract: &Contract) -> Result<(Duration, Duration), NotOurs> {
    if contract.is_on("EXIT_ON_ZERO_ACTIVE_CONNECTIONS") {
        let minimum =
            contract.variable("MINIMUM_DRAIN_DURATION").map_or(Some(Duration::from_secs(5)), go_duration);
        let minimum = minimum.ok_or_else(|| {
            NotOurs::Invalid("MINIMUM_DRAIN_DURATION: must be a duration such as 5s".to_owned())
        })?;
        return Ok((minimum.min(LONGEST_DRAIN), LONGEST_DRAIN));
    }
    let time = contract.config.duration("terminationDrainDuration").unwrap_or_default();
    Ok((time, time))
}

/// The level of `default:info,ads:debug` for all of the agent.
fn log_level(levels: &str) -> &str {
    let named = levels.split(',').find_map(|level| match level.split_once(':') {
        Some(("default" | "all", level)) => Some(level),
        Some(_) => None,
        None => Some(level),
    });
    match named.unwrap_or("info") {
        level @ ("debug" | "info" | "warn" | "error") => level,
        "fatal" | "none" => "error",
        _ => "info",
    }
}

fn server(setting: &str, address: &str, san: Option<&str>) -> Result<DiscoveryServer, NotOurs> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let san = san.or((host == "localhost").then_some(ISTIOD));
    DiscoveryServer::parse(address, san)
        .ok_or_else(|| NotOurs::Invalid(format!("{setting} = {address}: must be HOST:PORT")))
}

fn token(contract: &Contract) -> TokenFile {
    TokenFile { name: "the token of the service account", path: contract.path(TOKEN), is_optional: true }
}

/// The cluster's identifier, and the headers that variables with this prefix add.
///
/// # Errors
/// A name or a value that no header can have.
fn headers(contract: &Contract, prefix: &str) -> Result<HeaderMap, NotOurs> {
    const CLUSTER: &str = "ISTIO_META_CLUSTER_ID";
    let cluster = (CLUSTER, "ClusterID", contract.variable(CLUSTER).unwrap_or_default());
    let variables = contract.sources.environment.iter();
    let added = variables.filter_map(|(variable, value)| {
        Some((variable.as_str(), variable.strip_prefix(prefix)?, value.as_str()))
    });
    let all = std::iter::once(cluster).chain(added);
    all.map(|(variable, name, value)| {
        // The value may be a secret.
        let invalid = || NotOurs::Invalid(format!("{variable}: not a valid header"));
        let name = HeaderName::from_bytes(name.to_ascii_lowercase().as_bytes()).map_err(|_| invalid())?;
        Ok((name, HeaderValue::from_str(value).map_err(|_| invalid())?))
    })
    .collect()
}

fn discovery(contract: &Contract, reports_health: bool) -> Result<DiscoveryConfig, NotOurs> {
    let address = contract.config.text("discoveryAddress");
    let san = contract.variable("ISTIOD_SAN");
    let is_plaintext = contract.config.text("controlPlaneAuthPolicy") == "NONE";
    Ok(DiscoveryConfig {
        servers: vec![server("discoveryAddress", address, san)?],
        tls: if is_plaintext { None } else { Some(certificates::discovery_tls(contract)?) },
        token: Some(token(contract)),
        headers: headers(contract, "XDS_HEADER_")?,
        variant: Variant::Delta,
        // Envoy's own node is complete.
        node: Node { id: contract.node.id.clone(), ..Node::default() },
        reports_health,
        heartbeat: Duration::from_secs(3600),
        istio_heartbeat: reports_health.then_some(ISTIO_HEARTBEAT),
        final_report_timeout: if reports_health { FINAL_REPORT_TIMEOUT } else { Duration::ZERO },
        own: Vec::new(),
        response_limit: RESPONSE_LIMIT,
        refuses_remote_wasm: true,
    })
}

fn istio(contract: &Contract, state_dir: &Path) -> Result<IstioConfig, NotOurs> {
    let mounted = certificates::mounted(contract);
    let lists = contract.variable("PILOT_ENABLE_CA_CRL").and_then(probe::go::parse_bool).unwrap_or(true);
    let requested = match mounted.is_complete() {
        true => None,
        false => Some(requested_certificate(contract, state_dir)?),
    };
    Ok(IstioConfig {
        dns: dns(contract)?,
        folder: contract.folder.clone(),
        revoked: lists.then(|| REVOKED.into()),
        requested,
        mounted,
        output: certificates::output(contract),
        has_trust_bundle: contract.is_on("PROXY_CONFIG_XDS_AGENT"),
    })
}

/// The certificate that is requested from the CA of istiod.
fn requested_certificate(contract: &Contract, state_dir: &Path) -> Result<CertificateConfig, NotOurs> {
    let variable = |name: &str| contract.variable(name);
    let (address, san) = match variable("CA_ADDR") {
        Some(address) => (address, None),
        None => (contract.config.text("discoveryAddress"), variable("ISTIOD_SAN")),
    };
    let is_plaintext = address.ends_with(":15010");
    let text = |name: &str, default: &str| variable(name).unwrap_or(default).to_owned();
    let lifetime = variable("SECRET_TTL").and_then(go_duration).unwrap_or(Duration::from_secs(24 * 3600));
    Ok(CertificateConfig {
        identity: WorkloadIdentity {
            trust_domain: text("TRUST_DOMAIN", "cluster.local"),
            namespace: text("POD_NAMESPACE", ""),
            service_account: text("SERVICE_ACCOUNT", ""),
        },
        key: KeyKind::from_variables(variable).map_err(|error| NotOurs::Invalid(error.to_string()))?,
        schedule: Schedule::from_variables(variable),
        ca: CaClient {
            server: server("CA_ADDR", address, san)?,
            tls: if is_plaintext { None } else { Some(certificates::ca_tls(contract)?) },
            token: token(contract),
            headers: headers(contract, "CA_HEADER_")?,
            signer: text("ISTIO_META_CERT_SIGNER", ""),
            lifetime,
        },
        state_dir: state_dir.to_owned(),
    })
}

/// The probe of the workload, on a virtual machine, where no kubelet probes it.
fn readiness_probe(contract: &Contract, rules: &LocalRules) -> Result<Option<WorkloadProbe>, NotOurs> {
    let Some(probe) = contract.config.get("readinessProbe").filter(|probe| !probe.is_null()) else {
        return Ok(None);
    };
    let invalid = |error: String| NotOurs::Invalid(format!("readinessProbe: {error}"));
    let checked = WorkloadProbe::parse(probe).map_err(|errors| invalid(errors.join("; ")))?;
    rules.check(&checked.value).map_err(invalid)?;
    Ok(Some(checked.value))
}

/// The DNS proxy, if the Pod's queries are captured, or if it is wanted otherwise.
fn dns(contract: &Contract) -> Result<Option<DnsConfig>, NotOurs> {
    const ADDRESS: &str = "DNS_PROXY_ADDR";
    if !contract.is_on("ISTIO_META_DNS_CAPTURE") && !contract.is_on("ISTIO_META_ENABLE_DNS_SERVER") {
        return Ok(None);
    }
    let invalid = |text: String| NotOurs::Invalid(text);
    let address = contract.variable(ADDRESS).unwrap_or("localhost:15053");
    let text =
        std::fs::read_to_string(RESOLV_CONF).map_err(|error| invalid(format!("{RESOLV_CONF}: {error}")))?;
    let system = resolv_conf::parse(&text);
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    let port: u16 = port.parse().map_err(|_| invalid(format!("{ADDRESS} = {address}: must be HOST:PORT")))?;
    if port == DNS_PORT {
        let why = "only the port to which queries are redirected is supported";
        return Err(Unsupported { setting: format!("{ADDRESS} = {address}"), why }.into());
    }
    let loopback = |ip: &IpAddr| match ip {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
    };
    let hosts: BTreeSet<IpAddr> = match host {
        "localhost" if system.servers.is_empty() => [Ipv4Addr::LOCALHOST.into()].into(),
        // A resolver asks at the family of the servers that it knows.
        "localhost" => system.servers.iter().map(loopback).collect(),
        host => {
            let bare = host.trim_start_matches('[').trim_end_matches(']');
            [bare.parse().map_err(|_| invalid(format!("{ADDRESS} = {address}: must be an address")))?].into()
        }
    };
    let timeout = contract.variable("DNS_FORWARD_TIMEOUT").and_then(go_duration);
    let namespace = contract.variable("POD_NAMESPACE").unwrap_or_default();
    Ok(Some(DnsConfig {
        addresses: hosts.into_iter().map(|ip| SocketAddr::new(ip, port)).collect(),
        servers: system.servers.iter().map(|ip| SocketAddr::new(*ip, DNS_PORT)).collect(),
        timeout: timeout.unwrap_or(Duration::from_secs(5)),
        is_parallel: contract.is_on("DNS_FORWARD_PARALLEL"),
        place: Place::new(namespace, &contract.sources.domain, system.search.first().map(String::as_str)),
    }))
}

/// Writes the bootstrap where Envoy reads it.
///
/// # Errors
/// If the file cannot be written.
pub fn write_bootstrap(contract: &Contract) -> Result<(), Failure> {
    let Some(text) = &contract.bootstrap else { return Ok(()) };
    let file = &contract.bootstrap_file;
    let created = file.parent().map_or(Ok(()), std::fs::create_dir_all);
    created
        .and_then(|()| write_unless_equal(file, text.as_bytes()))
        .map_err(|error| Failure::CannotWrite(format!("{}: {error}", file.display())))
}

#[cfg(test)]
mod tests;
