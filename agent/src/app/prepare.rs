//! Preparations of `run` before the tasks start: the Envoy version, ports, files, and Envoy's
//! command line.

use std::path::PathBuf;
use std::time::Duration;

use serving::http_server::{self, Listener};
use tokio::time::sleep;
use tracing::{info, warn};

use crate::config::RunConfig;
use address::LocalAddress;
use agent_output::exit::Failure;
use agent_server::local_peer;
use envoy_bootstrap::envoy_version::{EnvoyBuild, EnvoyVersion};
use envoy_bootstrap::filter_choice::KnownVersion;
use envoy_process::config_source::EnvoyConfigSource;
use envoy_process::envoy_files::{self, DebugInfo, Fallback};
use envoy_process::leftover;
use envoy_process::one_shot::{self, VersionError};
use envoy_process::process::EnvoyCommand;
use envoy_process::state_dir;
use envoy_process::supervisor::EnvoyStart;

/// This executable, even if its file was replaced or deleted.
const SELF_EXE: &str = "/proc/self/exe";

/// Time after which a query of the version is reported as slow, and after which it is given up. Reading the
/// file, of 100 MB, from a slow disk or over a network can take long, and a start of Envoy takes as long.
const SLOW: Duration = Duration::from_secs(5);
const VERSION_TIMEOUT: Duration = Duration::from_secs(60);

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
    let slow = async {
        sleep(SLOW).await;
        warn!("{binary} --version has not finished after {} s, waiting for it", SLOW.as_secs());
        std::future::pending().await
    };
    let version = tokio::select! {
        version = one_shot::version(&envoy.binary, VERSION_TIMEOUT) => version,
        never = slow => never,
    };
    let word = match version {
        Ok(word) => word,
        Err(error @ VersionError::TimedOut { .. }) => {
            let newest = EnvoyVersion::NEWEST;
            warn!(
                "Envoy {binary}: {error}; assuming version {newest}, set --envoy-version if it is another one"
            );
            sidecar.bootstrap.envoy_version = newest;
            sidecar.choose_filter(KnownVersion::Unknown);
            return Ok(());
        }
        Err(error @ VersionError::NotStarted(_)) => return Err(wrong(error.to_string())),
        Err(error @ VersionError::NoVersion { .. }) => {
            return Err(wrong(format!("{error}; if this Envoy can be started, set --envoy-version")));
        }
    };
    let build: EnvoyBuild = word.parse().map_err(|error| wrong(format!("version {word:?} {error}")))?;
    sidecar.bootstrap.envoy_version = build.version;
    sidecar.choose_filter(build.into());
    Ok(())
}

/// Binds the local server's address. A socket in the state directory requires that directory to
/// exist.
pub(super) fn bind_local(config: &RunConfig) -> Result<Listener, Failure> {
    let address = &config.local_address;
    if let (LocalAddress::Unix(socket), Some(sidecar)) =
        (address, config.envoy.as_ref().and_then(|envoy| envoy.files.sidecar()))
        && socket.parent() == Some(&sidecar.state_dir)
    {
        state_dir::create(&sidecar.state_dir).map_err(|error| Failure::CannotWrite(error.to_string()))?;
    }
    let bound = match address {
        LocalAddress::Tcp(address) => http_server::bind(*address).map(Listener::from),
        LocalAddress::Unix(path) => http_server::bind_unix(path).and_then(|listener| {
            config.local_group.map(|group| local_peer::give_to_group(path, group)).transpose()?;
            Ok(Listener::from(listener))
        }),
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

/// Ends an Envoy that a killed agent left behind, and returns the file for the record of the next one.
/// `None` if Envoy is external, or if there is no directory for the file.
pub(super) async fn end_leftover(config: &RunConfig) -> Result<Option<PathBuf>, Failure> {
    let Some(envoy) = &config.envoy else { return Ok(None) };
    let is_exclusive = envoy.files.sidecar().is_some();
    // Agents with --envoy-config need no state directory, and can share the default one.
    let name = match is_exclusive {
        true => "envoy-process.json".to_owned(),
        false => {
            let port = config.ready_address;
            format!("envoy-process-{port}.json")
        }
    };
    // If something else needs the directory, it reports the error.
    if let Err(error) = state_dir::create(&config.state_dir) {
        info!(%error, "envoy not recorded: if this agent is killed, the next one cannot end its Envoy");
        return Ok(None);
    }
    let file = config.state_dir.join(name);
    leftover::end(&file, is_exclusive).await?;
    Ok(Some(file))
}

/// Writes Envoy's files, and returns how Envoy is started (`None` if it is external) and what the
/// local server shows.
pub(super) fn files(
    config: &RunConfig,
    record: Option<PathBuf>,
) -> Result<(Option<EnvoyStart>, DebugInfo), Failure> {
    let Some(envoy) = &config.envoy else { return Ok((None, DebugInfo::default())) };
    let files = envoy_files::write(&envoy.files)?;
    let command = EnvoyCommand {
        binary: envoy.binary.clone(),
        launcher: Some(PathBuf::from(SELF_EXE)),
        record,
        configuration: files.arguments,
        flags: envoy.flags.clone(),
        // If the merged configuration is invalid, Envoy prints all of it, including the prober
        // table, which may contain secrets.
        validate_first: matches!(envoy.files, EnvoyConfigSource::Merged(..)),
        log_format: config.log_format,
        admin: config.admin.clone(),
    };
    let fallback = Fallback::of(&envoy.files);
    Ok((
        Some(EnvoyStart { command, restart: envoy.restart, hang_limit: envoy.hang_limit, fallback }),
        files.debug_info,
    ))
}
