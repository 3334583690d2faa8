//! Writes the filter and Envoy's configuration, and returns Envoy's arguments and what the debug
//! endpoints show.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use crate::config_source::{EnvoyConfigSource, SidecarConfig};
use crate::state_dir::{self, StateDirError};
use agent_output::exit::Failure;
use envoy_bootstrap::declared_probe::{DeclaredProbe, declared_probes};
use envoy_bootstrap::filter_choice::FilterChoice;

/// Limit for `--config-yaml`; the kernel accepts at most 128 KiB in one command line argument.
const MAX_CONFIG_YAML: usize = 120 * 1024;

/// The files that the agent wrote for Envoy.
#[derive(Debug, Clone)]
pub struct EnvoyFiles {
    /// `-c FILE`, optionally with `--config-yaml`.
    pub arguments: Vec<OsString>,
    pub debug_info: DebugInfo,
}

/// What the local server shows of the files; empty if the agent does not render Envoy's
/// configuration.
#[derive(Debug, Clone, Default)]
pub struct DebugInfo {
    pub filter: Option<FilterChoice>,
    /// Rendered bootstrap without secrets.
    pub bootstrap: Option<Arc<str>>,
    pub probes: Arc<[DeclaredProbe]>,
}

/// A configuration with the wasm form of the filter, for an Envoy that rejects the native one.
#[derive(Debug)]
pub struct Fallback(EnvoyConfigSource);

impl Fallback {
    /// Returns `None` if the configuration has no other form to fall back to.
    pub fn of(source: &EnvoyConfigSource) -> Option<Self> {
        let mut source = source.clone();
        source.sidecar_mut()?.fall_back_to_wasm().then_some(Self(source))
    }

    /// Writes the files of this configuration.
    ///
    /// # Errors
    /// As [`write()`].
    pub fn write(self) -> Result<EnvoyFiles, Failure> {
        write(&self.0)
    }
}

/// Writes the filter and the bootstrap.
///
/// # Errors
/// Names the file that cannot be written, or the limit that the bootstrap exceeds.
pub fn write(source: &EnvoyConfigSource) -> Result<EnvoyFiles, Failure> {
    let debug_info = source.sidecar().map_or_else(DebugInfo::default, |sidecar| DebugInfo {
        filter: sidecar.filter_choice,
        bootstrap: Some(sidecar.bootstrap.render_without_secrets().into()),
        probes: declared_probes(&sidecar.bootstrap.plugin_configuration()).into(),
    });
    Ok(EnvoyFiles { arguments: arguments(source)?, debug_info })
}

fn arguments(source: &EnvoyConfigSource) -> Result<Vec<OsString>, Failure> {
    let with_file = |file: PathBuf| vec!["-c".into(), file.into_os_string()];
    match source {
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
///
/// # Errors
/// Names what cannot be written.
pub fn write_filter(sidecar: &SidecarConfig) -> Result<(), Failure> {
    let made = match (sidecar.embedded, sidecar.create_state_dir) {
        (Some(filter), _) => state_dir::write_filter(&sidecar.state_dir, filter),
        (None, true) => state_dir::create(&sidecar.state_dir),
        (None, false) => Ok(()),
    };
    made.map_err(cannot_write)
}

fn cannot_write(error: StateDirError) -> Failure {
    Failure::CannotWrite(error.to_string())
}
