//! Metrics as Envoy keeps them for a Wasm VM: IDs belong to the VM, values to the name.

use std::collections::BTreeMap;

use super::fault::Status;
use crate::transcript::MetricKind;

#[derive(Debug, Default)]
pub struct Metrics {
    defined: BTreeMap<u32, (MetricKind, String)>,
    defined_by_kind: [u32; 3],
    values: BTreeMap<String, u64>,
}

impl Metrics {
    /// Returns the value of a counter or gauge, or the last value of a histogram; `None` if it was
    /// never written.
    pub fn value(&self, name: &str) -> Option<u64> {
        self.values.get(name).copied()
    }

    /// Returns the names of the defined metrics, each once, sorted: the series that Envoy would
    /// show.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.defined.values().map(|(_, name)| name.clone()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Returns a new ID, even for a name that was defined before: the low two bits are the type,
    /// the rest counts up from 1.
    pub(super) fn define(&mut self, kind: MetricKind, name: &str) -> u32 {
        let number = match kind {
            MetricKind::Counter => 0,
            MetricKind::Gauge => 1,
            MetricKind::Histogram => 2,
        };
        self.defined_by_kind[number] += 1;
        let id = self.defined_by_kind[number] * 4 + u32::try_from(number).expect("one of three kinds");
        self.defined.insert(id, (kind, name.to_owned()));
        id
    }

    /// Increments a counter (only upwards) or a gauge and returns its name. A histogram cannot be
    /// incremented.
    pub(super) fn increment(&mut self, id: u32, by: i64) -> Result<String, Status> {
        if id % 4 > 1 {
            return Err(Status::BadArgument);
        }
        let (kind, name) = self.defined.get(&id).ok_or(Status::NotFound)?;
        if *kind == MetricKind::Counter && by <= 0 {
            return Err(Status::BadArgument);
        }
        let value = self.values.entry(name.clone()).or_default();
        *value = value.wrapping_add_signed(by);
        Ok(name.clone())
    }

    /// Records a value, which is added to a counter and replaces that of a gauge, and returns the
    /// name.
    pub(super) fn record(&mut self, id: u32, value: u64) -> Result<String, Status> {
        let (kind, name) = self.defined.get(&id).ok_or(Status::NotFound)?;
        let before = self.values.entry(name.clone()).or_default();
        *before = match kind {
            MetricKind::Counter => before.wrapping_add(value),
            MetricKind::Gauge | MetricKind::Histogram => value,
        };
        Ok(name.clone())
    }
}
