//! The files that `inject` and `lint` leave as they are, whatever documents are in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::files::{Source, Sources};
use injector::kustomization::{self, FILE_NAMES, Use};
use injector::skip::Skip;
use injector::yaml_documents::{self, StreamError};

/// Maximum size of a kustomization in bytes.
const LIMIT: u64 = 1 << 20;

/// The files to which kustomizations refer as patches or data.
#[derive(Debug, Default)]
pub(crate) struct References(BTreeMap<PathBuf, Skip>);

impl References {
    /// Reads the kustomizations in the directories of all inputs and in those above them.
    pub(crate) fn read(sources: &Sources) -> Self {
        let files = sources.sources.iter().filter_map(|source| source.path.as_deref());
        let of_files = files.filter_map(|path| fs::canonicalize(path).ok()?.parent().map(Path::to_owned));
        let walked = sources.directories.iter().filter_map(|path| fs::canonicalize(path).ok());
        let mut directories = BTreeSet::new();
        for directory in of_files.chain(walked) {
            let above = directory.ancestors().map(Path::to_owned);
            // The directories above one that is known are known, too.
            for directory in above {
                if !directories.insert(directory) {
                    break;
                }
            }
        }
        let mut references = Self::default();
        for directory in directories {
            for name in FILE_NAMES {
                references.add(&directory, &directory.join(name));
            }
        }
        references
    }

    fn add(&mut self, directory: &Path, file: &Path) {
        let Some(text) = read_limited(file) else { return };
        for document in yaml_documents::read(&text).into_iter().flatten() {
            for (path, used) in kustomization::files(&document.value) {
                let Ok(path) = fs::canonicalize(directory.join(path)) else { continue };
                let kustomization = file.display().to_string();
                self.0.entry(path).or_insert(match used {
                    Use::Patch => Skip::ReferencedPatch(kustomization),
                    Use::Data => Skip::ReferencedData(kustomization),
                });
            }
        }
    }

    /// Returns why a file is not read as a stream of objects.
    pub(crate) fn skip(&self, source: &Source) -> Option<Skip> {
        let path = source.path.as_deref()?;
        if path.file_name().is_some_and(|name| FILE_NAMES.iter().any(|of| name == *of)) {
            return Some(Skip::Kustomization);
        }
        self.0.get(&fs::canonicalize(path).ok()?).cloned()
    }
}

/// Returns the content of a small regular file.
fn read_limited(path: &Path) -> Option<String> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    File::open(path).ok()?.take(LIMIT).read_to_string(&mut text).ok()?;
    Some(text)
}

/// Returns why a file with a document that cannot be parsed is skipped; `None` if that is an error.
/// A file that the user named is expected to be a manifest.
pub(crate) fn skip_unparsable(source: &Source, text: &str, error: &StreamError) -> Option<Skip> {
    match (source.found, text.contains("{{")) {
        (false, _) => None,
        (true, true) => Some(Skip::Template),
        (true, false) => (!has_kind(text)).then(|| Skip::NotAManifest(error.to_string())),
    }
}

/// Returns the line about a document that cannot be parsed.
pub(crate) fn error_line(source: &Source, text: &str, error: &StreamError) -> String {
    let is_template = text.contains("{{");
    let hint = if is_template { "; if it is a template, use the output of helm template" } else { "" };
    format!("{}:{error}{hint}", source.name)
}

/// Returns true if the text sets the kind of an object, at the start of a line or as a key of JSON.
fn has_kind(text: &str) -> bool {
    let is_key = |(at, key): (usize, &str)| text[at + key.len()..].trim_start().starts_with(':');
    text.lines().any(|line| line.trim_start_matches([' ', '{', '"']).starts_with("kind"))
        || text.match_indices("\"kind\"").any(is_key)
}

#[cfg(test)]
mod tests;
