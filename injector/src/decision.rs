//! Decides whether a Pod is injected, only rewritten, or skipped. The first rule that matches
//! decides.

use std::fmt;

use serde_json::Value;

use crate::pod_context::PodContext;
use crate::pod_overrides::{INJECT, PodOverrides};
use crate::settings::{InjectionMode, Settings, SidecarMode};
use crate::template::AUTO_IMAGE;
use crate::warning::{Code, Warning, quote};
use crate::{ISTIO_AGENT_LABEL, listeners, pod, windows};

/// The name of Istio's sidecar.
pub const ISTIO_PROXY: &str = "istio-proxy";
/// The program that can take the place of Istio's agent.
const OUR_AGENT: &str = "app-health-agent";
/// The annotation with the templates of Istio's injector, and the beginning of the names of ours.
const ISTIO_TEMPLATES: &str = "inject.istio.io/templates";
const OUR_TEMPLATES: &str = "app-health";

const CONTAINERS: &str = "spec.containers";

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// The Pod is not subject to injection. The warning says so if the user may not expect it.
    Skip(SkipReason, Option<Warning>),
    /// The Pod cannot be injected, for the reason in the warning.
    Unchanged(Warning),
    /// The Pod has a sidecar; its probes are rewritten.
    Rewrite,
    /// The Pod has Istio's sidecar with our agent. Istio's injector has rewritten the probes, with timeouts
    /// that leave the agent no time for the reason of a failure.
    RaiseTimeouts,
    /// The sidecar is added, and the probes are rewritten.
    Inject,
}

/// Why a Pod is not subject to injection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkipReason {
    /// kubelet runs the Pod from a file of the node.
    MirrorPod,
    /// The settings exclude this namespace.
    IgnoredNamespace(String),
    /// This field of the Pod lets it run on Windows only.
    Windows(String),
    HostNetwork,
    /// The label or annotation with this path excludes the Pod.
    Disabled(String),
    OtherInjector,
    /// Istio's injector adds its sidecar with our agent.
    AwaitsIstioInjector,
    /// The mode is rewrite-only; `asked` is true if the Pod asks for injection nevertheless.
    RewriteOnly {
        asked: bool,
    },
}

impl fmt::Display for SkipReason {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::MirrorPod => formatter.write_str("a mirror Pod: kubelet runs it from a file of the node"),
            Self::IgnoredNamespace(namespace) => {
                write!(formatter, "Pods of the namespace {namespace} are not injected")
            }
            Self::Windows(field) => {
                write!(formatter, "{field}: the Pod runs on Windows, and the sidecar needs Linux")
            }
            Self::HostNetwork => {
                formatter.write_str("hostNetwork: the status port would be a port of the node")
            }
            Self::Disabled(_) => write!(formatter, "{INJECT} is false"),
            Self::OtherInjector => {
                formatter.write_str("the Pod has Istio's sidecar, which handles the probes")
            }
            Self::AwaitsIstioInjector => {
                formatter.write_str("Istio's injector adds its sidecar with app-health-agent")
            }
            Self::RewriteOnly { asked: true } => {
                write!(formatter, "{INJECT} is true, but the mode is rewrite-only")
            }
            Self::RewriteOnly { asked: false } => {
                formatter.write_str("it has no sidecar, and the mode is rewrite-only")
            }
        }
    }
}

impl Decision {
    fn skip(reason: SkipReason) -> Self {
        Self::Skip(reason, None)
    }

    /// Skips the Pod with a warning about a field.
    fn skip_with_warning(reason: SkipReason, code: Code, field: &str) -> Self {
        let warning = Warning::about_pod(code, reason.to_string()).at(field);
        Self::Skip(reason, Some(warning))
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
        return Decision::Unchanged(Warning::about_pod(Code::PortClash, text).at(CONTAINERS));
    }
    match sidecar {
        SidecarPresence::Invalid => {
            let text = format!("container {} is not a sidecar, or not unique", settings.sidecar_name);
            Decision::Unchanged(Warning::about_pod(Code::Sidecar, text).at(CONTAINERS))
        }
        SidecarPresence::Complete => Decision::Rewrite,
        SidecarPresence::Absent | SidecarPresence::Auto if !injecting => {
            let asked = overrides.injects(true);
            let reason = SkipReason::RewriteOnly { asked: asked.is_some() };
            match asked {
                Some(inject) => Decision::skip_with_warning(reason, Code::NoSidecar, &inject.path),
                None => Decision::skip(reason),
            }
        }
        SidecarPresence::Auto
            if overrides.sidecar_mode == SidecarMode::Native && is_alone(spec, settings) =>
        {
            let text = format!("a native sidecar needs a container besides {}", settings.sidecar_name);
            Decision::Unchanged(Warning::about_pod(Code::Sidecar, text).at(CONTAINERS))
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
    if pod::annotation(pod, "kubernetes.io/config.mirror").is_some() {
        return Some(Decision::skip(SkipReason::MirrorPod));
    }
    if settings.ignored_namespaces.iter().any(|ignored| ignored == namespace) {
        return Some(Decision::skip(SkipReason::IgnoredNamespace(namespace.to_owned())));
    }
    let asked = sidecar != SidecarPresence::Absent || overrides.injects(true).is_some();
    let excluded = overrides.injects(false);
    if let Some(field) = windows::field(pod) {
        let is_subject = asked || settings.mode == InjectionMode::Auto;
        let reason = SkipReason::Windows(field.clone());
        return Some(match is_subject && excluded.is_none() {
            true => Decision::skip_with_warning(reason, Code::Windows, &field),
            false => Decision::skip(reason),
        });
    }
    if spec["hostNetwork"] == true {
        return Some(match asked {
            true => {
                Decision::skip_with_warning(SkipReason::HostNetwork, Code::HostNetwork, "spec.hostNetwork")
            }
            false => Decision::skip(SkipReason::HostNetwork),
        });
    }
    if let Some(inject) = excluded {
        return Some(Decision::skip(SkipReason::Disabled(inject.path.clone())));
    }
    if settings.sidecar_name == ISTIO_PROXY { None } else { decide_istio_pod(pod) }
}

/// Returns the decision about a Pod that has Istio's sidecar, or will get it with our agent.
fn decide_istio_pod(pod: &Value) -> Option<Decision> {
    let spec = &pod["spec"];
    let is_ours = pod::containers(spec)
        .any(|container| pod::name(container) == ISTIO_PROXY && runs_our_agent(container));
    match SidecarPresence::of(spec, ISTIO_PROXY) {
        SidecarPresence::Complete if is_ours => Some(Decision::RaiseTimeouts),
        SidecarPresence::Absent | SidecarPresence::Auto if is_ours || chooses_our_agent(pod) => {
            Some(Decision::skip(SkipReason::AwaitsIstioInjector))
        }
        SidecarPresence::Absent => None,
        _ => {
            let reason = SkipReason::OtherInjector;
            Some(Decision::skip_with_warning(reason, Code::OtherInjector, CONTAINERS))
        }
    }
}

/// Returns whether the command of a container is our agent.
fn runs_our_agent(container: &Value) -> bool {
    let program = pod::list(container, "command").first().and_then(Value::as_str).unwrap_or_default();
    program.rsplit('/').next() == Some(OUR_AGENT)
}

/// Returns whether the Pod asks for Istio's sidecar with our agent, by its label or by a template of ours.
fn chooses_our_agent(pod: &Value) -> bool {
    let templates = pod::annotation(pod, ISTIO_TEMPLATES).and_then(Value::as_str).unwrap_or_default();
    pod["metadata"]["labels"][ISTIO_AGENT_LABEL] == "enabled"
        || templates.split(',').any(|template| template.trim().starts_with(OUR_TEMPLATES))
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
