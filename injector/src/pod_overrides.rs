//! Reads the labels and annotations with which a Pod overrides the settings.

use serde_json::Value;

use crate::pod;
use crate::settings::{STATUS_PORT, Settings, SidecarMode, is_valid_status_port};
use crate::warning::{Code, Warning, quote};
use crate::yaml;

/// The label or annotation that switches injection on or off; the label has precedence.
pub(super) const INJECT: &str = "sidecar.istio.io/inject";
/// The annotation that switches the rewriting of probes on or off.
pub(super) const REWRITE: &str = "sidecar.istio.io/rewriteAppHTTPProbers";
/// The annotation with the port on which the sidecar receives probes.
pub(super) const PORT: &str = "status.sidecar.istio.io/port";
/// The annotation with Istio's proxy configuration, of which `holdApplicationUntilProxyStarts` and
/// `statusPort` are read.
pub(super) const PROXY_CONFIG: &str = "proxy.istio.io/config";
/// Maximum number of YAML nodes in that annotation, with all aliases expanded: any user who can
/// create a Pod can write one that a million nodes are parsed for.
const PROXY_CONFIG_NODES: usize = 10_000;
/// The annotation that selects a native or a classic sidecar.
pub(super) const NATIVE: &str = "sidecar.istio.io/nativeSidecar";

/// The settings of one Pod.
#[derive(Debug)]
pub(super) struct PodOverrides {
    /// The Pod's own setting, if there is one.
    pub inject: Option<Inject>,
    pub rewrite: bool,
    /// The port on which the sidecar receives probes; never 0.
    pub status_port: u16,
    /// True if the application waits for a classic sidecar.
    pub hold: bool,
    /// The Pod's own setting of `hold`, if there is one.
    pub hold_override: Option<bool>,
    pub sidecar_mode: SidecarMode,
    /// One warning for each invalid label or annotation.
    pub warnings: Vec<Warning>,
}

/// Whether the Pod asks for injection.
#[derive(Debug)]
pub(super) struct Inject {
    pub value: bool,
    /// The path of the label or annotation.
    pub path: String,
}

impl PodOverrides {
    /// Returns the setting `value` of the Pod, if it is set.
    pub(super) fn injects(&self, value: bool) -> Option<&Inject> {
        self.inject.as_ref().filter(|inject| inject.value == value)
    }

    /// Reads the labels and annotations. An invalid value gives a warning and the default is used.
    pub(super) fn read(pod: &Value, settings: &Settings) -> Self {
        let mut warnings = Vec::new();
        let label = pod::label(pod, INJECT).map(|value| (value, pod::label_path(INJECT)));
        let annotation = pod::annotation(pod, INJECT).map(|value| (value, pod::annotation_path(INJECT)));
        let mut inject = None;
        for (value, path) in [label, annotation].into_iter().flatten() {
            inject = inject.or_else(|| {
                let value = bool_of(value, INJECT, "the default", &path, &mut warnings)?;
                Some(Inject { value, path })
            });
        }
        let default = settings.rewrite_probes;
        let rewrite = pod::annotation(pod, REWRITE)
            .and_then(|value| {
                bool_of(value, REWRITE, &default.to_string(), &pod::annotation_path(REWRITE), &mut warnings)
            })
            .unwrap_or(default);
        let config = ProxyConfig::read(pod, &mut warnings);
        let default = config.status_port.unwrap_or(settings.status_port);
        let asked = pod::annotation(pod, PORT).and_then(|value| port(value, default, &mut warnings));
        let status_port = asked.unwrap_or(default);
        let default = settings.sidecar_mode;
        let fallback = (default == SidecarMode::Native).to_string();
        let native = pod::annotation(pod, NATIVE).and_then(|value| {
            bool_of(value, NATIVE, &fallback, &pod::annotation_path(NATIVE), &mut warnings)
        });
        let sidecar_mode = match native {
            Some(true) => SidecarMode::Native,
            Some(false) => SidecarMode::Classic,
            None => default,
        };
        if status_port == 0 {
            let text = "status port 0: the probes are not rewritten";
            warnings.push(Warning::about_pod(Code::StatusPort, text).at(pod::annotation_path(PORT)));
        }
        Self {
            inject,
            rewrite: rewrite && status_port != 0,
            status_port: if status_port == 0 { STATUS_PORT } else { status_port },
            hold: config.hold.unwrap_or(settings.hold),
            hold_override: config.hold,
            sidecar_mode,
            warnings,
        }
    }
}

fn invalid_value(name: &str, value: &Value, values: &str, fallback: &str) -> Warning {
    let text = format!("{name} = {}: must be {values}, using {fallback}", quote(value));
    Warning::about_pod(Code::Annotation, text)
}

fn bool_of(
    value: &Value,
    name: &str,
    fallback: &str,
    path: &str,
    warnings: &mut Vec<Warning>,
) -> Option<bool> {
    let parsed = match (value.as_str(), name) {
        (Some("true"), _) => Some(true),
        (Some("false"), _) => Some(false),
        (Some(text), REWRITE) => probe::go::parse_bool(text),
        _ => None,
    };
    if parsed.is_none() {
        warnings.push(invalid_value(name, value, "true or false", fallback).at(path));
    }
    parsed
}

fn port(value: &Value, default: u16, warnings: &mut Vec<Warning>) -> Option<u16> {
    let port = value.as_str().and_then(|text| text.parse().ok()).filter(|port| is_valid_status_port(*port));
    if port.is_none() {
        let values = "1 to 65535 and no other port of the proxy";
        let warning = invalid_value(PORT, value, values, &default.to_string());
        warnings.push(warning.at(pod::annotation_path(PORT)));
    }
    port
}

/// The fields of `proxy.istio.io/config` that the injector uses.
#[derive(Default)]
struct ProxyConfig {
    hold: Option<bool>,
    status_port: Option<u16>,
}

impl ProxyConfig {
    fn read(pod: &Value, warnings: &mut Vec<Warning>) -> Self {
        let Some(value) = pod::annotation(pod, PROXY_CONFIG) else { return Self::default() };
        let config = value.as_str().and_then(|text| yaml::value_within(text, PROXY_CONFIG_NODES).ok());
        let Some(config) = config.filter(|config| config.is_object() || config.is_null()) else {
            // The annotation may contain secrets, so the warning does not quote it.
            let text = format!(
                "{PROXY_CONFIG}: must be a YAML mapping of at most {PROXY_CONFIG_NODES} nodes, ignoring it"
            );
            warnings.push(Warning::about_pod(Code::Annotation, text).at(pod::annotation_path(PROXY_CONFIG)));
            return Self::default();
        };
        let mut wrong = |field: &str, value: &Value, values: &str| {
            let warning = invalid_value(&format!("{PROXY_CONFIG} {field}"), value, values, "the default");
            warnings.push(warning.at(pod::annotation_path(PROXY_CONFIG)));
        };
        let hold = pod::field(&config, "holdApplicationUntilProxyStarts").and_then(|value| {
            value.as_bool().or_else(|| {
                wrong("holdApplicationUntilProxyStarts", value, "true or false");
                None
            })
        });
        let status_port = pod::field(&config, "statusPort").and_then(|value| {
            let port = value.as_u64().and_then(|port| u16::try_from(port).ok());
            port.filter(|port| is_valid_status_port(*port)).or_else(|| {
                wrong("statusPort", value, "1 to 65535 and no other port of the proxy");
                None
            })
        });
        Self { hold, status_port }
    }
}
