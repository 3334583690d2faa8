//! Decides whether a Pod is injected, only rewritten, or skipped. The first rule that matches
//! decides.

use serde_json::Value;

use crate::pod_overrides::{INJECT, PodOverrides};
use crate::settings::{InjectionMode, Settings};
use crate::warning::{Code, Warning, quote};
use crate::{listeners, pod, windows};

/// The name of Istio's sidecar.
const ISTIO_PROXY: &str = "istio-proxy";
/// The image of a declared sidecar that the injector shall complete, as in Istio.
pub const AUTO_IMAGE: &str = "auto";

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// The Pod is not subject to injection; the warning is set if it asked for injection.
    Skip(Option<Warning>),
    /// The Pod cannot be injected, for the reason in the warning.
    Unchanged(Warning),
    /// The Pod has a sidecar; its probes are rewritten.
    Rewrite,
    /// The sidecar is added, and the probes are rewritten.
    Inject,
}

/// Decides about a Pod that [`pod::check`] has accepted.
pub(super) fn decide(
    pod: &Value,
    namespace: &str,
    overrides: &PodOverrides,
    settings: &Settings,
) -> Decision {
    if let Some(skip) = skip(pod, namespace, overrides, settings) {
        return skip;
    }
    let spec = &pod["spec"];
    let sidecar = SidecarPresence::of(spec, &settings.sidecar_name);
    let injecting = matches!(sidecar, SidecarPresence::Absent | SidecarPresence::Auto)
        && settings.mode == InjectionMode::Auto;
    if let Some(port) = port_conflict(spec, overrides, injecting, settings) {
        let text = format!("containerPort {port} is a port of the proxy");
        return Decision::Unchanged(Warning::about_pod(Code::PortClash, text));
    }
    match sidecar {
        SidecarPresence::Invalid => {
            let text = format!("container {} is not a sidecar, or not unique", settings.sidecar_name);
            Decision::Unchanged(Warning::about_pod(Code::Sidecar, text))
        }
        SidecarPresence::Complete => Decision::Rewrite,
        SidecarPresence::Absent | SidecarPresence::Auto if !injecting => {
            let asked = overrides.inject == Some(true);
            let text = format!("{INJECT} is true, but the mode is rewrite-only");
            Decision::Skip(asked.then(|| Warning::about_pod(Code::NoSidecar, text)))
        }
        SidecarPresence::Absent | SidecarPresence::Auto => match name_conflict(spec, settings) {
            Some(text) => Decision::Unchanged(Warning::about_pod(Code::TemplateName, text)),
            None => Decision::Inject,
        },
    }
}

/// Returns the decision to skip a Pod that is not subject to injection.
fn skip(pod: &Value, namespace: &str, overrides: &PodOverrides, settings: &Settings) -> Option<Decision> {
    let spec = &pod["spec"];
    let sidecar = SidecarPresence::of(spec, &settings.sidecar_name);
    if settings.ignored_namespaces.iter().any(|ignored| ignored == namespace)
        || pod::annotation(pod, "kubernetes.io/config.mirror").is_some()
    {
        return Some(Decision::Skip(None));
    }
    let asked = sidecar != SidecarPresence::Absent || overrides.inject == Some(true);
    if let Some(field) = windows::field(pod) {
        let expected = asked || settings.mode == InjectionMode::Auto;
        let text = format!("{field}: the Pod runs on Windows, and the sidecar needs Linux");
        let warning = Warning::about_pod(Code::Windows, text);
        return Some(Decision::Skip(Some(warning).filter(|_| expected && overrides.inject != Some(false))));
    }
    if spec["hostNetwork"] == true {
        let text = "hostNetwork: the status port would be a port of the node";
        return Some(Decision::Skip(asked.then(|| Warning::about_pod(Code::HostNetwork, text))));
    }
    if overrides.inject == Some(false) {
        return Some(Decision::Skip(None));
    }
    if settings.sidecar_name != ISTIO_PROXY
        && SidecarPresence::of(spec, ISTIO_PROXY) != SidecarPresence::Absent
    {
        let text = "the Pod has Istio's sidecar, which handles the probes";
        return Some(Decision::Skip(Some(Warning::about_pod(Code::OtherInjector, text))));
    }
    None
}

/// Whether and how a container of the given name exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SidecarPresence {
    Absent,
    /// A complete sidecar container.
    Complete,
    /// A container with `image: auto`, which the injector shall complete.
    Auto,
    /// An init container that is not a native sidecar, or several containers of this name.
    Invalid,
}

impl SidecarPresence {
    fn of(spec: &Value, name: &str) -> Self {
        let named = |key| pod::list(spec, key).iter().filter(move |container| pod::name(container) == name);
        let mut found = named("initContainers").chain(named("containers"));
        let ends = named("initContainers").any(|container| !pod::is_native_sidecar(container));
        match (found.next(), found.next()) {
            (None, _) => Self::Absent,
            (Some(_), Some(_)) => Self::Invalid,
            (Some(_), None) if ends => Self::Invalid,
            (Some(container), None) if pod::text(container, "image") == AUTO_IMAGE => Self::Auto,
            (Some(_), None) => Self::Complete,
        }
    }
}

/// Returns a port of the proxy that another container declares.
fn port_conflict(
    spec: &Value,
    overrides: &PodOverrides,
    injecting: bool,
    settings: &Settings,
) -> Option<u16> {
    let containers = || ["initContainers", "containers"].into_iter().flat_map(|key| pod::list(spec, key));
    let is_sidecar = |container: &&Value| pod::name(container) == settings.sidecar_name;
    let proxy = if injecting {
        listeners::ports(settings, containers().find(is_sidecar), overrides.status_port)
    } else {
        vec![overrides.status_port]
    };
    let others = containers().filter(|container| !is_sidecar(container));
    others.flat_map(listeners::tcp_ports).find(|port| proxy.contains(port))
}

/// Returns an error text if a name of the template is already used in the Pod.
fn name_conflict(spec: &Value, settings: &Settings) -> Option<String> {
    let template = &settings.template;
    let containers =
        template.containers.iter().chain(&template.init_containers).map(|name| ("container", name));
    let volumes = template.volumes.iter().map(|volume| ("volume", volume));
    let (kind, element) = containers.chain(volumes).find(|(kind, element)| {
        let keys: &[&str] = if *kind == "volume" { &["volumes"] } else { &["initContainers", "containers"] };
        keys.iter().flat_map(|key| pod::list(spec, key)).any(|other| pod::name(other) == pod::name(element))
    })?;
    Some(format!("{kind} {} already exists", quote(&element["name"])))
}
