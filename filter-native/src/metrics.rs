//! The metrics of a configuration. Envoy defines them while it creates the configuration, and forgets
//! them with it unless the next one has touched them, so the module remembers every series while a
//! configuration exists.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use app_health_filter::host::LogLevel;
use app_health_filter::metrics::{Definition, Family, Metric, MetricsHost};
use probe::ProbePath;

use crate::abi::{self, EnvoyConfig};

/// What the configurations of this process have in common.
static SHARED: Mutex<Shared> =
    Mutex::new(Shared { configurations: 0, series: BTreeSet::new(), successes: BTreeMap::new() });

#[derive(Debug)]
struct Shared {
    /// The number of configurations that exist. Envoy keeps the values of the series while there is one.
    configurations: usize,
    /// Every series with labels that was defined.
    series: BTreeSet<(Family, Vec<String>)>,
    /// What the workers have set the gauge of each prober to.
    successes: BTreeMap<ProbePath, u64>,
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
            shared.successes.clear();
        }
    }
}

/// The ids of the families in one configuration, in the order of [`Family::ALL`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct FamilyIds([usize; Family::ALL.len()]);

impl FamilyIds {
    /// Defines all families, and touches the series of former configurations so that they keep their
    /// values. Returns `None` if Envoy refuses.
    pub(crate) fn define(envoy: EnvoyConfig) -> Option<Self> {
        let mut ids = Self([0; Family::ALL.len()]);
        for (id, family) in ids.0.iter_mut().zip(Family::ALL) {
            *id = envoy.define(family)?;
        }
        for (family, labels) in &shared().series {
            envoy.increment(*family, ids.id(*family), labels.iter().map(String::as_str), 0);
        }
        Some(ids)
    }

    /// Remembers a series, and returns the id of its family.
    pub(crate) fn remember(&self, metric: Metric<'_>) -> Definition {
        let family = metric.family();
        let labels: Vec<String> = metric.label_values().map(str::to_owned).collect();
        let is_new = !labels.is_empty() && shared().series.insert((family, labels));
        Definition { id: self.id(family), is_new }
    }

    fn id(&self, family: Family) -> usize {
        self.0.get(family as usize).copied().unwrap_or_default()
    }
}

/// Calls `set` if the gauge of a prober has another value, because Envoy finds a gauge by its labels each time, and
/// most probes do not change it. The lock lasts until the gauge is set, so that the last value of all
/// workers counts.
pub(crate) fn set_if_changed(path: &ProbePath, value: u64, set: impl FnOnce()) {
    let mut shared = shared();
    match shared.successes.get_mut(path) {
        Some(last) if *last == value => return,
        Some(last) => *last = value,
        None => drop(shared.successes.insert(path.clone(), value)),
    }
    set();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gauge_is_set_when_its_value_changes() {
        let [shop, cart] =
            ["/app-health/shop/livez", "/app-health/cart/livez"].map(|path| ProbePath::parse(path).unwrap());
        let count = ConfigurationCount::add();
        let sets = |path: &ProbePath, value: u64| {
            let mut calls = 0;
            set_if_changed(path, value, || calls += 1);
            calls
        };
        assert_eq!([1, 1, 0, 0, 1].map(|value| sets(&shop, value)), [1, 0, 1, 0, 1]);
        assert_eq!(sets(&cart, 1), 1, "each prober has its own value");
        drop(count);
        assert_eq!(sets(&shop, 1), 1, "Envoy has forgotten the value");
    }
}
