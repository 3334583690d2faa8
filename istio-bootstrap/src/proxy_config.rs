//! Istio's `ProxyConfig`: its layers, and what an agent reads of the result.

mod fields;

use std::collections::BTreeMap;
use std::num::NonZeroU16;
use std::time::Duration;

use serde_json::{Map, Value, json};

use crate::go;
use crate::proto::{self, Error};
use fields::PROXY_CONFIG;

/// The parts of `proxyHeaders` that a layer without them keeps.
const KEPT_HEADERS: [&str; 5] =
    ["forwardedClientCert", "requestId", "attemptCount", "server", "envoyDebugHeaders"];

/// What configures an agent, as JSON values in the form in which Istio's agent sends them to istiod.
#[derive(Clone, Debug, PartialEq)]
pub struct ProxyConfig(Map<String, Value>);

impl Default for ProxyConfig {
    fn default() -> Self {
        let defaults = json!({
            "configPath": "./etc/istio/proxy",
            "binaryPath": "/usr/local/bin/envoy",
            "serviceCluster": "istio-proxy",
            "drainDuration": "45s",
            "terminationDrainDuration": "5s",
            "proxyAdminPort": 15000,
            "controlPlaneAuthPolicy": "MUTUAL_TLS",
            "discoveryAddress": "istiod.istio-system.svc:15012",
            "statNameLength": 189,
            "statusPort": 15020,
        });
        let Value::Object(defaults) = defaults else { unreachable!("an object was written") };
        Self(defaults)
    }
}

impl ProxyConfig {
    /// Lays another configuration over this one. A field that it sets replaces the whole field, except that
    /// `proxyMetadata` is merged by key, and `proxyHeaders` keeps some of its parts.
    ///
    /// # Errors
    /// The first field of a wrong type.
    pub fn merge(&mut self, layer: &Value) -> Result<(), Error> {
        let metadata = self.0.get("proxyMetadata").cloned();
        let headers = self.0.get("proxyHeaders").cloned();
        proto::merge(PROXY_CONFIG, &mut self.0, layer)?;
        if let Some(Value::Object(mut merged)) = metadata {
            if let Some(Value::Object(new)) = self.0.remove("proxyMetadata") {
                merged.extend(new);
            }
            self.0.insert("proxyMetadata".to_owned(), merged.into());
        }
        if let (Some(Value::Object(old)), Some(Value::Object(new))) =
            (headers, self.0.get_mut("proxyHeaders"))
        {
            for (name, value) in old {
                if KEPT_HEADERS.contains(&name.as_str()) {
                    new.entry(name).or_insert(value);
                }
            }
        }
        Ok(())
    }

    /// Applies the annotations of the Pod that replace single fields.
    ///
    /// # Errors
    /// A status port that is not a number. Istio's agent takes 0 for it, which means that it serves none.
    pub fn annotate(&mut self, annotations: &BTreeMap<String, String>) -> Result<(), Error> {
        const FIELDS: [(&str, &str); 2] = [
            ("sidecar.istio.io/discoveryAddress", "discoveryAddress"),
            ("status.sidecar.istio.io/port", "statusPort"),
        ];
        let own = FIELDS.iter().filter_map(|(name, field)| {
            Some(((*field).to_owned(), Value::from(annotations.get(*name)?.as_str())))
        });
        self.merge(&own.collect::<Map<_, _>>().into())
    }

    /// Limits Envoy's workers to those that the container may use, unless a layer says how many there are.
    pub fn limit_concurrency(&mut self, cpu_limit: i32) {
        if cpu_limit != 0 {
            self.0.entry("concurrency").or_insert_with(|| cpu_limit.into());
        }
    }

    /// Sets the number of Envoy's workers, as the flag `--concurrency` does.
    pub fn set_concurrency(&mut self, workers: i32) {
        self.0.insert("concurrency".to_owned(), workers.into());
    }

    /// The number of Envoy's workers; `None` and 0 are as many as there are processors.
    pub fn concurrency(&self) -> Option<i64> {
        self.0.get("concurrency").and_then(Value::as_i64)
    }

    /// A duration of the configuration.
    pub fn duration(&self, field: &str) -> Option<Duration> {
        go::parse_duration(self.0.get(field)?.as_str()?)
    }

    /// A port of the configuration; `None` if it is 0.
    pub fn port(&self, field: &str) -> Option<NonZeroU16> {
        NonZeroU16::new(self.0.get(field)?.as_u64()?.try_into().ok()?)
    }

    pub fn text(&self, field: &str) -> &str {
        self.0.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    pub fn get(&self, field: &str) -> Option<&Value> {
        self.0.get(field)
    }

    /// The entries of `proxyMetadata` or `runtimeValues`.
    pub(crate) fn texts(&self, field: &str) -> impl Iterator<Item = (&str, &str)> {
        let map = self.0.get(field).and_then(Value::as_object);
        map.into_iter().flatten().filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
    }

    pub fn as_json(&self) -> &Map<String, Value> {
        &self.0
    }

    /// The scalars with Go's names, as templates refer to them: `StatusPort`, also if they are not set.
    pub(crate) fn go_fields(&self) -> Value {
        let name = |name: &str| {
            let mut chars = name.chars();
            chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect::<String>()
        };
        let scalar = |field: &proto::Field| {
            let zero = field.kind.zero().filter(|_| field.oneof.is_empty())?;
            Some((name(field.name), self.0.get(field.name).cloned().unwrap_or(zero)))
        };
        PROXY_CONFIG.iter().filter_map(scalar).collect::<Map<_, _>>().into()
    }
}

#[cfg(test)]
mod tests;
