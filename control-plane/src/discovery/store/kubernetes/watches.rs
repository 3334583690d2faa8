//! Watches of the three kinds, merged into one stream. Failed watches are restarted indefinitely.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::stream::{BoxStream, SelectAll, select_all};
use futures_util::{Stream, StreamExt as _};
use kube::Client;
use kube::api::{Api, DynamicObject, TypeMeta};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::utils::Backoff;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::Value;

use super::object;

/// Timeout of a watch request in seconds; a new request detects a connection that was lost
/// silently.
const WATCH: u32 = 60;
/// Objects per page of a list response.
const PAGE: u32 = 2000;
/// Backoff before a failed watch is restarted: the first delay, which doubles, and the maximum.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

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
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Group => ("WorkloadGroup", "workloadgroups"),
            Self::Entry => ("WorkloadEntry", "workloadentries"),
            Self::Service => ("ServiceEntry", "serviceentries"),
        }
    }
}

/// Event of a watch.
#[derive(Debug)]
pub(super) enum Seen {
    /// A list begins.
    Listing,
    /// The list contains this object.
    Listed(Value),
    /// The list is complete.
    Complete,
    /// The object was created or changed.
    Is(Value),
    /// The object was deleted; this is its last state.
    Gone(Value),
    /// The watch failed and is restarted automatically.
    Broken(String),
}

/// Event with its kind, and its namespace unless all are watched.
pub(super) type Watched = (Kind, Option<String>, Seen);

/// All watches, merged into one stream.
pub(super) type Watches = SelectAll<BoxStream<'static, Watched>>;

/// A kind, and its namespace unless all are watched.
pub(super) type Place = (Kind, Option<String>);

/// Starts all watches and returns them with the set of their kinds and namespaces. An empty
/// `namespaces` means all.
pub(super) fn watches(client: &Client, namespaces: &[String]) -> (Watches, BTreeSet<Place>) {
    let scopes: Vec<Option<String>> =
        if namespaces.is_empty() { vec![None] } else { namespaces.iter().cloned().map(Some).collect() };
    let of = |kind| scopes.iter().map(move |scope| (kind, scope.clone()));
    let places: BTreeSet<Place> = Kind::ALL.into_iter().flat_map(of).collect();
    let all = places.iter().cloned().map(|(kind, scope)| watch(client.clone(), kind, scope).boxed());
    (select_all(all), places)
}

fn watch(client: Client, kind: Kind, scope: Option<String>) -> impl Stream<Item = Watched> + Send {
    let (word, plural) = kind.words();
    let version = GroupVersionKind::gvk("networking.istio.io", "v1", word);
    let resource = ApiResource::from_gvk_with_plural(&version, plural);
    let api: Api<DynamicObject> = match &scope {
        None => Api::all_with(client, &resource),
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
    };
    let config = watcher::Config::default().timeout(WATCH).page_size(PAGE);
    let events = watcher(api, config).backoff(WatchBackoff(pacing::Backoff::new(BACKOFF.0, BACKOFF.1)));
    events.map(move |event| (kind, scope.clone(), seen(event, &resource)))
}

fn seen(event: watcher::Result<Event<DynamicObject>>, resource: &ApiResource) -> Seen {
    let value = |mut object: DynamicObject| {
        // Items of a list may omit their type.
        object.types.get_or_insert_with(|| TypeMeta {
            api_version: resource.api_version.clone(),
            kind: resource.kind.clone(),
        });
        object::trimmed(serde_json::to_value(object).expect("a DynamicObject serializes to JSON"))
    };
    match event {
        Ok(Event::Init) => Seen::Listing,
        Ok(Event::InitApply(object)) => Seen::Listed(value(object)),
        Ok(Event::InitDone) => Seen::Complete,
        Ok(Event::Apply(object)) => Seen::Is(value(object)),
        Ok(Event::Delete(object)) => Seen::Gone(value(object)),
        Err(error) => Seen::Broken(error.to_string()),
    }
}

/// Backoff with a short maximum, since users wait for changes.
struct WatchBackoff(pacing::Backoff);

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        Some(self.0.next_delay())
    }
}

impl Backoff for WatchBackoff {
    fn reset(&mut self) {
        self.0.reset();
    }
}
