//! The watches of the three kinds, merged into one stream; broken ones are taken up again without end.

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

/// A watch is asked for anew after this, so that a connection that died in silence is noticed.
const WATCH: u32 = 60;
/// Objects in one answer to a list.
const PAGE: u32 = 2000;
/// Waits before a broken watch is taken up again: the first, doubled up to the last.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(5));

/// What is watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// WorkloadGroup.
    Group,
    /// WorkloadEntry.
    Entry,
    /// ServiceEntry.
    Service,
}

impl Kind {
    /// All.
    pub const ALL: [Self; 3] = [Self::Group, Self::Entry, Self::Service];

    /// Kind and plural.
    pub fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Group => ("WorkloadGroup", "workloadgroups"),
            Self::Entry => ("WorkloadEntry", "workloadentries"),
            Self::Service => ("ServiceEntry", "serviceentries"),
        }
    }
}

/// What a watch brought.
#[derive(Debug)]
pub(super) enum Seen {
    /// A list begins.
    Listing,
    /// An object of the list.
    Listed(Value),
    /// The list is complete.
    Complete,
    /// It was made or changed.
    Is(Value),
    /// It was deleted; as it was.
    Gone(Value),
    /// It broke, and goes on by itself.
    Broken(String),
}

/// With its kind, and its namespace if that is not all.
pub(super) type Watched = (Kind, Option<String>, Seen);

/// All of them in one.
pub(super) type Watches = SelectAll<BoxStream<'static, Watched>>;

/// A kind in a namespace, or in all.
pub(super) type Place = (Kind, Option<String>);

/// All of them, and which they are. `namespaces`: none means all.
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
    let events = watcher(api, config).backoff(Doubling::default());
    events.map(move |event| (kind, scope.clone(), seen(event, &resource)))
}

fn seen(event: watcher::Result<Event<DynamicObject>>, resource: &ApiResource) -> Seen {
    let value = |mut object: DynamicObject| {
        // Items of a list need not say what they are.
        object.types.get_or_insert_with(|| TypeMeta {
            api_version: resource.api_version.clone(),
            kind: resource.kind.clone(),
        });
        object::trimmed(serde_json::to_value(object).expect("what came as JSON goes as JSON"))
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

/// Doubled waits up to a bound that users would wait for.
struct Doubling(Duration);

impl Default for Doubling {
    fn default() -> Self {
        Self(BACKOFF.0)
    }
}

impl Iterator for Doubling {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let wait = self.0;
        self.0 = (wait * 2).min(BACKOFF.1);
        Some(wait)
    }
}

impl Backoff for Doubling {
    fn reset(&mut self) {
        *self = Self::default();
    }
}
