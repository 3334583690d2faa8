//! From the flags of `discovery` and `workloads` to checked values.

use std::fs;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use super::{Environment, NAMESPACE, POD_NAMESPACE};
use crate::args::discovery::{DiscoveryArgs, OutputArg, PeerAddressArg, Policy, StoreArg, WorkloadsArgs};
use crate::discovery::server::ServerLimits;
use crate::discovery::tls::TlsFiles;
use discovery::entries::{PeerAddressCheck, Settings, UnknownPolicy};
use discovery::objects::LastEndpoint;
use serving::exit::Failure;

/// The name of this Pod, by the downward API.
const POD_NAME: &str = "POD_NAME";
/// Where Linux keeps the machine's name.
const HOSTNAME: &str = "/proc/sys/kernel/hostname";
/// Of the listener with mutual TLS.
const LISTEN: &str = "[::]:15012";

/// How old a lastProbeTime may become in Kubernetes before it alone is written.
const PROBE_TIME: Duration = Duration::from_secs(600);

/// What `discovery` does.
#[derive(Debug)]
pub struct DiscoveryConfig {
    /// Mutual TLS.
    pub listen: Option<(SocketAddr, TlsFiles)>,
    /// Plaintext.
    pub plaintext_listen: Option<SocketAddr>,
    /// Metrics, health, debug.
    pub monitoring_address: SocketAddr,
    /// Debug for everybody.
    pub debug_any: bool,
    /// At least one.
    pub trust_domains: Vec<String>,
    /// Where entries live.
    pub store: StoreConfig,
    /// None: all.
    pub namespaces: Vec<String>,
    /// Only check.
    pub check: bool,
    /// Of the entries' life.
    pub settings: Settings,
    /// For services that do not say it.
    pub last_endpoint: LastEndpoint,
    /// A quiet, and the longest wait for one.
    pub debounce: (Duration, Duration),
    /// Of connections and streams.
    pub limits: ServerLimits,
}

/// Where entries live.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreConfig {
    /// In a file, with the configuration beside it.
    Redb {
        /// The file.
        path: PathBuf,
        /// WorkloadGroup, WorkloadEntry, ServiceEntry.
        config_dir: PathBuf,
    },
    /// In Kubernetes.
    Kubernetes {
        /// Where the replicas' Leases live.
        namespace: String,
        /// Writes a second.
        qps: NonZeroU32,
    },
}

impl StoreConfig {
    /// As the flag has it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Redb { .. } => "redb",
            Self::Kubernetes { .. } => "kubernetes",
        }
    }
}

impl DiscoveryConfig {
    /// Refuses what cannot go together. Files are read later.
    pub fn new(args: DiscoveryArgs, environment: &Environment) -> Result<Self, Failure> {
        let DiscoveryArgs {
            listen,
            tls_cert,
            tls_key,
            client_ca,
            plaintext_listen,
            insecure,
            monitoring_address,
            debug_any,
            trust_domain,
            store,
            store_path,
            config_dir,
            namespaces,
            kube_qps,
            check,
            heartbeat,
            disconnect_grace,
            restart_grace,
            unknown_policy,
            last_endpoint,
            debounce,
            debounce_max,
            accept_rate,
            max_streams,
            peer_address_check,
        } = args;
        let store = match store {
            StoreArg::Redb => StoreConfig::Redb {
                path: store_path,
                config_dir: config_dir
                    .ok_or_else(|| usage("--config-dir: required with --store redb, got none"))?,
            },
            StoreArg::Kubernetes => {
                let pod_namespace = environment.get(POD_NAMESPACE).and_then(|value| value.to_str());
                let namespace = pod_namespace.unwrap_or(NAMESPACE).to_owned();
                let qps =
                    NonZeroU32::new(kube_qps).ok_or_else(|| usage("--kube-qps = 0: must be 1 or more"))?;
                StoreConfig::Kubernetes { namespace, qps }
            }
        };
        let listen = listener(listen, [tls_cert, tls_key, client_ca], plaintext_listen.is_some() || check)?;
        if let Some(address) = plaintext_listen.filter(|it| !insecure && !it.ip().is_loopback()) {
            return Err(usage(&format!(
                "--plaintext-listen = {address}: is not loopback, and there nobody proves who he is; add --insecure if that is meant"
            )));
        }
        if let Some(domain) = trust_domain.iter().find(|domain| domain.is_empty() || domain.contains('/')) {
            return Err(usage(&format!("--trust-domain = {domain:?}: must be a name as cluster.local")));
        }
        if debounce > debounce_max {
            return Err(usage(&format!(
                "--debounce = {debounce:?}: must not be longer than --debounce-max = {debounce_max:?}"
            )));
        }
        if heartbeat < Duration::from_secs(1) {
            return Err(usage(&format!("--heartbeat = {heartbeat:?}: must be 1s or more")));
        }
        let keeps = last_endpoint == Policy::Keep;
        let is_shared = matches!(store, StoreConfig::Kubernetes { .. });
        let settings = Settings {
            instance: instance(environment),
            shared: is_shared,
            heartbeat,
            disconnect_grace,
            restart_grace,
            unknown_policy: match unknown_policy {
                Policy::Remove => UnknownPolicy::Remove,
                Policy::Keep => UnknownPolicy::Keep,
            },
            keep_last_endpoint: keeps,
            peer_address_check: match peer_address_check {
                PeerAddressArg::Off => PeerAddressCheck::Off,
                PeerAddressArg::Warn => PeerAddressCheck::Warn,
                PeerAddressArg::Require => PeerAddressCheck::Require,
            },
            probe_time_write: is_shared.then_some(PROBE_TIME),
            ..Settings::default()
        };
        Ok(Self {
            listen,
            plaintext_listen,
            monitoring_address,
            debug_any,
            trust_domains: trust_domain,
            store,
            namespaces,
            check,
            settings,
            last_endpoint: if keeps { LastEndpoint::Keep } else { LastEndpoint::Remove },
            debounce: (debounce, debounce_max),
            limits: ServerLimits {
                accept_rate: at_least_one("--accept-rate", accept_rate)?,
                max_streams: at_least_one("--max-streams", max_streams)?,
            },
        })
    }
}

/// All three files, or none if somebody is served without them.
fn listener(
    listen: Option<SocketAddr>,
    files: [Option<PathBuf>; 3],
    without: bool,
) -> Result<Option<(SocketAddr, TlsFiles)>, Failure> {
    match files {
        [Some(cert), Some(key), Some(client_ca)] => {
            let listen = listen.unwrap_or_else(|| LISTEN.parse().expect("a constant"));
            Ok(Some((listen, TlsFiles { cert, key, client_ca })))
        }
        [None, None, None] if without && listen.is_none() => Ok(None),
        [cert, key, client_ca] => {
            let flags = [("--tls-cert", cert), ("--tls-key", key), ("--client-ca", client_ca)];
            let missing: Vec<&str> =
                flags.into_iter().filter(|(_, file)| file.is_none()).map(|(flag, _)| flag).collect();
            let hint = "for plaintext on this machine alone use --plaintext-listen 127.0.0.1:15010";
            Err(usage(&format!("{}: required by --listen, got none; {hint}", missing.join(", "))))
        }
    }
}

fn at_least_one<N: Copy + PartialEq + Default + std::fmt::Display>(
    flag: &str,
    number: N,
) -> Result<N, Failure> {
    if number == N::default() {
        return Err(usage(&format!("{flag} = {number}: must be 1 or more")));
    }
    Ok(number)
}

fn usage(text: &str) -> Failure {
    Failure::Usage(text.to_owned())
}

/// What tells this process from its replicas.
fn instance(environment: &Environment) -> String {
    let pod = environment.get(POD_NAME).and_then(|value| value.to_str()).map(str::to_owned);
    let of_machine = || fs::read_to_string(HOSTNAME).ok().map(|name| name.trim().to_owned());
    pod.or_else(of_machine).filter(|name| !name.is_empty()).unwrap_or_else(|| "app-health".to_owned())
}

/// How `workloads` writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words speak for themselves")]
pub enum Output {
    Table,
    Json,
}

/// What `workloads` does.
#[derive(Debug, PartialEq, Eq)]
pub struct WorkloadsConfig {
    /// `HOST:PORT` of discovery.
    pub authority: String,
    /// With the filters.
    pub path: String,
    /// How it is written.
    pub output: Output,
    /// Go on.
    pub watch: bool,
}

impl WorkloadsConfig {
    /// Checks the URL.
    pub fn new(args: WorkloadsArgs) -> Result<Self, Failure> {
        let WorkloadsArgs { url, namespace, group, state, output, watch } = args;
        let wrong = || usage(&format!("--url = {url:?}: must be like http://127.0.0.1:15014"));
        let authority = url.strip_prefix("http://").ok_or_else(wrong)?.trim_end_matches('/');
        if authority.is_empty() || authority.contains(['/', '?', ' ']) {
            return Err(wrong());
        }
        let filters = [("namespace", namespace), ("group", group), ("state", state)];
        let mut path = "/debug/workloads".to_owned();
        let mut separator = '?';
        for (name, value) in filters {
            let Some(value) = value else { continue };
            if !value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)) {
                return Err(usage(&format!("--{name} = {value:?}: must be a name")));
            }
            path.push_str(&format!("{separator}{name}={value}"));
            separator = '&';
        }
        let output = match output {
            OutputArg::Table => Output::Table,
            OutputArg::Json => Output::Json,
        };
        let authority = if authority.rsplit(':').next().is_some_and(|port| port.parse::<u16>().is_ok()) {
            authority.to_owned()
        } else {
            format!("{authority}:80")
        };
        Ok(Self { authority, path, output, watch })
    }
}

#[cfg(test)]
mod tests;
