//! What the injector of Istio configures for the agent of a Pod: environment, files and annotations.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use thiserror::Error;

use istio_bootstrap::command::{InvalidCommand, ProxyCommand};
use istio_bootstrap::downward_api;
use istio_bootstrap::envoy_flags::envoy_flags;
use istio_bootstrap::node::{Node, Sources};
use istio_bootstrap::parameters;
use istio_bootstrap::proxy_config::ProxyConfig;
use istio_bootstrap::support::{self, Unsupported};

use crate::addresses::pod_addresses;
use crate::yaml;

const LABELS: &str = "etc/istio/pod/labels";
const ANNOTATIONS: &str = "etc/istio/pod/annotations";
const TEMPLATE: &str = "var/lib/istio/envoy/envoy_bootstrap_tmpl.json";
/// The rendered bootstrap, in the folder that `configPath` names.
const BOOTSTRAP: &str = "envoy-rev.json";
const CONFIG_ANNOTATION: &str = "proxy.istio.io/config";
const EXCLUDED_INTERFACES: &str = "traffic.sidecar.istio.io/excludeInterfaces";
const SECRETS_SOCKET: &str = "var/run/secrets/workload-spiffe-uds/socket";

/// Why the stock agent has to run in our place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotOurs {
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    #[error(transparent)]
    Command(#[from] InvalidCommand),
    /// The text names the setting or the file.
    #[error("{0}")]
    Invalid(String),
}

/// The configuration of a sidecar.
#[derive(Debug)]
pub struct Contract {
    pub command: ProxyCommand,
    pub config: ProxyConfig,
    pub sources: Sources,
    pub node: Node,
    /// The folder that relative paths refer to; absolute.
    pub folder: PathBuf,
    /// Where Envoy's bootstrap is.
    pub bootstrap_file: PathBuf,
    /// What is written there; `None` for a file of the user.
    pub bootstrap: Option<String>,
    /// Envoy's flags without `-c FILE`.
    pub envoy_flags: Vec<String>,
    /// Files that were ignored, one line each.
    pub warnings: Vec<String>,
}

impl Contract {
    /// Reads the environment and the files of a Pod. `words` follow `proxy` on the command line, `folder` is
    /// the working directory, and `istio_version` is called if the environment does not say the version.
    ///
    /// # Errors
    /// What cannot be read, or what only Istio's own agent supports.
    pub fn read(
        words: &[String],
        environment: Vec<(String, String)>,
        folder: &Path,
        istio_version: impl FnOnce() -> String,
    ) -> Result<Self, NotOurs> {
        let command = ProxyCommand::parse(words)?;
        let variable = |name: &str| {
            environment.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
        };
        let mut warnings = Vec::new();
        let annotations = downward_file(folder, ANNOTATIONS, &mut warnings);
        let labels = downward_file(folder, LABELS, &mut warnings);
        let mut config = proxy_config(&command, folder, variable, annotations.as_ref())?;
        resolve_statsd(&mut config, &mut warnings)?;
        if let Some(unsupported) = support::unsupported(&command, variable, &config) {
            return Err(unsupported.into());
        }
        if UnixStream::connect(socket(folder, &folder.join(SECRETS_SOCKET))).is_ok() {
            let why = "another SDS server answers there, such as that of SPIRE";
            return Err(Unsupported { setting: format!("./{SECRETS_SOCKET}"), why }.into());
        }
        let excluded = annotations.as_ref().and_then(|annotations| annotations.get(EXCLUDED_INTERFACES));
        let excluded: Vec<&str> = excluded.map(|names| names.split(',').collect()).unwrap_or_default();
        let own = variable("INSTANCE_IP").and_then(|ip| ip.parse::<IpAddr>().ok());
        let addresses = pod_addresses(own, &excluded);
        let namespace = variable("POD_NAMESPACE").unwrap_or_default();
        let domain = match command.domain.as_str() {
            "" => format!("{namespace}.svc.cluster.local"),
            domain => domain.to_owned(),
        };
        let istio_version = match variable("ISTIO_META_ISTIO_VERSION") {
            Some(_) => String::new(),
            None => istio_version(),
        };
        let sources = Sources {
            environment: environment.clone(),
            labels,
            annotations,
            addresses,
            istio_version,
            domain,
            outlier_log_path: command.outlier_log_path.clone(),
            log_as_json: command.log_as_json,
            only_file_credentials: false,
        };
        let node = Node::new(&sources, &config).map_err(|refused| NotOurs::Invalid(refused.to_string()))?;
        let (bootstrap_file, bootstrap) = bootstrap(folder, &sources, &config, &node)?;
        let document =
            variable("ISTIO_BOOTSTRAP_OVERRIDE").filter(|file| !file.is_empty()).and_then(|file| {
                let document =
                    bootstrap_override(&folder.join(file), variable("HOST_IP").unwrap_or_default());
                document
                    .map_err(|error| {
                        warnings.push(format!("ISTIO_BOOTSTRAP_OVERRIDE = {file}: {error}; ignored"))
                    })
                    .ok()
            });
        let envoy_flags = envoy_flags(&command, &config, &node, &sources.addresses, document.as_deref());
        let folder = folder.to_owned();
        Ok(Self { command, config, sources, node, folder, bootstrap_file, bootstrap, envoy_flags, warnings })
    }

    /// Returns the path at which to listen on Istio's socket for secrets.
    pub fn secrets_socket(&self) -> PathBuf {
        self.socket(&self.path(SECRETS_SOCKET))
    }

    /// Returns the path at which to listen on a socket.
    pub fn socket(&self, path: &Path) -> PathBuf {
        socket(&self.folder, path)
    }

    /// Returns the absolute path of a file that the configuration or Istio names.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name.strip_prefix("./").unwrap_or(name))
    }

    /// Returns whether a variable has one of the values that Go's `strconv.ParseBool` takes for true.
    pub fn is_on(&self, name: &str) -> bool {
        self.variable(name).and_then(probe::go::parse_bool).unwrap_or(false)
    }

    /// Returns the value of a variable, unless it is empty.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.sources.variable(name).filter(|value| !value.is_empty())
    }
}

/// Returns the path of a socket relative to the working directory, as Istio's agent has it, if it is below. The path of a
/// socket is at most 107 bytes long.
fn socket(folder: &Path, path: &Path) -> PathBuf {
    let is_here = fs::canonicalize(".").is_ok_and(|here| here == folder);
    path.strip_prefix(folder).ok().filter(|_| is_here).unwrap_or(path).to_owned()
}

/// Reads a file of the downward API. Like Istio's agent, goes on without one that cannot be read.
fn downward_file(folder: &Path, name: &str, warnings: &mut Vec<String>) -> Option<BTreeMap<String, String>> {
    let text = match fs::read_to_string(folder.join(name)) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(error) => {
            warnings.push(format!("./{name}: {error}; ignored"));
            return None;
        }
    };
    let parsed = downward_api::parse(&text);
    parsed.map_err(|key| warnings.push(format!("./{name}: the value of {key} is not quoted; ignored"))).ok()
}

/// Lays the layers of the configuration over each other.
fn proxy_config<'a>(
    command: &ProxyCommand,
    folder: &Path,
    variable: impl Fn(&str) -> Option<&'a str>,
    annotations: Option<&BTreeMap<String, String>>,
) -> Result<ProxyConfig, NotOurs> {
    let mut config = ProxyConfig::default();
    let mut merge = |name: &str, layer: &Value| {
        config.merge(layer).map_err(|error| NotOurs::Invalid(format!("{name}: {error}")))
    };
    let parse = |name: &str, text: &str| {
        yaml::parse(text).map_err(|error| NotOurs::Invalid(format!("{name}: {error}")))
    };
    let mesh_file = folder.join(&command.mesh_file);
    match fs::read_to_string(&mesh_file) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(NotOurs::Invalid(format!("{}: {error}", mesh_file.display()))),
        Ok(text) => {
            let mesh = parse(&command.mesh_file, &text)?;
            if let Some(layer) = mesh.get("defaultConfig") {
                merge(&command.mesh_file, layer)?;
            }
        }
    }
    let annotation = annotations.and_then(|annotations| annotations.get(CONFIG_ANNOTATION));
    let layers =
        [("PROXY_CONFIG", variable("PROXY_CONFIG")), (CONFIG_ANNOTATION, annotation.map(String::as_str))];
    for (name, text) in layers {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            merge(name, &parse(name, text)?)?;
        }
    }
    if let Some(limit) = variable("ISTIO_CPU_LIMIT").and_then(|limit| limit.parse().ok()) {
        config.limit_concurrency(limit);
    }
    if command.concurrency != 0 {
        config.set_concurrency(command.concurrency);
    }
    if !command.template_file.is_empty() && config.text("customConfigFile").is_empty() {
        merge_text(&mut config, "proxyBootstrapTemplatePath", &command.template_file)?;
    }
    if config.text("serviceCluster").is_empty() && config.get("tracingServiceName").is_none() {
        merge_text(&mut config, "serviceCluster", &command.service_cluster)?;
    }
    if let Some(annotations) = annotations {
        config.annotate(annotations).map_err(|error| NotOurs::Invalid(error.to_string()))?;
    }
    Ok(config)
}

/// Looks up the name in the address of a statsd server, which Envoy does not do. Like Istio's agent, prefers IPv4, and goes
/// on without an address that is not found.
fn resolve_statsd(config: &mut ProxyConfig, warnings: &mut Vec<String>) -> Result<(), NotOurs> {
    const FIELD: &str = "statsdUdpAddress";
    let address = config.text(FIELD).to_owned();
    if address.is_empty() || address.parse::<SocketAddr>().is_ok() {
        return Ok(());
    }
    let found = match address.to_socket_addrs() {
        Ok(found) => {
            let found: Vec<SocketAddr> = found.collect();
            found.iter().find(|address| address.is_ipv4()).or(found.last()).map(SocketAddr::to_string)
        }
        Err(error) => {
            warnings.push(format!("{FIELD} = {address}: {error}; ignored"));
            None
        }
    };
    merge_text(config, FIELD, &found.unwrap_or_default())
}

fn merge_text(config: &mut ProxyConfig, field: &str, value: &str) -> Result<(), NotOurs> {
    config.merge(&json!({ field: value })).map_err(|error| NotOurs::Invalid(format!("{field}: {error}")))
}

/// Returns where Envoy's bootstrap is, and what has to be written there.
fn bootstrap(
    folder: &Path,
    sources: &Sources,
    config: &ProxyConfig,
    node: &Node,
) -> Result<(PathBuf, Option<String>), NotOurs> {
    let custom = config.text("customConfigFile");
    if !custom.is_empty() {
        return Ok((folder.join(custom), None));
    }
    let named = [
        sources.variable("ISTIO_BOOTSTRAP").unwrap_or_default(),
        config.text("proxyBootstrapTemplatePath"),
        TEMPLATE,
    ];
    let file = folder.join(named.into_iter().find(|name| !name.is_empty()).unwrap_or(TEMPLATE));
    let refuse = |error: &dyn std::fmt::Display| NotOurs::Invalid(format!("{}: {error}", file.display()));
    let template = fs::read_to_string(&file).map_err(|error| refuse(&error))?;
    let text = parameters::bootstrap(&template, sources, config, node).map_err(|error| refuse(&error))?;
    Ok((folder.join(config.text("configPath")).join(BOOTSTRAP), Some(text)))
}

/// Reads a document that Envoy merges into its bootstrap, as one line of JSON.
fn bootstrap_override(file: &Path, host_ip: &str) -> Result<String, String> {
    const HOST_IP: &str = "$(HOST_IP)";
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    let text = if host_ip.contains(':') {
        let bracketed = format!("[{host_ip}]");
        text.replace(&format!("[{HOST_IP}]"), &bracketed).replace(HOST_IP, &bracketed)
    } else {
        text.replace(HOST_IP, host_ip)
    };
    yaml::parse(&text).map(|document| document.to_string())
}

#[cfg(test)]
mod tests;
