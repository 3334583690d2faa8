//! Files that are read again and again.

use std::path::Path;
use std::sync::Arc;

use serving::watched::Watched;
use tokio::sync::watch;
use tracing::{debug, info, warn};

/// What files contain; `None` until it could be used.
pub(crate) type Content<T> = watch::Receiver<Option<Arc<T>>>;

/// Reads files now and every 5 seconds, until the result is dropped, and compares their content, so that no change of a
/// link or a directory is missed. Content that cannot be used changes nothing. `name` is that of the content in the log. Must
/// be called in a runtime.
pub(crate) fn follow<C, T>(
    name: String,
    read: impl Fn() -> Result<C, String> + Send + 'static,
    parse: impl Fn(&C) -> Result<T, String> + Send + 'static,
) -> Content<T>
where
    C: PartialEq + Send + 'static,
    T: Send + Sync + 'static,
{
    let parse = move |content: &Option<C>| match content {
        Some(content) => parse(content),
        None => Err("not read yet".to_owned()),
    };
    let mut files = Watched::new(None, move || read().map(Some), parse);
    let (sender, content) = watch::channel(None);
    let publish = move |sender: &watch::Sender<_>, found: Result<T, String>| match found {
        Ok(found) => match sender.send_replace(Some(Arc::new(found))) {
            None => debug!(name, "files read"),
            Some(_) => info!(name, "files changed"),
        },
        Err(error) => warn!(name, error, "files not read, keeping the previous content"),
    };
    if let Some(found) = files.poll() {
        publish(&sender, found);
    }
    tokio::spawn(async move {
        loop {
            let found = tokio::select! {
                found = files.changed() => found,
                () = sender.closed() => return,
            };
            publish(&sender, found);
        }
    });
    content
}

/// Reads a text of at most 1 MiB.
pub(crate) fn read(file: &Path) -> Result<String, String> {
    let content = serving::files::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
    String::from_utf8(content).map_err(|_| format!("{}: not UTF-8", file.display()))
}
