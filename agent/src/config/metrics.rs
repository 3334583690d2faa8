//! Which metrics are merged. Invalid settings are ignored with a warning, so that they never keep a
//! Pod from starting.

use std::str::FromStr;

use hyper::Uri;

use super::Environment;
use super::istio::PrometheusAnnotations;
use crate::args::TargetLabel;
use agent_output::exit::Failure;
use scrape::{MetricsConfig, Target};

/// Istio's variable with the metrics targets, as JSON.
const PROMETHEUS_ANNOTATIONS: &str = "ISTIO_PROMETHEUS_ANNOTATIONS";
/// Istio's variable that decides whether Envoy's metrics are merged.
const MERGE_ENVOY_STATS: &str = "PILOT_AGENT_MERGE_ENVOY_STATS";
/// Limit of the number of targets.
const TARGETS: usize = 8;

/// `reserved` contains the proxy's own ports. The warnings name what was ignored.
pub(super) fn metrics_config(
    envoy: Option<bool>,
    targets: &[String],
    label: TargetLabel,
    reserved: &[u16],
    environment: &Environment,
) -> Result<(MetricsConfig, Vec<String>), Failure> {
    let envoy = match (envoy, environment.text(MERGE_ENVOY_STATS)?) {
        (Some(envoy), _) => envoy,
        (None, Some(text)) => !matches!(text, "false" | "FALSE" | "False" | "f" | "F" | "0"),
        (None, None) => true,
    };
    let mut config = MetricsConfig { envoy, ..MetricsConfig::default() };
    let mut warnings = Vec::new();
    let (key, found) = if targets.is_empty() {
        (PROMETHEUS_ANNOTATIONS, annotations(environment, &mut config, &mut warnings)?)
    } else {
        let pair = |text: &String| match text.split_once('/') {
            Some((port, path)) => (port.to_owned(), format!("/{path}")),
            None => (text.clone(), "/metrics".to_owned()),
        };
        ("--metrics-target", targets.iter().map(pair).collect())
    };
    for (port, path) in found {
        match target(&port, &path, reserved, &config.targets) {
            Ok(target) => config.targets.push(target),
            Err(reason) => {
                warnings.push(format!("{key}: port {port:?}, path {path:?}: {reason}; ignored"));
                config.mark_rejected(key);
            }
        }
    }
    config.labels_targets = match label {
        TargetLabel::Auto => config.targets.len() > 1,
        TargetLabel::Always => true,
        TargetLabel::Never => false,
    };
    Ok((config, warnings))
}

fn annotations(
    environment: &Environment,
    config: &mut MetricsConfig,
    warnings: &mut Vec<String>,
) -> Result<Vec<(String, String)>, Failure> {
    let Some(text) = environment.text(PROMETHEUS_ANNOTATIONS)? else { return Ok(Vec::new()) };
    match serde_json::from_str::<PrometheusAnnotations>(text) {
        Ok(annotations) => Ok(annotations.targets()),
        Err(error) => {
            warnings.push(format!("{PROMETHEUS_ANNOTATIONS}: {error}; ignored"));
            config.mark_rejected(PROMETHEUS_ANNOTATIONS);
            Ok(Vec::new())
        }
    }
}

fn target(port: &str, path: &str, reserved: &[u16], existing: &[Target]) -> Result<Target, &'static str> {
    if existing.len() >= TARGETS {
        return Err("more than 8 targets");
    }
    let is_number = !port.starts_with('0') && port.bytes().all(|byte| byte.is_ascii_digit());
    let number = port.parse().ok().filter(|_| is_number).ok_or("must be a port from 1 to 65535")?;
    if reserved.contains(&number) {
        return Err("is a port of the proxy");
    }
    let is_path = path.starts_with('/') && Uri::from_str(path).is_ok_and(|uri| uri.authority().is_none());
    if !is_path {
        return Err("must be a path that begins with a slash");
    }
    let target = Target { port: number, path: path.to_owned() };
    if existing.contains(&target) { Err("is a duplicate") } else { Ok(target) }
}

#[cfg(test)]
mod tests;
