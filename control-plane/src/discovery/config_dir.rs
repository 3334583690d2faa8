//! The directory of YAML files: read again when the content changes. `documents` is pure and decides what is in force; the rest
//! reads files.

mod documents;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, sleep};

use discovery::objects::Config;
use documents::Documents;

/// How often the files are looked at.
const POLL: Duration = Duration::from_secs(2);
/// A change is taken when a second look, so much later, sees the same: a file may just be being written.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// The largest file, in bytes.
const FILE_BYTES: u64 = 1 << 20;
/// What is read.
const ENDINGS: [&str; 2] = ["yaml", "yml"];

/// What is in force, and what is wrong.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configured {
    /// All objects.
    pub config: Arc<Config>,
    /// As `groups.yaml:14: document 2: spec.probe.grpc.port: must be between 1 and 65535, got 0`, by file and place.
    pub errors: Vec<String>,
    /// The same for what is accepted all the same.
    pub warnings: Vec<String>,
}

/// The files of a directory by name, or why there are none.
type Files = Result<BTreeMap<String, Result<Vec<u8>, String>>, String>;

/// Reads the directory, and again every 2 s, for as long as somebody looks at it. Only changes are told. `namespaces`: all others are
/// left out; empty: all are in.
pub async fn watch(directory: PathBuf, namespaces: BTreeSet<String>) -> watch::Receiver<Configured> {
    let first = directory.clone();
    let first = move || {
        let mut documents = Documents::new(namespaces);
        let configured = documents.update(files(&first));
        (documents, configured)
    };
    let (mut documents, configured) = blocking(first).await;
    let (sender, receiver) = watch::channel(configured.unwrap_or_default());
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
            (documents, configured) = look(directory.clone(), documents).await;
            if let Some(configured) = configured {
                sender.send_replace(configured);
            }
        }
    });
    receiver
}

/// Takes in what has changed, as far as two looks see the same.
async fn look(directory: PathBuf, documents: Documents) -> (Documents, Option<Configured>) {
    let again = directory.clone();
    let (documents, found) = blocking(move || {
        let found = files(&directory);
        let is_news = documents.is_news(&found);
        (documents, is_news.then_some(found))
    })
    .await;
    let Some(found) = found else { return (documents, None) };
    sleep(LOOK_AGAIN).await;
    blocking(move || {
        let mut documents = documents;
        let configured = documents.update(documents.settled(found, files(&again)));
        (documents, configured)
    })
    .await
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.expect("reading does not panic")
}

/// What is wrong in the directory, and what is strange; for `--check`.
pub fn check(directory: &Path) -> Configured {
    Documents::new(BTreeSet::new()).update(files(directory)).unwrap_or_default()
}

/// All files of the directory itself. Links are followed; what begins with a dot is none of ours (Kubernetes swaps `..data`).
fn files(directory: &Path) -> Files {
    let failed = |error: io::Error| format!("{}: {error}", directory.display());
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let Some(name) = path.file_name().map(|name| name.to_string_lossy().into_owned()) else { continue };
        let is_wanted = path.extension().is_some_and(|ending| ENDINGS.iter().any(|wanted| ending == *wanted));
        if !is_wanted || name.starts_with('.') || path.is_dir() {
            continue;
        }
        files.insert(name, bytes(&path));
    }
    Ok(files)
}

/// Pipes and devices are never opened: reading them may have no end.
fn bytes(path: &Path) -> Result<Vec<u8>, String> {
    let text = |error: io::Error| error.to_string();
    let too_large = || format!("larger than {} MiB", FILE_BYTES >> 20);
    let found = fs::metadata(path).map_err(text)?;
    if !found.is_file() {
        return Err("not a regular file".to_owned());
    }
    if found.len() > FILE_BYTES {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(text)?;
    // It may grow meanwhile.
    let length = file.take(FILE_BYTES + 1).read_to_end(&mut bytes).map_err(text)?;
    if length as u64 > FILE_BYTES { Err(too_large()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests;
