//! Where the certificates of a sidecar come from and go to, by the rules of Istio's agent: `FindRootCAForXDS` and
//! `FindRootCAForCA` of `pkg/istio-agent/agent.go`, and `generateFileSecret` of
//! `security/pkg/nodeagent/cache/secretcache.go`.

use std::path::{Path, PathBuf};

use istio_agent::contract::{Contract, NotOurs};
use istio_agent::mesh_certificates::{MountedFiles, NAMES};
use istio_agent::output_certificates::OutputFolder;
use istio_agent::secrets::system_roots;
use xds_client::tls::{ClientFiles, TlsFiles};

/// The CA certificates of the mesh, which istiod puts into each namespace.
const ROOTS: &str = "./var/run/secrets/istio/root-cert.pem";
/// Where another program may put certificates for the workload.
const MOUNTED: &str = "./etc/certs";
const CREDENTIALS: &str = "./var/run/secrets/workload-spiffe-credentials";
/// The value of `XDS_ROOT_CA` and `CA_ROOT_CA` for the CA certificates of the operating system.
const SYSTEM: &str = "SYSTEM";
const PROV_CERT: &str = "PROV_CERT";
const OUTPUT_CERTS: &str = "OUTPUT_CERTS";
const FILE_MOUNTED_CERTS: &str = "FILE_MOUNTED_CERTS";
/// Keys of `proxyMetadata` with the files of the connection to istiod, if certificates are mounted.
const CLIENT_ROOTS: &str = "ISTIO_META_TLS_CLIENT_ROOT_CERT";
const CLIENT_FILES: [&str; 2] = ["ISTIO_META_TLS_CLIENT_CERT_CHAIN", "ISTIO_META_TLS_CLIENT_KEY"];
/// The variable that Kubernetes sets in each container.
const KUBERNETES: &str = "KUBERNETES_SERVICE_HOST";
const NAMES_IN_ERRORS: [&str; 3] =
    ["the CA certificates for istiod", "the client certificate for istiod", "the key for istiod"];

/// The files that are used in place of what the CA of istiod issues.
pub(super) fn mounted(contract: &Contract) -> MountedFiles {
    let credentials = MountedFiles::of(&contract.path(CREDENTIALS)).existing();
    if credentials.is_complete() {
        return credentials;
    }
    let folder = contract.path(MOUNTED);
    if contract.is_on(FILE_MOUNTED_CERTS) {
        return MountedFiles::of(&folder);
    }
    // What this agent writes there is not read again.
    match contract.variable(OUTPUT_CERTS).map(|folder| contract.path(folder)) {
        Some(output) if output == folder => MountedFiles::default(),
        _ => MountedFiles::of(&folder).existing(),
    }
}

/// The folder into which certificates are written.
pub(super) fn output(contract: &Contract) -> Option<OutputFolder> {
    let path = contract.path(contract.variable(OUTPUT_CERTS)?);
    // In a Pod, containers of other users read them too.
    let mode = if contract.variable(KUBERNETES).is_some() { 0o644 } else { 0o600 };
    Some(OutputFolder { path, mode })
}

/// TLS towards istiod, for configuration.
pub(super) fn discovery_tls(contract: &Contract) -> Result<TlsFiles, NotOurs> {
    let [_, _, roots_name] = NAMES;
    let mounted = contract.path(MOUNTED).join(roots_name);
    let named = metadata(contract, CLIENT_ROOTS).filter(|_| contract.is_on(FILE_MOUNTED_CERTS));
    let ca = match (contract.variable("XDS_ROOT_CA"), contract.variable(PROV_CERT)) {
        (Some(file), _) => roots("XDS_ROOT_CA", contract, file)?,
        (None, _) if mounted.is_file() => mounted,
        (None, Some(folder)) => contract.path(folder).join(roots_name),
        (None, None) => contract.path(named.unwrap_or(ROOTS)),
    };
    let [chain, key] = CLIENT_FILES.map(|name| metadata(contract, name));
    let client = match contract.variable(PROV_CERT) {
        Some(folder) => Some(client_files(&contract.path(folder))),
        None if contract.is_on(FILE_MOUNTED_CERTS) => chain.zip(key).map(|(chain, key)| ClientFiles {
            cert: contract.path(chain),
            key: contract.path(key),
            is_optional: true,
        }),
        None => None,
    };
    Ok(TlsFiles { names: NAMES_IN_ERRORS, ca, client })
}

/// TLS towards the CA of istiod.
pub(super) fn ca_tls(contract: &Contract) -> Result<TlsFiles, NotOurs> {
    let [_, _, roots_name] = NAMES;
    let provided = contract.variable(PROV_CERT).map(|folder| contract.path(folder));
    let ca = match (contract.variable("CA_ROOT_CA"), contract.variable("PILOT_CERT_PROVIDER"), &provided) {
        (Some(file), ..) => roots("CA_ROOT_CA", contract, file)?,
        (None, Some("custom"), _) => contract.path(MOUNTED).join(roots_name),
        (None, _, Some(folder)) => folder.join(roots_name),
        (None, _, None) => contract.path(ROOTS),
    };
    let client = provided.as_deref().map(client_files);
    Ok(TlsFiles { names: NAMES_IN_ERRORS, ca, client })
}

/// The file that the variable names.
fn roots(variable: &str, contract: &Contract, file: &str) -> Result<PathBuf, NotOurs> {
    match file {
        SYSTEM => system_roots().ok_or_else(|| {
            NotOurs::Invalid(format!(
                "{variable} = {SYSTEM}: this system has no CA certificates at a known place"
            ))
        }),
        file => Ok(contract.path(file)),
    }
}

/// A client certificate and its key in the folder that `PROV_CERT` names.
fn client_files(folder: &Path) -> ClientFiles {
    let [chain, key, _] = NAMES.map(|name| folder.join(name));
    ClientFiles { cert: chain, key, is_optional: true }
}

fn metadata<'a>(contract: &'a Contract, key: &str) -> Option<&'a str> {
    let value = contract.config.get("proxyMetadata")?.get(key)?.as_str()?;
    Some(value).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests;
