//! Decides whether a Pod is injected, only rewritten, or skipped. The first rule that matches
//! decides.

use serde_json::Value;

use crate::pod_overrides::{INJECT, PodOverrides};
use crate::settings::{InjectionMode, Settings, SidecarMode};
use crate::warning::{Code, Warning, quote};
use crate::{PodContext, listeners, pod, windows};

/// The name of Istio's sidecar.
const ISTIO_PROXY: &str = "istio-proxy";
/// The image of a declared sidecar that the injector shall complete, as in Istio.
pub const AUTO_IMAGE: &str = "auto";

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// The Pod is not subject to injection: the reason, which is a warning if the Pod asked for
    /// injection.
    Skip(Reason),
    /// The Pod cannot be injected, for the reason in the warning.
    Unchanged(Warning),
    /// The Pod has a sidecar; its probes are rewritten.
    Rewrite,
    /// The sidecar is added, and the probes are rewritten.
    Inject,
}

/// Why a Pod is not subject to injection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The user may not expect it.
    Warning(Warning),
    /// It follows from the settings, or from a field of the Pod that is set on purpose.
    Expected(String),
}

impl Reason {
    fn new(code: Code, text: String, is_expected: bool) -> Self {
        if is_expected { Self::Expected(text) } else { Self::Warning(Warning::about_pod(code, text)) }
    }
}

/// Decides about a Pod that [`pod::check`] has accepted.
pub(super) fn decide(
    pod: &Value,
    context: &PodContext,
    overrides: &PodOverrides,
    settings: &Settings,
) -> Decision {
    if let Some(skip) = skip(pod, context.namespace, overrides, settings) {
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
            Decision::Skip(match overrides.inject {
                Some(true) => {
                    let text = format!("{INJECT} is true, but the mode is rewrite-only");
                    Reason::Warning(Warning::about_pod(Code::NoSidecar, text))
                }
                _ => Reason::Expected("it has no sidecar, and the mode is rewrite-only".to_owned()),
            })
        }
        SidecarPresence::Auto
            if overrides.sidecar_mode == SidecarMode::Native && is_alone(spec, settings) =>
        {
            let text = format!("a native sidecar needs a container besides {}", settings.sidecar_name);
            Decision::Unchanged(Warning::about_pod(Code::Sidecar, text))
        }
        SidecarPresence::Absent | SidecarPresence::Auto => {
            match name_conflict(spec, context.claims, settings) {
                Some(text) => Decision::Unchanged(Warning::about_pod(Code::TemplateName, text)),
                None => Decision::Inject,
            }
        }
    }
}

/// Returns the decision to skip a Pod that is not subject to injection.
fn skip(pod: &Value, namespace: &str, overrides: &PodOverrides, settings: &Settings) -> Option<Decision> {
    let spec = &pod["spec"];
    let sidecar = SidecarPresence::of(spec, &settings.sidecar_name);
    let skip = |reason| Some(Decision::Skip(reason));
    if settings.ignored_namespaces.iter().any(|ignored| ignored == namespace) {
        return skip(Reason::Expected(format!("Pods of the namespace {namespace} are not injected")));
    }
    if pod::annotation(pod, "kubernetes.io/config.mirror").is_some() {
        return skip(Reason::Expected("a mirror Pod: kubelet runs it from a file of the node".to_owned()));
    }
    let asked = sidecar != SidecarPresence::Absent || overrides.inject == Some(true);
    if let Some(field) = windows::field(pod) {
        let is_subject = asked || settings.mode == InjectionMode::Auto;
        let is_expected = !is_subject || overrides.inject == Some(false);
        let text = format!("{field}: the Pod runs on Windows, and the sidecar needs Linux");
        return skip(Reason::new(Code::Windows, text, is_expected));
    }
    if spec["hostNetwork"] == true {
        let text = "hostNetwork: the status port would be a port of the node".to_owned();
        return skip(Reason::new(Code::HostNetwork, text, !asked));
    }
    if overrides.inject == Some(false) {
        return skip(Reason::Expected(format!("{INJECT} is false")));
    }
    if settings.sidecar_name != ISTIO_PROXY
        && SidecarPresence::of(spec, ISTIO_PROXY) != SidecarPresence::Absent
    {
        let text = "the Pod has Istio's sidecar, which handles the probes";
        return skip(Reason::Warning(Warning::about_pod(Code::OtherInjector, text)));
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

/// Returns true if no ordinary container remains when the declared sidecar becomes a native one.
fn is_alone(spec: &Value, settings: &Settings) -> bool {
    pod::list(spec, "containers").iter().all(|container| pod::name(container) == settings.sidecar_name)
}

/// Returns a port of the proxy that another container declares.
fn port_conflict(
    spec: &Value,
    overrides: &PodOverrides,
    injecting: bool,
    settings: &Settings,
) -> Option<u16> {
    let is_sidecar = |container: &&Value| pod::name(container) == settings.sidecar_name;
    let proxy = if injecting {
        listeners::ports(settings, pod::containers(spec).find(is_sidecar), overrides.status_port)
    } else {
        vec![overrides.status_port]
    };
    let others = pod::containers(spec).filter(|container| !is_sidecar(container));
    others.flat_map(listeners::tcp_ports).find(|port| proxy.contains(port))
}

/// Returns an error text if a name of the template is already used in the Pod.
fn name_conflict(spec: &Value, claims: &[Value], settings: &Settings) -> Option<String> {
    let template = &settings.template;
    let containers =
        template.containers.iter().chain(&template.init_containers).map(|name| ("container", name));
    let volumes = template.volumes.iter().map(|volume| ("volume", volume));
    let claims = || claims.iter().filter_map(|claim| pod::field(claim, "metadata"));
    let (kind, element) = containers.chain(volumes).find(|(kind, element)| {
        let is_same = |other: &Value| pod::name(other) == pod::name(element);
        match *kind {
            "volume" => pod::list(spec, "volumes").iter().chain(claims()).any(is_same),
            _ => pod::containers(spec).any(is_same),
        }
    })?;
    Some(format!("{kind} {} already exists", quote(&element["name"])))
}
