//! The status page of the agent: `GET /` on the local port, and `GET /events` with its changes as
//! server-sent events. `PageState` says what it shows; the module `updates` queries Envoy's
//! statistics while a page is open.

mod envoy_stats;
mod page_state;
mod probe_history;
mod updates;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use serving::http_server::Response;
use serving::page::{self, EventStreams, escape, render, too_many_streams};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::machine_view::MachineView;
use address::HttpUrl;
use agent_state::state::AgentState;
use envoy_process::envoy_files::DebugInfo;
use page_state::{PageState, Sources};
use probe_history::ProbeHistory;
use updates::Updates;

/// The page with its style and script. The server replaces [`CONTENTS`].
const PAGE: &str = include_str!("page/page.html");
const CONTENTS: &str = "<!--contents-->";
/// Content-Security-Policy of [`PAGE`], from the build script.
const POLICY: &str = include_str!(concat!(env!("OUT_DIR"), "/page_policy.txt"));
/// Maximum number of pages that are open at the same time.
const STREAMS: usize = 4;

/// Names and values of settings.
pub type Configuration = Arc<[(&'static str, String)]>;

#[derive(Clone)]
pub struct StatusPage(Arc<Inner>);

struct Inner {
    state: Arc<AgentState>,
    debug_info: watch::Receiver<DebugInfo>,
    /// URL of Envoy's admin interface; its path is ignored.
    admin: HttpUrl,
    configuration: Configuration,
    vm: Option<Arc<dyn MachineView>>,
    streams: EventStreams,
    /// The updates for all open pages; `None` while no page is open.
    updates: Mutex<Option<Updates>>,
    /// Cancelled when the agent closes its servers.
    closing: CancellationToken,
}

impl StatusPage {
    pub fn new(
        state: Arc<AgentState>,
        debug_info: watch::Receiver<DebugInfo>,
        admin: HttpUrl,
        configuration: Configuration,
        vm: Option<Arc<dyn MachineView>>,
        closing: CancellationToken,
    ) -> Self {
        let (streams, updates) = (EventStreams::new(STREAMS), Mutex::default());
        Self(Arc::new(Inner { state, debug_info, admin, configuration, vm, streams, updates, closing }))
    }

    /// Returns the page with the current state as plain tables, which the script then updates.
    pub async fn html(&self) -> Response {
        let state = match self.newest() {
            Some(state) => state,
            None => self.query_once().await,
        };
        page::response(html(&state, self.0.state.now()), POLICY)
    }

    /// Returns the changes of the page as a stream of events; 503 if too many pages are open.
    pub fn events(&self) -> Response {
        match self.0.streams.take() {
            Some(permit) => permit.stream(self.subscribe(), self.0.closing.clone()),
            None => too_many_streams(),
        }
    }

    fn page_state(&self, probes: Result<&ProbeHistory, &'static str>) -> PageState {
        let Inner { state, debug_info, configuration, vm, .. } = &*self.0;
        let debug_info = debug_info.borrow().clone();
        let snapshot = state.subscribe().borrow().clone();
        PageState::new(Sources {
            snapshot: &snapshot,
            stale: state.stale(),
            processes: &state.process_events(),
            filter: debug_info.filter,
            declared: &debug_info.probes,
            probes,
            configuration,
            workload: vm.as_ref().map_or_else(Vec::new, |vm| vm.tables()),
        })
    }
}

fn html(state: &PageState, now: Duration) -> String {
    let (before, after) = PAGE.split_once(CONTENTS).expect("a test renders the page");
    let PageState { summary, tone, tables } = state;
    let tables: String = tables.iter().map(|table| render(table, now)).collect();
    let tone = tone.word();
    format!(
        "{before}<p id=\"summary\" role=\"status\" class=\"{tone}\">{}</p><div id=\"tables\">{tables}</div>{after}",
        escape(summary)
    )
}

/// Encodes the data of an event. `now` is the time since the agent's start.
fn event_data(state: &PageState, now: Duration) -> String {
    let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
    json!({"now": now, "state": state}).to_string()
}

#[cfg(test)]
mod tests;
