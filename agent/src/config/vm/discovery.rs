//! Validated configuration of health reporting, from the flags and the WorkloadGroup file: the
//! servers, the node identity, and the intervals.

mod node;

use std::net::IpAddr;
use std::path::Path;

use hyper::header::HeaderMap;
use workload_health::workload_group::WorkloadGroup;

use super::{Environment, bootstrap::absolute};
use crate::args::DiscoveryArgs;
use address::{Endpoint, LocalAddress};
use agent_output::exit::Failure;
use node::node;
use xds_client::tls::{ClientFiles, San, TlsError, TlsFiles};
use xds_client::token::TokenFile;
use xds_client::{DiscoveryConfig, DiscoveryServer, ProxyConfig};

const TOKEN_FILE: &str = "--discovery-token-file";
/// Name of the socket for Envoy, in the state directory.
const SOCKET: &str = "xds.sock";

/// Returns `None` without `--discovery`. `group` is the content of the WorkloadGroup file.
pub(super) fn discovery_config(
    args: DiscoveryArgs,
    group: Option<&WorkloadGroup>,
    instance_ip: IpAddr,
    hostname: &str,
    environment: &Environment,
) -> Result<Option<DiscoveryConfig>, Failure> {
    if let Some(name) = &args.discovery_san {
        check_san(name)?;
    }
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
    let token = args.discovery_token_file.as_ref().map(|file| {
        let path = absolute(TOKEN_FILE, file)?;
        Ok::<_, Failure>(TokenFile { name: TOKEN_FILE, path, is_optional: false })
    });
    let token = token.transpose()?;
    if let Some(token) = &token {
        token.read().map_err(Failure::Usage)?;
    }
    if let Some(files) = &tls {
        check_tls_files(files, &servers).map_err(|error| Failure::Usage(error.to_string()))?;
    }
    Ok(Some(DiscoveryConfig {
        servers,
        tls,
        token,
        headers: HeaderMap::new(),
        variant: args.xds.into(),
        node: node(&args, group, instance_ip, hostname, environment)?,
        reports_health: true,
        heartbeat: args.heartbeat,
        istio_heartbeat: (!args.istio_heartbeat.is_zero()).then_some(args.istio_heartbeat),
        final_report_timeout: args.final_report_timeout,
        own: Vec::new(),
        response_limit: DiscoveryConfig::RESPONSE_LIMIT,
        refuses_remote_wasm: false,
    }))
}

/// Returns `None` without `--proxy-xds`. `state_dir` is an absolute path.
pub(super) fn proxy_config(args: &DiscoveryArgs, state_dir: &Path) -> Result<Option<ProxyConfig>, Failure> {
    if !args.proxy_xds {
        return Ok(None);
    }
    if args.discovery.is_empty() {
        return Err(Failure::Usage(
            "--proxy-xds: set --discovery to the control plane that Envoy's xDS comes from".to_owned(),
        ));
    }
    let socket = state_dir.join(SOCKET);
    match format!("unix:{}", socket.display()).parse::<LocalAddress>() {
        Ok(_) => Ok(Some(ProxyConfig {
            state_dir: state_dir.to_owned(),
            max_age: (!args.xds_cache_max_age.is_zero()).then_some(args.xds_cache_max_age),
            sockets: vec![socket],
        })),
        Err(error) => Err(Failure::Usage(format!(
            "--state-dir = {state_dir:?}: invalid path of the xDS socket: {error}"
        ))),
    }
}

fn check_san(name: &str) -> Result<(), Failure> {
    San::new(name, "discovery").map(drop).ok_or_else(|| {
        Failure::Usage(format!(
            "--discovery-san = {name:?}: must be a DNS name, an address, or a URI that begins with spiffe://"
        ))
    })
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
            "{flag}: --discovery requires --discovery-ca, --discovery-cert and --discovery-key, or --discovery-ca and --discovery-token-file, or --discovery-plaintext"
        ))),
    };
    let [ca, cert, key] = &files;
    let ca = file(ca)?;
    let has_token = args.discovery_token_file.is_some();
    let client = match (&args.discovery_cert, &args.discovery_key) {
        (None, None) if has_token => None,
        _ => Some(ClientFiles { cert: file(cert)?, key: file(key)?, is_optional: false }),
    };
    Ok(Some(TlsFiles { names: TlsFiles::FLAGS, ca, client }))
}

/// Checks that the TLS files are usable at startup. After startup, unusable files leave the
/// previous ones in use.
fn check_tls_files(files: &TlsFiles, servers: &[DiscoveryServer]) -> Result<(), TlsError> {
    let content = files.read()?;
    servers.iter().try_for_each(|server| content.client(&server.san).map(drop))
}

fn parse_server(text: &str, args: &DiscoveryArgs) -> Result<DiscoveryServer, Failure> {
    DiscoveryServer::parse(text, args.discovery_san.as_deref()).ok_or_else(|| {
        Failure::Usage(format!(
            "--discovery = {text:?}: must be HOST:PORT, with brackets around an IPv6 address"
        ))
    })
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
