//! Preparations of `run` before the tasks start: the Envoy version, ports, files, and Envoy's
//! command line.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use serving::http_server::{self, Listener};
use tracing::warn;

use crate::address::LocalAddress;
use crate::args::EnvoyRestart;
use crate::config::{EnvoyConfigSource, EnvoyProcessConfig, RunConfig, SidecarConfig};
use crate::envoy::one_shot;
use crate::envoy::process::EnvoyCommand;
use crate::envoy_version::EnvoyVersion;
use crate::exit::Failure;
use crate::state_dir::{self, StateDirError};

/// Limit for `--config-yaml`; the kernel accepts at most 128 KiB in one command line argument.
const MAX_CONFIG_YAML: usize = 120 * 1024;

/// This executable, even if its file was replaced or deleted.
const SELF_EXE: &str = "/proc/self/exe";

pub(super) struct Prepared {
    /// `None` if Envoy is external.
    pub(super) envoy: Option<(EnvoyCommand, EnvoyRestart)>,
    /// Rendered bootstrap without secrets.
    pub(super) bootstrap_for_debug: Option<Arc<str>>,
}

/// Queries the version of the Envoy that will read the bootstrap, unless it is configured. An Envoy
/// that does not answer in time, for example because of a slow disk, is assumed to be the newest
/// one.
pub(super) async fn query_version(config: &mut RunConfig) -> Result<(), Failure> {
    let Some(envoy) = &mut config.envoy else { return Ok(()) };
    let binary = envoy.binary.display().to_string();
    let wrong = |why: String| Failure::Usage(format!("Envoy {binary}: {why}"));
    let sidecar = match &mut envoy.files {
        EnvoyConfigSource::Rendered(sidecar) | EnvoyConfigSource::Merged(_, sidecar)
            if envoy.query_version =>
        {
            sidecar
        }
        _ => return Ok(()),
    };
    let said = match one_shot::version(&envoy.binary).await {
        Err(error) if error.kind() == ErrorKind::TimedOut => {
            let newest = EnvoyVersion::NEWEST;
            warn!(
                "Envoy version query timed out: {binary} --version printed nothing in time, assuming {newest}; set --envoy-version to override"
            );
            sidecar.bootstrap.envoy_version = newest;
            return Ok(());
        }
        said => said.map_err(|error| wrong(error.to_string()))?,
    };
    let word = said.ok_or_else(|| wrong("--version printed no version; set --envoy-version".to_owned()))?;
    // `1.41.0-dev` counts as 1.41.0.
    let number = word.split('-').next().unwrap_or_default();
    sidecar.bootstrap.envoy_version =
        EnvoyVersion::from_str(number).map_err(|error| wrong(format!("version {word:?} {error}")))?;
    Ok(())
}

/// Binds the admin server's address. A socket in the state directory requires that directory to
/// exist.
pub(super) fn bind_local(config: &RunConfig) -> Result<Listener, Failure> {
    let address = &config.local_address;
    if let (LocalAddress::Unix(socket), Some(sidecar)) =
        (address, config.envoy.as_ref().and_then(|envoy| envoy.files.sidecar()))
        && socket.parent() == Some(&sidecar.state_dir)
    {
        state_dir::create(&sidecar.state_dir).map_err(cannot_write)?;
    }
    let bound = match address {
        LocalAddress::Tcp(address) => http_server::bind(*address).map(Listener::from),
        LocalAddress::Unix(path) => http_server::bind_unix(path).map(Listener::from),
    };
    bound.map_err(|error| {
        let port = match address {
            LocalAddress::Tcp(address) => format!("port {} ({address})", address.port()),
            LocalAddress::Unix(_) => address.to_string(),
        };
        Failure::Os(format!(
            "{port}: {error}; it serves drain, quit and metrics; set --local-address to another one"
        ))
    })
}

pub(super) fn files(config: &RunConfig) -> Result<Prepared, Failure> {
    let Some(envoy) = &config.envoy else { return Ok(Prepared { envoy: None, bootstrap_for_debug: None }) };
    let configuration = configuration(envoy)?;
    let command = EnvoyCommand {
        binary: envoy.binary.clone(),
        launcher: Some(PathBuf::from(SELF_EXE)),
        configuration,
        flags: EnvoyCommand::flags(envoy.concurrency, config.drain.deadline, envoy.args.clone()),
        // If the merged configuration is invalid, Envoy prints all of it, including the prober
        // table, which may contain secrets.
        validate_first: matches!(envoy.files, EnvoyConfigSource::Merged(..)),
        admin: config.admin.clone(),
    };
    let bootstrap_for_debug =
        envoy.files.sidecar().map(|sidecar| sidecar.bootstrap.render_without_secrets().into());
    Ok(Prepared { envoy: Some((command, envoy.restart)), bootstrap_for_debug })
}

fn configuration(envoy: &EnvoyProcessConfig) -> Result<Vec<OsString>, Failure> {
    let with_file = |file: PathBuf| vec!["-c".into(), file.into_os_string()];
    match &envoy.files {
        EnvoyConfigSource::Given(file) => Ok(with_file(file.clone())),
        EnvoyConfigSource::Rendered(sidecar) => {
            write_filter(sidecar)?;
            let rendered = sidecar.bootstrap.render();
            state_dir::write_bootstrap(&sidecar.state_dir, &rendered).map(with_file).map_err(cannot_write)
        }
        EnvoyConfigSource::Merged(file, sidecar) => {
            let rendered = sidecar.bootstrap.render_compact();
            if rendered.len() > MAX_CONFIG_YAML {
                return Err(Failure::Usage(format!(
                    "--user-config: the generated bootstrap, with the prober table, is {} bytes long, and at most {MAX_CONFIG_YAML} can be merged; \
                     combine the output of `bootstrap` with your file, and pass the result with --envoy-config",
                    rendered.len()
                )));
            }
            write_filter(sidecar)?;
            Ok([with_file(file.clone()), vec!["--config-yaml".into(), rendered.into()]].concat())
        }
    }
}

/// Creates the state directory and writes the filter into it where the bootstrap refers to them.
pub(super) fn write_filter(sidecar: &SidecarConfig) -> Result<(), Failure> {
    let made = match (sidecar.write_filter, sidecar.create_state_dir) {
        (true, _) => state_dir::write_filter(&sidecar.state_dir),
        (false, true) => state_dir::create(&sidecar.state_dir),
        (false, false) => Ok(()),
    };
    made.map_err(cannot_write)
}

fn cannot_write(error: StateDirError) -> Failure {
    Failure::CannotWrite(error.to_string())
}
