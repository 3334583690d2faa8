//! Turns the flags of `discovery` and `workloads` into validated configuration.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use super::{Environment, NAMESPACE, POD_NAMESPACE};
use crate::args::discovery::{
    DiscoveryArgs, Output, PeerAddressArg, Policy, StoreArg, WorkloadsAction, WorkloadsArgs,
};
use crate::discovery::command::{DiscoveryConfig, StoreConfig};
use discovery::entries::{PeerAddressCheck, Settings, UnknownPolicy};
use discovery::objects::LastEndpoint;
use discovery_server::server::ServerLimits;
use discovery_server::tls::TlsFiles;
use serving::exit::Failure;

/// Name of the variable that holds this Pod's name, set through the downward API.
const POD_NAME: &str = "POD_NAME";
/// File with the host name on Linux.
const HOSTNAME: &str = "/proc/sys/kernel/hostname";
/// Default address of the listener with mutual TLS.
const LISTEN: &str = "[::]:15012";

/// How old `lastProbeTime` may become in Kubernetes before it is written without another change.
const PROBE_TIME: Duration = Duration::from_secs(600);

impl DiscoveryConfig {
    /// Rejects flags that cannot be combined. Files are read later.
    pub fn new(args: DiscoveryArgs, environment: &Environment) -> Result<Self, Failure> {
        let DiscoveryArgs {
            listen,
            tls_cert,
            tls_key,
            client_ca,
            plaintext_listen,
            insecure,
            monitoring_address,
            debug_allow_remote,
            trust_domain,
            store,
            store_path,
            config_dir,
            allow_empty_config,
            namespaces,
            kube_qps,
            check,
            heartbeat,
            disconnect_grace,
            restart_grace,
            unknown_policy,
            max_silent_percent,
            max_unhealthy_percent,
            last_endpoint,
            outbound_listeners,
            export_namespaces,
            debounce,
            debounce_max,
            accept_rate,
            max_streams,
            max_machines_per_identity,
            max_machines_per_source,
            peer_address_check,
            trust_node_labels,
        } = args;
        let store = match store {
            StoreArg::Redb => StoreConfig::Redb {
                path: store_path,
                config_dir: config_dir
                    .ok_or_else(|| usage("--config-dir: required with --store redb, got none"))?,
                allow_empty: allow_empty_config,
            },
            StoreArg::Kubernetes => {
                let pod_namespace = environment.get(POD_NAMESPACE).and_then(|value| value.to_str());
                let namespace = pod_namespace.unwrap_or(NAMESPACE).to_owned();
                StoreConfig::Kubernetes { namespace, qps: kube_qps }
            }
        };
        let listen = listener(listen, [tls_cert, tls_key, client_ca], plaintext_listen.is_some() || check)?;
        if let Some(address) = plaintext_listen.filter(|it| !insecure && !it.ip().is_loopback()) {
            return Err(usage(&format!(
                "--plaintext-listen = {address}: is not a loopback address, and plaintext clients are not authenticated; set --insecure to allow it"
            )));
        }
        if let Some(domain) = trust_domain.iter().find(|domain| domain.is_empty() || domain.contains('/')) {
            return Err(usage(&format!(
                "--trust-domain = {domain:?}: must be a domain name such as cluster.local"
            )));
        }
        if debounce > debounce_max {
            return Err(usage(&format!(
                "--debounce = {debounce:?}: must not be longer than --debounce-max = {debounce_max:?}"
            )));
        }
        if heartbeat < Duration::from_secs(1) {
            return Err(usage(&format!("--heartbeat = {heartbeat:?}: must be 1s or more")));
        }
        if let Some(address) = outbound_listeners.filter(|it| it.is_multicast() || is_broadcast(*it)) {
            return Err(usage(&format!(
                "--outbound-listeners = {address}: Envoy cannot listen on this address"
            )));
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
            max_silent_percent,
            max_unhealthy_percent,
            peer_address_check: match peer_address_check {
                PeerAddressArg::Off => PeerAddressCheck::Off,
                PeerAddressArg::Warn => PeerAddressCheck::Warn,
                PeerAddressArg::Require => PeerAddressCheck::Require,
            },
            max_machines_per_identity: max_machines_per_identity.get(),
            max_machines_per_source: max_machines_per_source.get(),
            trust_node_labels,
            probe_time_write: is_shared.then_some(PROBE_TIME),
            ..Settings::default()
        };
        Ok(Self {
            listen,
            plaintext_listen,
            monitoring_address,
            debug_allow_remote,
            trust_domains: trust_domain,
            store,
            namespaces,
            check,
            settings,
            last_endpoint: if keeps { LastEndpoint::Keep } else { LastEndpoint::Remove },
            outbound_listeners,
            export_namespaces: (!export_namespaces.is_empty())
                .then(|| export_namespaces.into_iter().collect()),
            debounce: (debounce, debounce_max),
            limits: ServerLimits {
                accept_rate: accept_rate.get(),
                max_streams: max_streams.get(),
                machines_per_source: max_machines_per_source.get(),
            },
        })
    }
}

/// Returns the listener with its three TLS files, or `None` if no file is set and `without` allows
/// that.
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
            let hint = "for plaintext on this machine only, use --plaintext-listen 127.0.0.1:15010";
            Err(usage(&format!("{}: required by --listen, got none; {hint}", missing.join(", "))))
        }
    }
}

fn is_broadcast(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(address) if address.is_broadcast())
}

fn usage(text: &str) -> Failure {
    Failure::Usage(text.to_owned())
}

/// Name that distinguishes this process from its replicas: the Pod's name, else the host name.
fn instance(environment: &Environment) -> String {
    let pod = environment.get(POD_NAME).and_then(|value| value.to_str()).map(str::to_owned);
    let of_machine = || fs::read_to_string(HOSTNAME).ok().map(|name| name.trim().to_owned());
    pod.or_else(of_machine).filter(|name| !name.is_empty()).unwrap_or_else(|| "app-health".to_owned())
}

/// Configuration of `workloads`.
#[derive(Debug, PartialEq, Eq)]
pub struct WorkloadsConfig {
    /// `HOST:PORT` of discovery's monitoring server.
    pub authority: String,
    /// Request path with the filters as query.
    pub path: String,
    /// Whether to release the endpoints of self-preservation.
    pub releases: bool,
    pub output: Output,
    /// Whether to print the workloads again after every change.
    pub watch: bool,
}

impl WorkloadsConfig {
    pub fn new(args: WorkloadsArgs) -> Result<Self, Failure> {
        let WorkloadsArgs { action, url, namespace, group, state, output, watch } = args;
        let releases = action == Some(WorkloadsAction::Release);
        if releases && (state.is_some() || watch || output != Output::Table) {
            return Err(usage("workloads release: takes only --url, --namespace and --group"));
        }
        let wrong = || usage(&format!("--url = {url:?}: must be like http://127.0.0.1:15014"));
        let authority = url.strip_prefix("http://").ok_or_else(wrong)?.trim_end_matches('/');
        if authority.is_empty() || authority.contains(['/', '?', ' ']) {
            return Err(wrong());
        }
        let filters = [("namespace", namespace), ("group", group), ("state", state)];
        let mut path = if releases { "/debug/workloads/release" } else { "/debug/workloads" }.to_owned();
        let mut separator = '?';
        for (name, value) in filters {
            let Some(value) = value else { continue };
            if !value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte)) {
                return Err(usage(&format!(
                    "--{name} = {value:?}: must contain only letters, digits, '-', '.' and '_'"
                )));
            }
            path.push_str(&format!("{separator}{name}={value}"));
            separator = '&';
        }
        let authority = if authority.rsplit(':').next().is_some_and(|port| port.parse::<u16>().is_ok()) {
            authority.to_owned()
        } else {
            format!("{authority}:80")
        };
        Ok(Self { authority, path, releases, output, watch })
    }
}

#[cfg(test)]
mod tests;
