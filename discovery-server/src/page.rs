//! The status page on the monitoring port: `GET /` with the first machines as a plain table, and
//! `GET /events` with all machines and their changes as server-sent events. While no page is open,
//! nothing is computed.

mod overview;
mod rows;
mod updates;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serving::http_server::Response;
use serving::page::{self, EventStreams, render, too_many_streams};
use tokio_util::sync::CancellationToken;

use super::registry::Handle;
use super::server::Shared;
use discovery::view::RegistryView;
use overview::Overview;
use updates::{PageEvents, Updates};

/// The page with its style and script. The server replaces [`CONTENTS`].
const PAGE: &str = include_str!("page/page.html");
const CONTENTS: &str = "<!--contents-->";
/// Content-Security-Policy of [`PAGE`], from the build script.
const POLICY: &str = include_str!(concat!(env!("OUT_DIR"), "/page_policy.txt"));
/// Maximum number of pages that are open at the same time.
const STREAMS: usize = 8;

#[derive(Clone)]
pub struct StatusPage(Arc<Inner>);

struct Inner {
    /// Name of this instance.
    instance: String,
    store: &'static str,
    streams: EventStreams,
    /// The updates for all open pages; `None` while no page is open.
    updates: Mutex<Option<Updates>>,
    /// Cancelled when the server ends.
    closing: CancellationToken,
}

/// The sources of the data that the page shows.
#[derive(Clone)]
pub struct PageSources {
    pub registry: Handle,
    pub shared: Arc<Shared>,
}

impl StatusPage {
    pub fn new(instance: String, store: &'static str, closing: CancellationToken) -> Self {
        let (streams, updates) = (EventStreams::new(STREAMS), Mutex::default());
        Self(Arc::new(Inner { instance, store, streams, updates, closing }))
    }

    /// Returns the page with the current numbers and the first machines, which the script replaces.
    pub async fn html(&self, sources: &PageSources) -> Response {
        let view = sources.registry.view().await;
        page::response(html(&self.overview(&view, sources), &view), POLICY)
    }

    /// Returns all machines and their changes as a stream of events; 503 if too many pages are open.
    pub fn events(&self, sources: PageSources) -> Response {
        match self.0.streams.take() {
            Some(permit) => permit.stream(self.subscribe(sources), self.0.closing.clone()),
            None => too_many_streams(),
        }
    }

    fn overview(&self, view: &RegistryView, sources: &PageSources) -> Overview {
        let degraded = sources.registry.degradations().into_iter();
        let degraded = degraded.chain(sources.shared.degradation()).collect();
        Overview::new(&self.0.instance, self.0.store, view, degraded, sources.shared.clients())
    }

    fn subscribe(&self, sources: PageSources) -> PageEvents {
        updates::subscribe(self, sources)
    }
}

fn html(overview: &Overview, view: &RegistryView) -> String {
    let (before, after) = PAGE.split_once(CONTENTS).expect("a test renders the page");
    let tables: String = overview.tables(view).iter().map(|table| render(table, Duration::ZERO)).collect();
    format!("{before}<div id=\"plain\">{tables}</div>{after}")
}

#[cfg(test)]
mod tests;
