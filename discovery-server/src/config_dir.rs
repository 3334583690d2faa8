//! Reads the directory of YAML files, and reads it again when its content changes. `documents`
//! decides which objects are in effect.

mod documents;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep};
use tracing::warn;

use discovery::objects::Config;
use documents::LoadedFiles;

/// Interval between two checks of the files.
const POLL: Duration = Duration::from_secs(2);
/// Delay before a changed file is read a second time. The change is applied if both reads return
/// the same content, since the file may be partially written.
const SETTLE_DELAY: Duration = Duration::from_millis(100);
/// File name extensions that are read.
const EXTENSIONS: [&str; 2] = ["yaml", "yml"];

/// The objects in effect, and what is wrong in the files.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configured {
    pub config: Arc<Config>,
    /// Errors such as `groups.yaml:14: document 2: spec.probe.grpc.port: must be between 1 and
    /// 65535, got 0`, sorted by file and position.
    pub errors: Vec<String>,
    /// Warnings in the same format, about documents that are accepted.
    pub warnings: Vec<String>,
}

/// The files of a directory by name, or the error of reading the directory.
type Files = Result<BTreeMap<String, Result<Vec<u8>, String>>, String>;

/// What to read.
#[derive(Clone, Debug)]
pub struct WatchSettings {
    pub directory: PathBuf,
    /// Objects in other namespaces are ignored, unless the set is empty.
    pub namespaces: BTreeSet<String>,
    /// `--allow-empty-config`.
    pub allow_empty: bool,
    /// True if the store contains entries, whose groups and services must be in the directory.
    pub has_stored: bool,
}

/// Reads the directory every 2 s as long as a receiver exists. Receivers are notified of changes
/// only. If the store contains entries, this waits for a directory with files, and `failed_mount`
/// has the error meanwhile: without its services, every Envoy would lose its clusters.
pub async fn watch(
    settings: WatchSettings,
    failed_mount: &watch::Sender<Option<String>>,
) -> watch::Receiver<Configured> {
    let WatchSettings { directory, namespaces, allow_empty, has_stored } = settings;
    let mut documents = LoadedFiles::new(namespaces, allow_empty, has_stored);
    let mut configured;
    loop {
        let first = directory.clone();
        let read = move || {
            let found = documents.checked(files(&first));
            let error = found.as_ref().err().cloned();
            let configured = documents.update(found);
            (documents, configured, error)
        };
        let error;
        (documents, configured, error) = blocking(read).await;
        let error = error.filter(|_| has_stored && !allow_empty);
        if let Some(error) = error.as_ref().filter(|error| failed_mount.borrow().as_ref() != Some(error)) {
            warn!(error, "waiting for the configuration");
        }
        let is_failed = error.is_some();
        failed_mount.send_replace(error);
        if !is_failed {
            break;
        }
        sleep(POLL).await;
    }
    let configured = configured.unwrap_or_default();
    let (sender, receiver) = watch::channel(configured);
    tokio::spawn(async move {
        let mut ticks = interval(POLL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks.tick().await;
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = sender.closed() => return,
            }
            let configured;
            (documents, configured) = poll(directory.clone(), documents).await;
            if let Some(configured) = configured {
                sender.send_replace(configured);
            }
        }
    });
    receiver
}

/// Reads the directory, and applies changes that two reads agree on.
async fn poll(directory: PathBuf, documents: LoadedFiles) -> (LoadedFiles, Option<Configured>) {
    let again = directory.clone();
    let (documents, found) = blocking(move || {
        let found = documents.checked(files(&directory));
        let differs = documents.differs(&found);
        (documents, differs.then_some(found))
    })
    .await;
    let Some(found) = found else { return (documents, None) };
    sleep(SETTLE_DELAY).await;
    blocking(move || {
        let mut documents = documents;
        let second = documents.checked(files(&again));
        let configured = documents.update(documents.merge_reads(found, second));
        (documents, configured)
    })
    .await
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("the blocking task does not panic")
}

/// Validates the directory for `--check`.
pub fn check(directory: &Path) -> Configured {
    LoadedFiles::new(BTreeSet::new(), true, false).update(files(directory)).unwrap_or_default()
}

/// Reads all files in the directory itself. Symbolic links are followed. Names that begin with a
/// dot are ignored, since Kubernetes swaps the link `..data` in mounted volumes.
fn files(directory: &Path) -> Files {
    let failed = |error: io::Error| format!("{}: {error}", directory.display());
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let Some(name) = path.file_name().map(|name| name.to_string_lossy().into_owned()) else { continue };
        let is_wanted =
            path.extension().is_some_and(|ending| EXTENSIONS.iter().any(|wanted| ending == *wanted));
        if !is_wanted || name.starts_with('.') || path.is_dir() {
            continue;
        }
        files.insert(name, serving::files::read(&path).map_err(|error| error.to_string()));
    }
    Ok(files)
}

#[cfg(test)]
mod tests;
