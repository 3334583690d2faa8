//! Updates of open pages. The first page starts one task, which queries Envoy's statistics at an
//! interval, and the task ends with the last page.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use serving::page::{Events, event};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::envoy_stats::{self, EnvoyStats};
use super::page_state::PageState;
use super::probe_history::ProbeHistory;
use super::{StatusPage, event_data};
use http_client::admin_client;
use readiness::Readiness;

/// Interval of the queries, and of the events at most. A change appears within a second, with the time
/// for query and event.
const INTERVAL: Duration = Duration::from_millis(750);
/// Timeout of a query while a page is open.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout of the query for a page that is being opened, which must not wait for a busy Envoy.
const FIRST_TIMEOUT: Duration = Duration::from_millis(150);

/// The task publishes its results here.
pub(super) struct Updates {
    events: watch::Sender<Bytes>,
    newest: Option<Arc<PageState>>,
}

impl StatusPage {
    /// Subscribes to the updates, and starts them if no other page is open.
    pub(super) fn subscribe(&self) -> Events {
        let mut updates = self.updates();
        match &*updates {
            Some(Updates { events, .. }) => events.subscribe().into(),
            None => {
                let (sender, events) = watch::channel(Bytes::new());
                *updates = Some(Updates { events: sender, newest: None });
                tokio::spawn(self.clone().update());
                events.into()
            }
        }
    }

    /// Returns the contents if a page is open.
    pub(super) fn newest(&self) -> Option<PageState> {
        self.updates().as_ref()?.newest.as_deref().cloned()
    }

    /// Queries Envoy's statistics once, and returns the contents without a history.
    pub(super) async fn query_once(&self) -> PageState {
        let mut history = ProbeHistory::default();
        let result = self.query(&mut history, FIRST_TIMEOUT).await;
        self.page_state(result.map(|()| &history))
    }

    async fn update(self) {
        let mut history = ProbeHistory::default();
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if self.end_unless_watched() {
                return;
            }
            let result = self.query(&mut history, TIMEOUT).await;
            self.publish(self.page_state(result.map(|()| &history)));
        }
    }

    /// Ends the updates if no page is open.
    fn end_unless_watched(&self) -> bool {
        let mut updates = self.updates();
        let is_watched = updates.as_ref().is_some_and(|updates| updates.events.receiver_count() > 0);
        if !is_watched {
            *updates = None;
        }
        !is_watched
    }

    fn publish(&self, state: PageState) {
        let now = self.0.state.now();
        let mut updates = self.updates();
        let Some(Updates { events, newest }) = &mut *updates else { return };
        if newest.as_deref() != Some(&state) {
            events.send_replace(event("state", event_data(&state, now)));
            *newest = Some(Arc::new(state));
        }
    }

    async fn query(&self, history: &mut ProbeHistory, timeout: Duration) -> Result<(), &'static str> {
        let state = &self.0.state;
        if !state.with_readiness(Readiness::can_request) {
            return Err("Envoy does not run");
        }
        let epoch = state.subscribe().borrow().epoch;
        let response =
            admin_client::text(&self.0.admin, envoy_stats::PATH, envoy_stats::LIMIT, timeout).await;
        let text = response.ok_or("Envoy's admin interface did not answer")?;
        history.update(EnvoyStats::parse(&text), epoch);
        Ok(())
    }

    fn updates(&self) -> std::sync::MutexGuard<'_, Option<Updates>> {
        self.0.updates.lock().expect("nothing panics while it holds this lock")
    }
}
