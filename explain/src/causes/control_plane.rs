//! What the agent knows of its control plane, and which agent runs in a mesh of Istio, by its metrics.

use injector::{ISTIO_AGENT_LABEL, ISTIO_PROXY, pod};
use serde_json::Value;

use crate::clock::age;
use crate::container::list;
use crate::finding::{Code, Finding};
use crate::injection::ISTIO_STATUS;
use crate::metrics::{Sample, samples};
use crate::view::View;

/// A certificate that expires within this time, in seconds, and cannot be renewed.
const SOON: u64 = 3600;
const AGENT: &str = "app-health-agent";

pub(super) fn find(view: &View<'_>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = unchanged(view).into_iter().collect();
    let Some(text) = view.situation.metrics.found().filter(|text| !text.is_empty()) else {
        return findings;
    };
    let of = |name: &str| samples(text).filter(move |sample| sample.name == name).collect::<Vec<_>>();
    findings.extend(istios_agent(view, !of("app_health_agent_build_info").is_empty()));
    let is_stale = of("app_health_agent_xds_stale_seconds").iter().any(|sample| sample.value > 0);
    // An agent without a control plane has the gauge too, and connects to none.
    let has_tried = of("app_health_agent_discovery_connects_total").iter().any(|sample| sample.value > 0);
    let is_connected = of("app_health_agent_discovery_connected").iter().any(|sample| sample.value > 0);
    let confirmed = of("app_health_agent_xds_last_good_age_seconds").first().map_or(0, |sample| sample.value);
    findings.extend(unreachable(is_stale, has_tried && !is_connected, confirmed));
    findings.extend(expiring(
        &of("istio_agent_cert_expiry_seconds"),
        &of("istio_agent_num_failed_outgoing_requests"),
    ));
    let responses = of("app_health_agent_xds_responses_total");
    let rejected = responses.iter().filter(|sample| sample.label("result") == "rejected" && sample.value > 0);
    findings.extend(rejected.map(|sample| {
        Finding::note(
            Code::ControlPlane,
            format!(
                "configuration of the type {} was refused, so that a policy may be missing in Envoy",
                sample.label("type")
            ),
            "the log of the sidecar names what is not supported",
        )
    }));
    let secrets = of("app_health_agent_xds_refused_secrets_total");
    findings.extend(secrets.iter().filter(|sample| sample.value > 0).map(|sample| refused_secret(sample)));
    findings.into_iter().map(|finding| with_container(view, finding)).collect()
}

fn with_container(view: &View<'_>, finding: Finding) -> Finding {
    match view.sidecar_container() {
        Some(container) => finding.about(container.name),
        None => finding,
    }
}

/// `confirmed` is the time in seconds since a control plane has confirmed the configuration, 0 if none ever has.
fn unreachable(is_stale: bool, is_disconnected: bool, confirmed: u64) -> Option<Finding> {
    let mut text = match () {
        () if is_stale => {
            "Envoy uses a stored configuration, which no control plane has confirmed".to_owned()
        }
        () if is_disconnected => {
            "the agent is not connected to its control plane, so that changes do not arrive".to_owned()
        }
        () => return None,
    };
    if confirmed > 0 {
        let age = age(confirmed);
        text +=
            &if is_stale { format!(" for {age}") } else { format!("; the last confirmation is {age} old") };
    }
    Some(Finding::note(Code::ControlPlane, text, "the log of the sidecar says why it does not reach it"))
}

fn refused_secret(sample: &Sample<'_>) -> Finding {
    let (text, advice) = match sample.label("reason") {
        "unknown" => (
            "Envoy has requested a secret that the agent does not know, and waits for it",
            "the log of the sidecar names it: a DestinationRule or a Gateway refers to it",
        ),
        _ => (
            "Envoy has rejected a certificate or CA certificates",
            "the log of the sidecar has Envoy's reason",
        ),
    };
    Finding::note(Code::ControlPlane, text, advice)
}

/// A certificate is renewed after half of its lifetime, so one that expires soon is wrong only if renewals fail.
fn expiring(expiries: &[Sample<'_>], failed: &[Sample<'_>]) -> Option<Finding> {
    let own = expiries.iter().find(|sample| sample.label("resource_name") == "default")?;
    let fails = failed.iter().any(|sample| sample.value > 0);
    (own.value < SOON && fails).then(|| {
        Finding::note(
            Code::ControlPlane,
            "the certificate of the Pod in the mesh expires within an hour, and its renewal fails",
            "the log of the sidecar says why; afterwards other Pods refuse its connections",
        )
    })
}

/// A label chooses our agent, but the API server has not changed the Pod.
fn unchanged(view: &View<'_>) -> Option<Finding> {
    let sidecar = view.containers.iter().find(|container| container.name == ISTIO_PROXY)?.value;
    // A gateway has other arguments; a command is that of the user, or of the policy.
    let is_stock =
        sidecar["command"].is_null() && list(&sidecar["args"]).iter().any(|word| word == "sidecar");
    if pod::annotation(view.pod, ISTIO_STATUS).is_none() || !is_stock {
        return None;
    }
    let label = |object: &Value| object["metadata"]["labels"][ISTIO_AGENT_LABEL].as_str().map(str::to_owned);
    let namespace = view.situation.namespace_object.found().and_then(label);
    let (object, value) =
        label(view.pod).map(|value| ("it", value)).or(namespace.map(|value| ("its namespace", value)))?;
    (value == "enabled").then(|| {
        Finding::note(
            Code::ControlPlane,
            format!("the Pod has Istio's agent, although {object} has the label {ISTIO_AGENT_LABEL}: enabled"),
            "create the Pod again; if it stays so, the policy of the chart app-health-istio is not installed or fails",
        )
    })
}

/// The agent executes Istio's for what it does not support, and then has none of its own metrics.
fn istios_agent(view: &View<'_>, is_ours: bool) -> Option<Finding> {
    let command = view.sidecar_container()?.value["command"][0].as_str()?;
    if is_ours || command.rsplit('/').next() != Some(AGENT) {
        return None;
    }
    let log = view.situation.sidecar_log.found().map(String::as_str).unwrap_or_default();
    let said = log.lines().filter_map(|line| line.split_once(&format!("{AGENT}: ")));
    let reason =
        said.filter_map(|(_, said)| said.split_once("; executing ")).map(|(reason, _)| reason).next();
    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
    Some(Finding::note(
        Code::ControlPlane,
        format!("Istio's agent runs in the place of {AGENT}{reason}"),
        "docs/istio.md lists what is left to Istio's agent",
    ))
}
