//! Updates of open pages. The first page starts one task, which reads the registry at most twice a
//! second, and the task ends with the last page.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use serde_json::value::to_value;
use serving::page::{EventSource, event};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::overview::Overview;
use super::rows::{Cursor, Rows};
use super::{PageSources, StatusPage};

/// Minimum pause between two reads of the registry.
const PAUSE: Duration = Duration::from_millis(500);
/// The pause is at least this multiple of the time that a read took, so that pages take at most a
/// small share of the registry's time.
const READ_SHARE: u32 = 20;

/// The task publishes its results here.
pub(super) struct Updates {
    contents: Arc<Mutex<Contents>>,
    /// Increases with each change of the contents.
    version: watch::Sender<u64>,
}

#[derive(Default)]
struct Contents {
    rows: Rows,
    overview: Option<Overview>,
    /// Version in which the overview last changed.
    overview_version: u64,
}

/// The events of one page: everything that it does not have yet.
pub(super) struct PageEvents {
    contents: Arc<Mutex<Contents>>,
    version: watch::Receiver<u64>,
    cursor: Cursor,
    overview_version: u64,
}

/// Subscribes to the updates, and starts them if no other page is open.
pub(super) fn subscribe(page: &StatusPage, sources: PageSources) -> PageEvents {
    let mut updates = page.updates();
    let (contents, version) = match &*updates {
        Some(Updates { contents, version }) => (contents.clone(), version.subscribe()),
        None => {
            let (contents, (version, receiver)) = (Arc::<Mutex<Contents>>::default(), watch::channel(0));
            *updates = Some(Updates { contents: contents.clone(), version });
            tokio::spawn(page.clone().update(sources, contents.clone()));
            (contents, receiver)
        }
    };
    PageEvents { contents, version, cursor: Cursor::default(), overview_version: 0 }
}

impl StatusPage {
    async fn update(self, sources: PageSources, contents: Arc<Mutex<Contents>>) {
        loop {
            if self.end_unless_watched() {
                return;
            }
            let started = Instant::now();
            let view = sources.registry.view().await;
            let overview = self.overview(&view, &sources);
            let is_changed = {
                let mut contents = lock(&contents);
                let is_changed = contents.rows.update(view.workloads);
                let is_new = contents.overview.as_ref() != Some(&overview);
                if is_new {
                    contents.overview = Some(overview);
                    contents.overview_version += 1;
                }
                is_changed || is_new
            };
            if let Some(Updates { version, .. }) = &*self.updates()
                && is_changed
            {
                version.send_modify(|version| *version += 1);
            }
            sleep(PAUSE.max(started.elapsed() * READ_SHARE)).await;
        }
    }

    /// Ends the updates if no page is open.
    fn end_unless_watched(&self) -> bool {
        let mut updates = self.updates();
        let is_watched = updates.as_ref().is_some_and(|updates| updates.version.receiver_count() > 0);
        if !is_watched {
            *updates = None;
        }
        !is_watched
    }

    fn updates(&self) -> MutexGuard<'_, Option<Updates>> {
        lock(&self.0.updates)
    }
}

impl EventSource for PageEvents {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(event) = self.missing() {
                return Some(event);
            }
            self.version.changed().await.ok()?;
        }
    }
}

impl PageEvents {
    /// Returns an event with a part of what the page lacks.
    fn missing(&mut self) -> Option<Bytes> {
        let contents = lock(&self.contents);
        if self.overview_version != contents.overview_version {
            self.overview_version = contents.overview_version;
            let overview = to_value(&contents.overview).expect("the overview is JSON");
            return Some(event("overview", overview));
        }
        contents.rows.next_part(&mut self.cursor).map(|part| event("machines", part))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics while it holds this lock")
}
