//! Watches of the three kinds, merged into one stream. Failed watches are restarted indefinitely.

use std::collections::BTreeSet;

use futures_util::stream::{self, BoxStream, SelectAll, select_all};
use futures_util::{Stream, StreamExt as _};
use kube::Client;
use kube::api::{Api, DynamicObject, TypeMeta};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::Value;

use super::backoff::ShortBackoff;
use super::object;

/// Timeout of a watch request in seconds; a new request detects a connection that was lost
/// silently.
const WATCH: u32 = 60;
/// Objects per page of a list response.
const PAGE: u32 = 2000;

/// Kind of a watched object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Group,
    Entry,
    Service,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Group, Self::Entry, Self::Service];

    /// Returns the kind and its plural name in URLs.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Group => ("WorkloadGroup", "workloadgroups"),
            Self::Entry => ("WorkloadEntry", "workloadentries"),
            Self::Service => ("ServiceEntry", "serviceentries"),
        }
    }
}

/// Event of a watch.
#[derive(Debug)]
pub(super) enum WatchEvent {
    /// A list begins.
    ListStarted,
    /// The list contains this object.
    ListItem(Value),
    /// The list is complete.
    ListDone,
    /// The object was created or changed.
    Applied(Value),
    /// The object was deleted; this is its last state.
    Deleted(Value),
    /// The watch failed and is restarted automatically.
    Failed(String),
}

/// Event with its kind, and its namespace unless all are watched.
pub(super) type Watched = (Kind, Option<String>, WatchEvent);

/// All watches, merged into one stream.
pub(super) type Watches = SelectAll<BoxStream<'static, Watched>>;

/// A kind, and its namespace unless all are watched.
pub(super) type WatchScope = (Kind, Option<String>);

/// Starts all watches and returns them with the set of their kinds and namespaces. An empty
/// `namespaces` means all.
pub(super) fn watches(client: &Client, namespaces: &[String]) -> (Watches, BTreeSet<WatchScope>) {
    let scopes: Vec<Option<String>> =
        if namespaces.is_empty() { vec![None] } else { namespaces.iter().cloned().map(Some).collect() };
    let of = |kind| scopes.iter().map(move |scope| (kind, scope.clone()));
    let watch_scopes: BTreeSet<WatchScope> = Kind::ALL.into_iter().flat_map(of).collect();
    let all = watch_scopes.iter().cloned().map(|(kind, scope)| watch(client.clone(), kind, scope).boxed());
    (select_all(all), watch_scopes)
}

fn watch(client: Client, kind: Kind, scope: Option<String>) -> impl Stream<Item = Watched> + Send {
    let (name, plural) = kind.names();
    let version = GroupVersionKind::gvk("networking.istio.io", "v1", name);
    let resource = ApiResource::from_gvk_with_plural(&version, plural);
    let api: Api<DynamicObject> = match &scope {
        None => Api::all_with(client, &resource),
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
    };
    let config = watcher::Config::default().timeout(WATCH).page_size(PAGE);
    let events = listed_again(api, config).backoff(ShortBackoff::default());
    events.map(move |event| (kind, scope.clone(), watch_event(event, &resource)))
}

/// Lists again if the API server refuses a watch because its resource version has expired, for which
/// [`watcher()`] only does that if an event says so.
fn listed_again(
    api: Api<DynamicObject>,
    config: watcher::Config,
) -> impl Stream<Item = watcher::Result<Event<DynamicObject>>> + Send {
    let start = move || watcher(api.clone(), config.clone()).boxed();
    stream::unfold(start(), move |mut events| {
        let start = start.clone();
        async move {
            let event = events.next().await?;
            if has_expired(&event) {
                events = start();
            }
            Some((event, events))
        }
    })
}

fn has_expired<T>(event: &watcher::Result<T>) -> bool {
    matches!(event, Err(watcher::Error::WatchStartFailed(kube::Error::Api(status))) if status.code == 410)
}

fn watch_event(event: watcher::Result<Event<DynamicObject>>, resource: &ApiResource) -> WatchEvent {
    let value = |mut object: DynamicObject| {
        // Items of a list may omit their type.
        object.types.get_or_insert_with(|| TypeMeta {
            api_version: resource.api_version.clone(),
            kind: resource.kind.clone(),
        });
        object::trimmed(serde_json::to_value(object).expect("a DynamicObject serializes to JSON"))
    };
    match event {
        Ok(Event::Init) => WatchEvent::ListStarted,
        Ok(Event::InitApply(object)) => WatchEvent::ListItem(value(object)),
        Ok(Event::InitDone) => WatchEvent::ListDone,
        Ok(Event::Apply(object)) => WatchEvent::Applied(value(object)),
        Ok(Event::Delete(object)) => WatchEvent::Deleted(value(object)),
        Err(error) => WatchEvent::Failed(error.to_string()),
    }
}
