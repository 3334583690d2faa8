//! Reads everything about one Pod: first what needs only its name, then what the Pod refers to.

use std::time::Duration;

use futures_util::future::{OptionFuture, join_all};
use kube::api::ListParams;
use serde_json::Value;
use tokio::join;

use super::api_reader::ApiReader;
use ::explain::requests::{LogRequest, ProbeRequest, Requests};
use ::explain::situation::{Fetched, ProbeAnswer, Situation};
use serving::exit::Failure;

/// How many of the newest lines of the sidecar's log are read.
const SIDECAR_LINES: usize = 1000;
/// How many of the last lines of another container's log are read.
const LINES: usize = 5;
/// Maximum number of events of a Pod.
const EVENTS: u32 = 500;
const PODS: (&str, &str) = ("", "pods");

/// Values that are the same for all Pods of a report.
pub(super) struct PodContext<'a> {
    /// The time of the requests, RFC 3339.
    pub(super) now: &'a str,
    /// The name of the MutatingWebhookConfiguration.
    pub(super) webhook: &'a str,
}

/// Objects that the Pods of a namespace share.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) namespace: Fetched<Value>,
    pub(super) webhook: Fetched<Value>,
}

impl Shared {
    pub(super) async fn read(reader: &ApiReader, context: &PodContext<'_>) -> Self {
        let namespace = format!("/api/v1/namespaces/{}", reader.namespace);
        let webhook = format!(
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{}",
            context.webhook
        );
        let (namespace, webhook) = join!(reader.object(&namespace), reader.object(&webhook));
        Self { namespace, webhook }
    }
}

/// Reads one Pod and what it refers to.
///
/// # Errors
/// Fails if the API server does not respond.
pub(super) async fn read(
    reader: &ApiReader,
    context: &PodContext<'_>,
    name: &str,
) -> Result<Situation, Failure> {
    let path = format!("{}/{name}", reader.path(PODS));
    let field = format!("involvedObject.kind=Pod,involvedObject.name={name}");
    let params = ListParams::default().fields(&field).limit(EVENTS);
    let events = reader.path(("", "events"));
    let (pod, events, shared) =
        join!(reader.first(&path), reader.list(&events, &params), Shared::read(reader, context));
    Ok(complete(reader, context, name, pod?, events, shared).await)
}

/// Reads what a Pod refers to, all at once.
pub(super) async fn complete(
    reader: &ApiReader,
    context: &PodContext<'_>,
    name: &str,
    pod: Fetched<Value>,
    events: Fetched<Vec<Value>>,
    shared: Shared,
) -> Situation {
    let Requests { node, probes, readiness, metrics, sidecar_log, previous_logs } =
        pod.found().map(Requests::of).unwrap_or_default();
    let pods = &reader.path(PODS);
    let node = OptionFuture::from(
        node.map(|node| async move { reader.object(&format!("/api/v1/nodes/{node}")).await }),
    );
    let answers = join_all(probes.into_iter().map(|request| answer(reader, pods, request)));
    let readiness = OptionFuture::from(
        readiness.map(|path| async move { reader.object(&format!("{pods}/{path}")).await }),
    );
    let metrics =
        OptionFuture::from(metrics.map(|path| async move { reader.text(&format!("{pods}/{path}")).await }));
    let sidecar_log = OptionFuture::from(sidecar_log.map(|container| async move {
        let query = format!("container={container}&tailLines={SIDECAR_LINES}&timestamps=true");
        reader.text(&format!("{pods}/{name}/log?{query}")).await
    }));
    let logs = join_all(previous_logs.into_iter().map(|request| log(reader, pods, name, request)));
    let (node, answers, readiness, metrics, sidecar_log, logs) =
        join!(node, answers, readiness, metrics, sidecar_log, logs);
    Situation {
        now: context.now.to_owned(),
        name: name.to_owned(),
        namespace: reader.namespace.clone(),
        pod,
        events,
        namespace_object: shared.namespace,
        node: node.unwrap_or_default(),
        webhook: shared.webhook,
        answers,
        readiness: readiness.unwrap_or_default(),
        metrics: metrics.unwrap_or_default(),
        sidecar_log: sidecar_log.unwrap_or_default(),
        previous_logs: logs.into_iter().collect(),
    }
}

async fn answer(reader: &ApiReader, pods: &str, request: ProbeRequest) -> ProbeAnswer {
    let ProbeRequest { container, kind, path, timeout_seconds } = request;
    let declared = Duration::from_secs(timeout_seconds);
    let (result, milliseconds) = reader.probe(&format!("{pods}/{path}"), declared).await;
    ProbeAnswer { container, kind, result, milliseconds }
}

async fn log(reader: &ApiReader, pods: &str, name: &str, request: LogRequest) -> (String, Fetched<String>) {
    let LogRequest { container, previous } = request;
    let query = format!("container={container}&tailLines={LINES}&previous={previous}");
    let log = reader.text(&format!("{pods}/{name}/log?{query}")).await;
    (container, log)
}
