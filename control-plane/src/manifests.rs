//! The files that `inject` and `lint` leave as they are, whatever documents are in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::files::{Source, Sources};
use injector::kustomization::{self, FILE_NAMES, Use};
use injector::skip::Skip;
use injector::yaml_documents::{self, StreamError};
use serde_json::Value;

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
        for document in values(&text) {
            self.add_files(directory, file, &kustomization::files(&document));
            let plugins =
                kustomization::plugins(&document).flat_map(|plugin| plugin_texts(directory, plugin));
            for plugin in plugins.collect::<Vec<_>>().iter().flat_map(|text| values(text)) {
                self.add_files(directory, file, &kustomization::files_of_plugin(&plugin));
            }
        }
    }

    fn add_files(&mut self, directory: &Path, file: &Path, files: &[(&str, Use)]) {
        for (path, used) in files {
            let Ok(path) = fs::canonicalize(directory.join(path)) else { continue };
            let kustomization = file.display().to_string();
            self.0.entry(path).or_insert(match used {
                Use::Patch => Skip::ReferencedPatch(kustomization),
                Use::Data => Skip::ReferencedData(kustomization),
            });
        }
    }

    /// Returns why a file is not read as a stream of objects.
    pub(crate) fn skip(&self, source: &Source) -> Option<Skip> {
        if is_kustomization(source) {
            // One with an error is read as a stream, so that the error is reported.
            let is_valid = |text: &str| {
                source.invalid_in(1, text).is_none() && yaml_documents::read(text).iter().all(Result::is_ok)
            };
            return source.text().is_ok_and(is_valid).then_some(Skip::Kustomization);
        }
        self.0.get(&fs::canonicalize(source.path.as_deref()?).ok()?).cloned()
    }
}

fn is_kustomization(source: &Source) -> bool {
    let name = source.path.as_deref().and_then(Path::file_name);
    name.is_some_and(|name| FILE_NAMES.iter().any(|of| name == *of))
}

/// Returns the documents that can be parsed.
fn values(text: &str) -> Vec<Value> {
    yaml_documents::read(text).into_iter().flatten().map(|document| document.value).collect()
}

/// Returns the texts of the configuration of a plugin: the text itself, a file, or the resources of a
/// directory.
fn plugin_texts(directory: &Path, plugin: &str) -> Vec<String> {
    let Ok(path) = fs::canonicalize(directory.join(plugin)) else { return vec![plugin.to_owned()] };
    if path.is_file() {
        return read_limited(&path).into_iter().collect();
    }
    let kustomizations = FILE_NAMES.iter().filter_map(|name| read_limited(&path.join(name)));
    let documents: Vec<Value> = kustomizations.flat_map(|text| values(&text)).collect();
    let resources = documents.iter().flat_map(kustomization::resources);
    resources.filter_map(|file| read_limited(&path.join(file))).collect()
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
        // Its patches are not known, and would be taken for objects.
        _ if is_kustomization(source) => None,
        (true, true) => Some(Skip::Template),
        (true, false) => (!has_kind(text)).then(|| Skip::NotAManifest(error.to_string())),
    }
}

/// Returns what follows the errors of a file that may be a template.
pub(crate) fn template_hint(text: &str) -> &'static str {
    if text.contains("{{") { "; if it is a template, use the output of helm template" } else { "" }
}

/// Returns the line about a document that cannot be parsed.
pub(crate) fn error_line(source: &Source, error: &StreamError, hint: &str) -> String {
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
