//! What only Istio's own agent can do.

use std::fmt;

use probe::go::parse_bool;

use crate::command::ProxyCommand;
use crate::proxy_config::ProxyConfig;

/// A setting that only Istio's agent supports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The name of the variable, flag or field, and its value.
    pub setting: String,
    pub why: &'static str,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.setting, self.why)
    }
}

impl std::error::Error for Unsupported {}

/// Variables that must not be true.
const SWITCHES: [(&str, &str); 2] = [
    ("DISABLE_ENVOY", "there is no agent without Envoy"),
    ("ISTIO_ENVOY_ENABLE_CORE_DUMP", "core dumps are not enabled"),
];
/// Variables that must be absent, empty or have one of these values.
const VALUES: [(&str, &[&str], &str); 6] = [
    ("CA_PROVIDER", &["Citadel"], "only the CA of istiod is supported"),
    ("CREDENTIAL_FETCHER_TYPE", &["JWT"], "only tokens of Kubernetes are supported"),
    ("XDS_AUTH_PROVIDER", &[], "only tokens of Kubernetes are supported"),
    ("COMPLIANCE_POLICY", &[], "the cryptography of this agent is not restricted"),
    ("WORKLOAD_IDENTITY_SOCKET_FILE", &["socket"], "certificates of another SDS server are not supported"),
    (
        "PILOT_CERT_PROVIDER",
        &["istiod", "kubernetes", "custom"],
        "only CA certificates from files are supported",
    ),
];

/// Returns the first setting that only Istio's agent supports. `variable` returns the value of a variable.
pub fn unsupported<'a>(
    command: &ProxyCommand,
    variable: impl Fn(&str) -> Option<&'a str>,
    config: &ProxyConfig,
) -> Option<Unsupported> {
    let of = |setting: String, why| Some(Unsupported { setting, why });
    if command.node_type != "sidecar" {
        return of(format!("proxy {}", command.node_type), "only sidecars are supported");
    }
    if command.sts_port != 0 {
        return of(format!("--stsPort = {}", command.sts_port), "there is no Security Token Service");
    }
    for (name, why) in SWITCHES {
        if variable(name).and_then(parse_bool) == Some(true) {
            return of(format!("{name} = true"), why);
        }
    }
    for (name, supported, why) in VALUES {
        let value = variable(name).unwrap_or_default();
        if !value.is_empty() && !supported.contains(&value) {
            return of(format!("{name} = {value}"), why);
        }
    }
    let has_client = variable("PROV_CERT").is_some_and(|folder| !folder.is_empty());
    if has_client && variable("FILE_MOUNTED_CERTS").and_then(parse_bool) == Some(true) {
        return of(
            "FILE_MOUNTED_CERTS = true".to_owned(),
            "Istio's agent refuses it together with PROV_CERT",
        );
    }
    let ca = variable("CA_ADDR").filter(|address| !address.is_empty());
    let ca = ca.unwrap_or_else(|| config.text("discoveryAddress"));
    if ca.contains("googleapis.com") {
        return of(format!("CA_ADDR = {ca}"), "only the CA of istiod is supported");
    }
    config.get("privateKeyProvider")?;
    of("privateKeyProvider".to_owned(), "private keys are used by Envoy's own TLS only")
}

#[cfg(test)]
mod tests;
