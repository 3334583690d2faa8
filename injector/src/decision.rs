//! Decides whether a Pod is injected, only rewritten, or skipped. The first rule that matches
//! decides.

use serde_json::Value;

use crate::pod;
use crate::settings::{Mode, Settings};
use crate::warning::{Code, Warning, quote};
use crate::wishes::{INJECT, Wishes};

/// The name of Istio's sidecar.
const ISTIO_PROXY: &str = "istio-proxy";
/// The image of a declared sidecar that the injector shall complete, as in Istio.
pub const AUTO_IMAGE: &str = "auto";
/// The ports of an injected sidecar in addition to the status port: readiness and Prometheus
/// statistics.
const SIDECAR_PORTS: [u16; 2] = [15021, 15090];

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
pub(super) fn decide(of: &Value, namespace: &str, wishes: &Wishes, settings: &Settings) -> Decision {
    let spec = &of["spec"];
    let sidecar = Presence::of(spec, &settings.sidecar_name);
    let windows = pod::field(spec, "os").is_some_and(|os| pod::name(os) == "windows");
    if settings.ignored_namespaces.iter().any(|ignored| ignored == namespace)
        || pod::annotation(of, "kubernetes.io/config.mirror").is_some()
        || windows
    {
        return Decision::Skip(None);
    }
    if spec["hostNetwork"] == true {
        let asked = sidecar != Presence::Absent || wishes.inject == Some(true);
        let text = "hostNetwork: the status port would be a port of the node";
        return Decision::Skip(asked.then(|| Warning::of_pod(Code::HostNetwork, text)));
    }
    if wishes.inject == Some(false) {
        return Decision::Skip(None);
    }
    if settings.sidecar_name != ISTIO_PROXY && Presence::of(spec, ISTIO_PROXY) != Presence::Absent {
        return Decision::Skip(Some(Warning::of_pod(
            Code::OtherInjector,
            "the Pod has Istio's sidecar, which handles the probes",
        )));
    }
    let injecting = matches!(sidecar, Presence::Absent | Presence::Auto) && settings.mode == Mode::Auto;
    if let Some(port) = clash(spec, wishes, injecting, &settings.sidecar_name) {
        let text = format!("containerPort {port} is a port of the proxy");
        return Decision::Unchanged(Warning::of_pod(Code::PortClash, text));
    }
    match sidecar {
        Presence::NoSidecar => {
            let text = format!("container {} is not a sidecar, or not unique", settings.sidecar_name);
            Decision::Unchanged(Warning::of_pod(Code::Sidecar, text))
        }
        Presence::There => Decision::Rewrite,
        Presence::Absent | Presence::Auto if !injecting => {
            let asked = wishes.inject == Some(true);
            let text = format!("{INJECT} is true, but the mode is rewrite-only");
            Decision::Skip(asked.then(|| Warning::of_pod(Code::NoSidecar, text)))
        }
        Presence::Absent | Presence::Auto => match taken(spec, settings) {
            Some(text) => Decision::Unchanged(Warning::of_pod(Code::TemplateName, text)),
            None => Decision::Inject,
        },
    }
}

/// Whether and how a container of the given name exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Presence {
    Absent,
    /// A complete sidecar container.
    There,
    /// A container with `image: auto`, which the injector shall complete.
    Auto,
    /// An init container that is not a native sidecar, or several containers of this name.
    NoSidecar,
}

impl Presence {
    fn of(spec: &Value, name: &str) -> Self {
        let named = |key| pod::list(spec, key).iter().filter(move |container| pod::name(container) == name);
        let mut found = named("initContainers").chain(named("containers"));
        let ends = named("initContainers").any(|container| !pod::is_native_sidecar(container));
        match (found.next(), found.next()) {
            (None, _) => Self::Absent,
            (Some(_), Some(_)) => Self::NoSidecar,
            (Some(_), None) if ends => Self::NoSidecar,
            (Some(container), None) if pod::text(container, "image") == AUTO_IMAGE => Self::Auto,
            (Some(_), None) => Self::There,
        }
    }
}

/// Returns a port of the proxy that another container declares.
fn clash(spec: &Value, wishes: &Wishes, injecting: bool, sidecar: &str) -> Option<u16> {
    let others = ["initContainers", "containers"].into_iter().flat_map(|key| pod::list(spec, key));
    let ports = others
        .filter(|container| pod::name(container) != sidecar)
        .flat_map(|container| pod::list(container, "ports"));
    let tcp = ports.filter(|port| matches!(pod::text(port, "protocol"), "" | "TCP"));
    let mut numbers =
        tcp.filter_map(|port| port["containerPort"].as_u64().and_then(|port| u16::try_from(port).ok()));
    numbers.find(|port| *port == wishes.status_port || injecting && SIDECAR_PORTS.contains(port))
}

/// Returns an error text if a name of the template is already used in the Pod.
fn taken(spec: &Value, settings: &Settings) -> Option<String> {
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
