//! Converts the command line and the environment to validated configuration.

mod bootstrap;
mod istio;
#[cfg(feature = "vm")]
pub mod istio_sidecar;
mod metrics;
#[cfg(not(feature = "vm"))]
mod pod;
mod run;
#[cfg(feature = "vm")]
mod vm;
mod wait;

pub use bootstrap::BootstrapConfig;
pub use run::{EnvoyProcessConfig, ProbesConfig, RunConfig};
pub use wait::WaitConfig;

pub use serving::environment::Environment;

use crate::args::Args;

/// Search path for executables.
const PATH: &str = "PATH";
/// Prefix of the environment variables that correspond to flags.
const VARIABLE_PREFIX: &str = "APP_HEALTH_";

/// Returns the names that have the prefix of flag variables but belong to no flag. They cause only a
/// warning, because kubelet sets such variables for a Service named `app-health`.
pub fn unknown_flag_variables(environment: &Environment) -> Option<String> {
    environment.unknown_variables::<Args>(VARIABLE_PREFIX)
}

#[cfg(test)]
mod tests;
