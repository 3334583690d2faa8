//! Reads a workload, its ReplicaSets, its Pods and their events.

use futures_util::StreamExt as _;
use futures_util::stream;
use kube::api::ListParams;
use serde_json::Value;
use tokio::join;

use super::api_reader::ApiReader;
use super::pod::{self, PodContext, Shared};
use ::explain::WorkloadSituation;
use ::explain::object::{Kind, ObjectName};
use ::explain::selector;
use ::explain::situation::{Fetched, Situation};
use serving::exit::Failure;

/// How many Pods are looked at, those that are not ready first.
const PODS: usize = 50;
/// Maximum number of Pods that are read at the same time.
const CONCURRENT: usize = 8;
/// Maximum number of events of the namespace.
const EVENTS: u32 = 5000;

/// Reads a workload and everything that its report needs.
///
/// # Errors
/// Fails if the API server does not respond.
pub(super) async fn read(
    reader: &ApiReader,
    context: &PodContext<'_>,
    object: ObjectName,
) -> Result<WorkloadSituation, Failure> {
    let path = format!("{}/{}", reader.path(object.kind.resource()), object.name);
    let value = reader.first(&path).await?;
    let Some(workload) = value.found() else {
        let namespace = reader.namespace.clone();
        let (replica_sets, pods, events) =
            (Fetched::NotRequested, Fetched::NotRequested, Fetched::NotRequested);
        return Ok(WorkloadSituation { object, namespace, value, replica_sets, pods, omitted: 0, events });
    };
    let selected = ListParams::default().labels(&selector::query(&workload["spec"]["selector"]));
    let pods = reader.path(Kind::Pod.resource());
    let (events_path, events_params) = (reader.path(("", "events")), ListParams::default().limit(EVENTS));
    let (pods, replica_sets, events, shared) = join!(
        reader.list(&pods, &selected),
        replica_sets(reader, object.kind, &selected),
        reader.list(&events_path, &events_params),
        Shared::read(reader, context),
    );
    let replica_sets: Fetched<Vec<Value>> =
        map(replica_sets, |sets| sets.into_iter().filter(|set| is_owned(set, workload)).collect());
    let owners: Vec<&Value> = match replica_sets.found() {
        Some(sets) => sets.iter().collect(),
        None if object.kind == Kind::Deployment => Vec::new(),
        None => vec![workload],
    };
    // Without the ReplicaSets only the selector says which Pods belong to a Deployment.
    let is_own = |pod: &Value| {
        owners.is_empty() && replica_sets.found().is_none() || owners.iter().any(|owner| is_owned(pod, owner))
    };
    let mut omitted = 0;
    let pods = match pods {
        Fetched::Found(pods) => {
            let mut own: Vec<Value> = pods.into_iter().filter(is_own).collect();
            own.sort_by_key(is_ready);
            omitted = own.len().saturating_sub(PODS);
            own.truncate(PODS);
            Fetched::Found(complete(reader, context, own, &events, &shared).await)
        }
        other => map(other, |_| Vec::new()),
    };
    let own_events = map(events, |events| {
        let is_about =
            |event: &Value| owners.iter().copied().chain([workload]).any(|owner| is_about(event, owner));
        events.into_iter().filter(is_about).collect()
    });
    let namespace = reader.namespace.clone();
    Ok(WorkloadSituation {
        object,
        namespace,
        value: value.clone(),
        replica_sets: replica_sets.clone(),
        pods,
        omitted,
        events: own_events,
    })
}

async fn replica_sets(reader: &ApiReader, kind: Kind, selected: &ListParams) -> Fetched<Vec<Value>> {
    match kind {
        Kind::Deployment => reader.list(&reader.path(Kind::ReplicaSet.resource()), selected).await,
        _ => Fetched::NotRequested,
    }
}

/// Reads what the Pods refer to, a few Pods at a time, in their order.
async fn complete(
    reader: &ApiReader,
    context: &PodContext<'_>,
    pods: Vec<Value>,
    events: &Fetched<Vec<Value>>,
    shared: &Shared,
) -> Vec<Situation> {
    let situations = pods.into_iter().map(|pod| async move {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let own =
            map(events.clone(), |events| events.into_iter().filter(|event| is_about(event, &pod)).collect());
        pod::complete(reader, context, &name, Fetched::Found(pod), own, shared.clone()).await
    });
    stream::iter(situations).buffered(CONCURRENT).collect().await
}

fn map<T, U>(fetched: Fetched<T>, change: impl FnOnce(T) -> U) -> Fetched<U> {
    match fetched {
        Fetched::Found(value) => Fetched::Found(change(value)),
        Fetched::NotRequested => Fetched::NotRequested,
        Fetched::NotFound => Fetched::NotFound,
        Fetched::Forbidden => Fetched::Forbidden,
        Fetched::Failed(error) => Fetched::Failed(error),
    }
}

fn uid(object: &Value) -> &str {
    object["metadata"]["uid"].as_str().unwrap_or_default()
}

fn is_owned(object: &Value, owner: &Value) -> bool {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners.into_iter().flatten().any(|reference| reference["uid"] == uid(owner))
}

fn is_about(event: &Value, object: &Value) -> bool {
    event["involvedObject"]["uid"] == uid(object)
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions
        .into_iter()
        .flatten()
        .any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}
