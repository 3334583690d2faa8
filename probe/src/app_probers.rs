//! The declared probes of a Pod: the JSON of `ISTIO_KUBE_APP_PROBERS`, which the injector writes
//! and the filter reads.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::json::{ConfigError, Json};
use crate::path::ProbePath;
use crate::ports::ProxyPorts;
use crate::prober::{Prober, ReadContext};

const MAX_BYTES: usize = 1 << 20;
const MAX_PROBERS: usize = 10_000;

/// The declared probes by path, at most 10000.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppProbers(BTreeMap<ProbePath, Prober>);

impl AppProbers {
    /// Parses the value of `ISTIO_KUBE_APP_PROBERS`; an empty text and `null` declare no probe.
    /// `warnings` gets a line for each field that is ignored but may have been meant.
    ///
    /// # Errors
    /// One invalid entry rejects all of them; the error names its key, value and the reason.
    pub fn parse(
        text: &str,
        proxy_ports: &ProxyPorts,
        warnings: &mut Vec<String>,
    ) -> Result<Self, ConfigError> {
        if text.len() > MAX_BYTES {
            return Err(ConfigError::too_large("probers", "1 MiB"));
        }
        match text.trim_ascii() {
            "" => Ok(Self::default()),
            _ => match Json::parse("probers", text.as_bytes())? {
                Json::Null => Ok(Self::default()),
                value => Self::read(&value, proxy_ports, warnings),
            },
        }
    }

    /// Reads the probes; one invalid entry rejects all of them. `warnings` gets a line for each
    /// field that is ignored but may have been meant.
    pub(crate) fn read(
        value: &Json,
        proxy_ports: &ProxyPorts,
        warnings: &mut Vec<String>,
    ) -> Result<Self, ConfigError> {
        let entries = value.object("probers")?;
        if entries.len() > MAX_PROBERS {
            return Err(ConfigError::too_large("probers", &format!("{MAX_PROBERS} probers")));
        }
        // Sorted, so that the same input always gives the same error.
        let mut entries: Vec<_> = entries.iter().collect();
        entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut probers = BTreeMap::new();
        for (key, value) in entries {
            let Some(path) = ProbePath::parse(key) else {
                let reason = "must be /app-health/<container>/{livez,readyz,startupz} \
                              or /app-lifecycle/<container>/{prestopz,poststartz}";
                return Err(ConfigError::new("probers", &Json::String(key.clone()), reason));
            };
            let key = format!("probers[\"{key}\"]");
            let mut context = ReadContext { key: key.clone(), kind: path.kind(), proxy_ports, warnings };
            if probers.insert(path, Prober::read(value, &mut context)?).is_some() {
                return Err(ConfigError::new(key, value, "duplicate key"));
            }
        }
        Ok(Self(probers))
    }

    /// Returns the entries in the order of their paths.
    pub fn iter(&self) -> impl Iterator<Item = (&ProbePath, &Prober)> {
        self.0.iter()
    }

    /// Returns true if no probe is declared; then every probe path is answered with 404.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the probes as JSON with sorted keys. Reading it gives an equal value.
    pub fn to_json(&self) -> String {
        // Whether serde_json itself sorts keys depends on the features of the whole build.
        let sorted: BTreeMap<String, Value> =
            self.0.iter().map(|(path, prober)| (path.to_string(), prober.to_json())).collect();
        Value::Object(Map::from_iter(sorted)).to_string()
    }
}

impl FromIterator<(ProbePath, Prober)> for AppProbers {
    fn from_iter<T: IntoIterator<Item = (ProbePath, Prober)>>(entries: T) -> Self {
        Self(entries.into_iter().collect())
    }
}

#[cfg(test)]
mod tests;
