//! What a Pod's labels and annotations ask for, on top of the settings.

use serde_json::Value;

use crate::pod;
use crate::settings::{STATUS_PORT, Settings, SidecarMode, may_be_status_port};
use crate::warning::{Code, Warning, quote};
use crate::yaml;

/// `true` or `false`: whether the Pod is injected at all; a label beats an annotation.
pub(super) const INJECT: &str = "sidecar.istio.io/inject";
/// Whether probes are rewritten.
pub(super) const REWRITE: &str = "sidecar.istio.io/rewriteAppHTTPProbers";
/// Where the sidecar answers probes.
pub(super) const PORT: &str = "status.sidecar.istio.io/port";
/// YAML with `holdApplicationUntilProxyStarts` and `statusPort`.
pub(super) const PROXY_CONFIG: &str = "proxy.istio.io/config";
/// Native or classic.
pub(super) const NATIVE: &str = "sidecar.istio.io/nativeSidecar";

/// What Go's `strconv.ParseBool` takes for true and false, so far as a Pod may write it.
const TRUE: [&str; 6] = ["1", "t", "T", "true", "True", "TRUE"];
const FALSE: [&str; 6] = ["0", "f", "F", "false", "False", "FALSE"];

/// The settings of one Pod.
#[derive(Debug)]
pub(super) struct Wishes {
    /// Injection, if the Pod says something about it.
    pub inject: Option<bool>,
    /// Whether probes are rewritten.
    pub rewrite: bool,
    /// Of probes, sidecar and table alike.
    pub status_port: u16,
    /// Whether the application waits for a classic sidecar.
    pub hold: bool,
    /// What the Pod itself says about that.
    pub asked_hold: Option<bool>,
    /// As what the sidecar runs.
    pub sidecar_mode: SidecarMode,
    /// What could not be understood.
    pub warnings: Vec<Warning>,
}

impl Wishes {
    /// Reads them; garbage is warned of, and what counts without it is used.
    pub(super) fn read(of: &Value, settings: &Settings) -> Self {
        let mut warnings = Vec::new();
        let label = pod::label(of, INJECT);
        let annotation = pod::annotation(of, INJECT);
        let mut inject = None;
        for value in [label, annotation].into_iter().flatten() {
            inject = inject.or_else(|| bool_of(value, INJECT, "the default", &mut warnings));
        }
        let default = settings.rewrite_probes;
        let rewrite = pod::annotation(of, REWRITE)
            .and_then(|value| go_bool(value, default, &mut warnings))
            .unwrap_or(default);
        let config = ProxyConfig::read(of, &mut warnings);
        let default = config.status_port.unwrap_or(settings.status_port);
        let asked = pod::annotation(of, PORT).and_then(|value| port(value, default, &mut warnings));
        let status_port = asked.unwrap_or(default);
        let default = settings.sidecar_mode;
        let using = (default == SidecarMode::Native).to_string();
        let native =
            pod::annotation(of, NATIVE).and_then(|value| bool_of(value, NATIVE, &using, &mut warnings));
        let sidecar_mode = match native {
            Some(true) => SidecarMode::Native,
            Some(false) => SidecarMode::Classic,
            None => default,
        };
        if status_port == 0 {
            let text = "status port 0: the probes are not rewritten";
            warnings.push(Warning::of_pod(Code::StatusPort, text));
        }
        Self {
            inject,
            rewrite: rewrite && status_port != 0,
            status_port: if status_port == 0 { STATUS_PORT } else { status_port },
            hold: config.hold.unwrap_or(settings.hold),
            asked_hold: config.hold,
            sidecar_mode,
            warnings,
        }
    }
}

fn garbage(name: &str, value: &Value, values: &str, using: &str) -> Warning {
    let text = format!("{name} = {}: must be {values}, using {using}", quote(value));
    Warning::of_pod(Code::Annotation, text)
}

fn bool_of(value: &Value, name: &str, using: &str, warnings: &mut Vec<Warning>) -> Option<bool> {
    match value.as_str() {
        Some("true") => Some(true),
        Some("false") => Some(false),
        _ => {
            warnings.push(garbage(name, value, "true or false", using));
            None
        }
    }
}

fn go_bool(value: &Value, default: bool, warnings: &mut Vec<Warning>) -> Option<bool> {
    match value.as_str() {
        Some(text) if TRUE.contains(&text) => Some(true),
        Some(text) if FALSE.contains(&text) => Some(false),
        _ => {
            warnings.push(garbage(REWRITE, value, "true or false", &default.to_string()));
            None
        }
    }
}

fn port(value: &Value, default: u16, warnings: &mut Vec<Warning>) -> Option<u16> {
    let port = value.as_str().and_then(|text| text.parse().ok()).filter(|port| may_be_status_port(*port));
    if port.is_none() {
        let values = "1 to 65535 and no other port of the proxy";
        warnings.push(garbage(PORT, value, values, &default.to_string()));
    }
    port
}

/// The two fields of `proxy.istio.io/config` that concern an injector of probes.
#[derive(Default)]
struct ProxyConfig {
    hold: Option<bool>,
    status_port: Option<u16>,
}

impl ProxyConfig {
    fn read(of: &Value, warnings: &mut Vec<Warning>) -> Self {
        let Some(value) = pod::annotation(of, PROXY_CONFIG) else { return Self::default() };
        let config = value.as_str().and_then(|text| yaml::value(text).ok());
        let Some(config) = config.filter(|config| config.is_object() || config.is_null()) else {
            // Its text may hold anything, so none of it is shown.
            let text = format!("{PROXY_CONFIG}: must be YAML with fields, using none");
            warnings.push(Warning::of_pod(Code::Annotation, text));
            return Self::default();
        };
        let mut wrong = |field: &str, value: &Value, values: &str| {
            warnings.push(garbage(&format!("{PROXY_CONFIG} {field}"), value, values, "the default"));
        };
        let hold = pod::field(&config, "holdApplicationUntilProxyStarts").and_then(|value| {
            value.as_bool().or_else(|| {
                wrong("holdApplicationUntilProxyStarts", value, "true or false");
                None
            })
        });
        let status_port = pod::field(&config, "statusPort").and_then(|value| {
            let port = value.as_u64().and_then(|port| u16::try_from(port).ok());
            port.filter(|port| may_be_status_port(*port)).or_else(|| {
                wrong("statusPort", value, "1 to 65535 and no other port of the proxy");
                None
            })
        });
        Self { hold, status_port }
    }
}
