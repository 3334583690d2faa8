//! Whether a Pod has the sidecar, and if not, why.

use injector::settings::{InjectionMode, STATUS_PORT, Settings, SidecarMode};
use injector::template::{SIDECAR_NAME, Template};
use injector::warning::Code as WarningCode;
use injector::{Cause, PodContext, STATUS_ANNOTATION, SkipReason, WARNINGS_ANNOTATION, pod};
use serde::Serialize;
use serde_json::Value;

use crate::clock::Timestamp;
use crate::container::{Container, Role, list};
use crate::selector::selects;
use crate::situation::{Fetched, Situation};
use crate::windows;

const NAMESPACE_LABEL: &str = "app-health.io/injection";
/// The annotation that Istio's injector adds to each Pod that it changes.
pub(crate) const ISTIO_STATUS: &str = "sidecar.istio.io/status";
const INJECT: &str = "sidecar.istio.io/inject";
/// Namespaces of which the shipped webhook configuration excludes all Pods.
const NEVER: [&str; 4] = ["kube-system", "kube-public", "kube-node-lease", "app-health-system"];

/// Whether a Pod was injected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Injection {
    pub injected: bool,
    /// Why, in one sentence.
    pub text: String,
    /// What to do to have it injected; empty if it is injected.
    pub advice: String,
    /// The warnings of the injector, from the Pod's annotation.
    pub warnings: Vec<String>,
}

pub(crate) fn read(situation: &Situation, pod: &Value, containers: &[Container<'_>]) -> Injection {
    let annotations = &pod["metadata"]["annotations"];
    let warnings = annotations[WARNINGS_ANNOTATION].as_str();
    let warnings = warnings.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    if let Some(sidecar) = containers.iter().find(|container| container.role == Role::Proxy) {
        let status: Option<Value> =
            annotations[STATUS_ANNOTATION].as_str().and_then(|text| serde_json::from_str(text).ok());
        let text = match status {
            Some(status) => {
                let word = |key: &str| status[key].as_str().unwrap_or("unknown").to_owned();
                format!("injected by version {} as a {} sidecar", word("version"), word("mode"))
            }
            None if annotations[ISTIO_STATUS].is_string() => {
                format!("Istio's injector has added the sidecar {}", sidecar.name)
            }
            None => format!("the Pod declares its sidecar {} itself", sidecar.name),
        };
        return Injection { injected: true, text, advice: String::new(), warnings };
    }
    let (text, advice) = why_not(situation, pod);
    Injection { injected: false, text, advice, warnings }
}

/// Returns the first reason that applies: of the Pod itself, of the webhook's configuration, of the
/// time at which the Pod was created.
fn why_not(situation: &Situation, pod: &Value) -> (String, String) {
    of_pod(situation, pod)
        .or_else(|| of_configuration(situation, pod))
        .unwrap_or_else(|| of_time(situation, pod))
}

fn pair(text: impl Into<String>, advice: impl Into<String>) -> Option<(String, String)> {
    Some((text.into(), advice.into()))
}

fn of_pod(situation: &Situation, pod: &Value) -> Option<(String, String)> {
    let context = PodContext { namespace: &situation.namespace, ..PodContext::default() };
    let cause = settings().and_then(|settings| injector::apply(pod, context, &settings).ok()?.cause);
    let was_injected = pod::annotation(pod, STATUS_ANNOTATION).is_some();
    let node = situation.node.found();
    match cause {
        Some(Cause::Skipped(SkipReason::MirrorPod)) => pair(
            "kubelet creates this static Pod without the API server, so no webhook sees it",
            "inject its file with app-health inject",
        ),
        Some(Cause::Skipped(SkipReason::IgnoredNamespace(namespace))) => pair(
            format!("Pods of the namespace {namespace} are never injected"),
            "run the application in another namespace",
        ),
        _ if was_injected => pair(
            "the Pod was injected, but its sidecar was removed afterwards",
            "inject the original manifest again",
        ),
        Some(Cause::Skipped(SkipReason::Disabled(path))) => {
            let place = if path == pod::label_path(INJECT) { "label" } else { "annotation" };
            pair(
                format!("the Pod has the {place} {INJECT}: \"false\""),
                format!("remove the {place} from the Pod template"),
            )
        }
        Some(Cause::Skipped(SkipReason::Windows(field))) => of_windows(&field),
        _ if let Some(field) = node.and_then(windows::node_field) => of_windows(&field),
        Some(Cause::Skipped(SkipReason::HostNetwork)) => pair(
            "the Pod uses hostNetwork, so the status port would be a port of the node",
            "remove hostNetwork; such a Pod keeps its probes",
        ),
        Some(Cause::Skipped(reason @ SkipReason::OtherInjector)) => {
            of_injector(&reason.to_string(), WarningCode::OtherInjector)
        }
        Some(Cause::Skipped(SkipReason::AwaitsIstioInjector)) => pair(
            "the Pod asks Istio's injector for its sidecar with app-health-agent, and Istio has not added it",
            "enable Istio's injection for the namespace; if an annotation of the Pod names the template, add that to istiod's values",
        ),
        Some(Cause::Refused(warning)) => of_injector(&warning.text, warning.code),
        Some(Cause::Skipped(SkipReason::RewriteOnly { .. })) | None => None,
    }
}

fn of_injector(text: &str, code: WarningCode) -> Option<(String, String)> {
    pair(
        format!("the injector left the Pod unchanged: {text} ({})", code.word()),
        "change the Pod template as the message says",
    )
}

fn of_windows(field: &str) -> Option<(String, String)> {
    pair(format!("the Pod runs on Windows ({field}), for which there is no sidecar"), "")
}

/// Returns the default settings of the webhook.
fn settings() -> Option<Settings> {
    Some(Settings {
        sidecar_name: SIDECAR_NAME.to_owned(),
        mode: InjectionMode::Auto,
        template: Template::built_in(SIDECAR_NAME, None).ok()?,
        sidecar_mode: SidecarMode::Native,
        hold: true,
        rewrite_probes: true,
        status_port: STATUS_PORT,
        ignored_namespaces: NEVER.map(str::to_owned).to_vec(),
    })
}

fn of_configuration(situation: &Situation, pod: &Value) -> Option<(String, String)> {
    let namespace = situation.namespace_object.found();
    let label = namespace
        .map(|namespace| namespace["metadata"]["labels"][NAMESPACE_LABEL].as_str() == Some("enabled"));
    let asks = pod["metadata"]["labels"][INJECT] == "true";
    let opt_in = || {
        let text = format!(
            "neither the namespace {} has the label {NAMESPACE_LABEL}: enabled, nor the Pod the label {INJECT}: \"true\"",
            situation.namespace
        );
        pair(
            text,
            format!(
                "kubectl label namespace {} {NAMESPACE_LABEL}=enabled, and create the Pod again",
                situation.namespace
            ),
        )
    };
    match &situation.webhook {
        Fetched::NotFound => {
            return pair(
                "the webhook is not installed: there is no such MutatingWebhookConfiguration",
                "install it, or use app-health inject; --webhook-config names another one",
            );
        }
        Fetched::Found(webhook)
            if namespace.is_some_and(|namespace| is_selected(webhook, namespace, pod)) =>
        {
            return None;
        }
        _ => {}
    }
    match label {
        Some(false) if !asks => opt_in(),
        None if !asks => pair(
            "the Pod has no label itself, and the labels of its namespace could not be read",
            "grant the permission that is named below",
        ),
        Some(_) if situation.webhook.found().is_some() => pair(
            "no entry of the webhook's configuration selects the Pod",
            "compare its namespaceSelector and objectSelector with the labels",
        ),
        _ => None,
    }
}

/// Returns true if an entry of the webhook's configuration selects the Pod.
fn is_selected(webhook: &Value, namespace: &Value, pod: &Value) -> bool {
    list(&webhook["webhooks"]).iter().any(|entry| {
        selects(&entry["namespaceSelector"], &namespace["metadata"]["labels"])
            && selects(&entry["objectSelector"], &pod["metadata"]["labels"])
    })
}

fn of_time(situation: &Situation, pod: &Value) -> (String, String) {
    let created =
        |object: &Value| object["metadata"]["creationTimestamp"].as_str().and_then(Timestamp::parse);
    let pod_created = created(pod);
    let is_before = |other: Option<Timestamp>| pod_created.zip(other).is_some_and(|(pod, other)| pod < other);
    let again = "create the Pod again, for example with kubectl rollout restart".to_owned();
    if is_before(situation.webhook.found().and_then(created)) {
        return ("the Pod is older than the webhook".to_owned(), again);
    }
    if is_before(situation.namespace_object.found().and_then(labelled)) {
        return ("the Pod is older than the label of its namespace".to_owned(), again);
    }
    let entries = situation.webhook.found().map(|webhook| list(&webhook["webhooks"])).unwrap_or_default();
    if entries.iter().any(|entry| entry["failurePolicy"] == "Ignore") {
        return (
            "the webhook selects the Pod, but did not change it; with failurePolicy: Ignore the API server creates Pods without it while it does not answer".to_owned(),
            "create the Pod again, and set failurePolicy: Fail".to_owned(),
        );
    }
    if entries.is_empty() {
        return (
            "the reason is not known, because the webhook's configuration could not be read".to_owned(),
            "grant the permission that is named below".to_owned(),
        );
    }
    (
        "the webhook selects the Pod, but did not change it".to_owned(),
        "read the log of the webhook in app-health-system, and create the Pod again".to_owned(),
    )
}

/// Returns when the label of the namespace was last written, by the managers of its fields.
fn labelled(namespace: &Value) -> Option<Timestamp> {
    let key = format!("f:{NAMESPACE_LABEL}");
    let managers = list(&namespace["metadata"]["managedFields"]).iter();
    let own = managers.filter(|manager| manager["fieldsV1"]["f:metadata"]["f:labels"].get(&key).is_some());
    own.filter_map(|manager| manager["time"].as_str().and_then(Timestamp::parse)).max()
}
