//! The metrics of a configuration. Envoy defines them while it creates the configuration, and forgets
//! them with it unless the next one has touched them, so the module remembers every series while a
//! configuration exists.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use app_health_filter::host::LogLevel;
use app_health_filter::metrics::{
    CONFIG_REJECTED_TOTAL, Definition, Family, Metric, MetricsHost, PROBE_SUCCESS, PROBES_TOTAL,
    UNKNOWN_PROBES_TOTAL,
};

use crate::abi::{self, EnvoyConfig};

const FAMILIES: [&Family; 4] = [&PROBES_TOTAL, &PROBE_SUCCESS, &UNKNOWN_PROBES_TOTAL, &CONFIG_REJECTED_TOTAL];

/// What the configurations of this process have in common.
static SHARED: Mutex<Shared> = Mutex::new(Shared { configurations: 0, series: BTreeSet::new() });

#[derive(Debug)]
struct Shared {
    /// The number of configurations that exist. Envoy keeps the values of the series while there is one.
    configurations: usize,
    /// Every series with labels that was defined.
    series: BTreeSet<(usize, Vec<String>)>,
}

fn shared() -> MutexGuard<'static, Shared> {
    SHARED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts a configuration while it exists. After the last one, every series is new again.
#[derive(Debug)]
pub(crate) struct ConfigurationCount(());

impl ConfigurationCount {
    pub(crate) fn add() -> Self {
        let mut shared = shared();
        shared.configurations = shared.configurations.saturating_add(1);
        Self(())
    }
}

impl Drop for ConfigurationCount {
    fn drop(&mut self) {
        let mut shared = shared();
        shared.configurations = shared.configurations.saturating_sub(1);
        if shared.configurations == 0 {
            shared.series.clear();
        }
    }
}

/// The ids of the families in one configuration, in the order of [`FAMILIES`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct FamilyIds([usize; FAMILIES.len()]);

impl FamilyIds {
    /// Defines all families, and touches the series of former configurations so that they keep their
    /// values. Returns `None` if Envoy refuses.
    pub(crate) fn define(envoy: EnvoyConfig) -> Option<Self> {
        let mut ids = [0; FAMILIES.len()];
        for (id, family) in ids.iter_mut().zip(FAMILIES) {
            *id = envoy.define(family)?;
        }
        for (number, labels) in &shared().series {
            if let (Some(id), Some(family)) = (ids.get(*number), FAMILIES.get(*number)) {
                envoy.increment(family, *id, labels.iter().map(String::as_str), 0);
            }
        }
        Some(Self(ids))
    }

    /// Remembers a series, and returns the id of its family.
    pub(crate) fn remember(&self, metric: Metric<'_>) -> Definition {
        let number = match metric {
            Metric::ProbesTotal(..) => 0,
            Metric::ProbeSuccess(_) => 1,
            Metric::UnknownProbesTotal => 2,
            Metric::ConfigRejectedTotal => 3,
        };
        let labels: Vec<String> = metric.label_values().map(str::to_owned).collect();
        let is_new = !labels.is_empty() && shared().series.insert((number, labels));
        Definition { id: self.0.get(number).copied().unwrap_or_default(), is_new }
    }
}

pub(crate) fn log(level: LogLevel, text: &str) {
    let level = match level {
        LogLevel::Info => abi::LogLevel::Info,
        LogLevel::Warn => abi::LogLevel::Warn,
        LogLevel::Error => abi::LogLevel::Error,
    };
    abi::log(level, text);
}

/// Updates metrics while Envoy creates a configuration.
pub(crate) struct ConfigMetrics {
    pub(crate) envoy: EnvoyConfig,
    pub(crate) ids: FamilyIds,
}

impl MetricsHost for ConfigMetrics {
    fn define(&mut self, metric: Metric<'_>) -> Option<Definition> {
        let definition = self.ids.remember(metric);
        // A series exists from its first update.
        self.envoy.increment(metric.family(), definition.id, metric.label_values(), 0);
        Some(definition)
    }

    fn increment(&mut self, id: usize, metric: Metric<'_>) {
        self.envoy.increment(metric.family(), id, metric.label_values(), 1);
    }

    fn set(&mut self, id: usize, metric: Metric<'_>, value: u64) {
        self.envoy.set_gauge(id, metric.label_values(), value);
    }
}
