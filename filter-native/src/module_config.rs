//! A configuration of the module, which all of Envoy's threads share.

use std::sync::atomic::{AtomicU64, Ordering};

use app_health_filter::config::Config;
use app_health_filter::host::LogLevel;
use app_health_filter::metrics::define_initial;

use crate::abi::EnvoyConfig;
use crate::metrics::{ConfigMetrics, ConfigurationCount, FamilyIds, log};

/// The configurations that were rejected and not counted yet: a rejected configuration has no metrics, so
/// one that is served counts them.
static REJECTED: AtomicU64 = AtomicU64::new(0);

/// A valid configuration.
#[derive(Debug)]
pub(crate) struct ModuleConfig {
    /// The configuration as JSON. Each worker parses it again, because its plans count the probes in
    /// flight on one worker.
    pub(crate) json: Vec<u8>,
    pub(crate) ids: FamilyIds,
    _count: ConfigurationCount,
}

impl ModuleConfig {
    /// Validates a configuration, defines its metrics, and logs its warnings. Logs the error of an
    /// invalid one and returns `None`.
    pub(crate) fn new(json: Vec<u8>, envoy: EnvoyConfig) -> Option<Self> {
        let config = match Config::parse(&json) {
            Ok(config) => config,
            Err(error) => {
                log(LogLevel::Error, &format!("plugin configuration rejected: {error}"));
                REJECTED.fetch_add(1, Ordering::Relaxed);
                return None;
            }
        };
        // Counted before the series are defined: a worker may drop the last other configuration meanwhile.
        let count = ConfigurationCount::add();
        let Some(ids) = FamilyIds::define(envoy) else {
            log(LogLevel::Error, "plugin configuration rejected: Envoy defines no metrics");
            return None;
        };
        for warning in &config.warnings {
            log(LogLevel::Warn, warning);
        }
        let mut metrics = ConfigMetrics { envoy, ids };
        for probe in config.probes() {
            define_initial(probe, &mut metrics);
        }
        Some(Self { json, ids, _count: count })
    }
}

/// Returns the number of rejected configurations since the last call.
pub(crate) fn take_rejected() -> u64 {
    match REJECTED.load(Ordering::Relaxed) {
        0 => 0,
        _ => REJECTED.swap(0, Ordering::Relaxed),
    }
}
