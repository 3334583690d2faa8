//! The command `inject`. It reads and injects all inputs before it writes the first output. What it
//! refuses is not written, and does not stop the others.

mod output;

use crate::config::{InjectConfig, OutputTarget};
use crate::exit;
use crate::files::{self, Source, Sources};
use crate::manifests::{self, References};
use injector::document::{self, InjectedDocument};
use injector::kinds::Kinds;
use injector::settings::Settings;
use injector::skip::Skip;
use injector::workload;
use injector::yaml_documents::{self, Document, Format, StreamError};
use serving::exit::Failure;

/// Prefix of a warning, which this command prints at the start of each line instead.
const PROGRAM: &str = "app-health: ";

pub fn run(config: InjectConfig) -> Result<(), Failure> {
    let InjectConfig { settings, kinds, filenames, recursive, target, format, strict } = config;
    let mut read = files::read(&filenames, recursive);
    if read.sources.is_empty() {
        read = Sources { sources: read.complete()?, ..Sources::default() };
    }
    let references = References::read(&read);
    let is_stream = matches!(target, OutputTarget::Stdout | OutputTarget::File(_));
    let writes_json = is_stream && format == Some(Format::Json);
    let injector = Injector { settings, kinds, strict, writes_json };
    let results: Vec<InjectedSource> =
        read.sources.iter().map(|source| injector.inject_source(source, &references)).collect();
    for result in &results {
        result.notes.iter().for_each(|line| exit::stderr_line(line));
    }
    let mut refused = read.too_large;
    refused.extend(results.iter().flat_map(|result| result.refused.iter().cloned()));
    let changes = write(&target, &results, format)?;
    if !read.unreadable.is_empty() {
        return Err(Failure::CannotRead(exit::joined(&[read.unreadable, refused].concat())));
    }
    if !refused.is_empty() {
        return Err(Failure::Data(exit::joined(&refused)));
    }
    if changes { Err(Failure::General(String::new())) } else { Ok(()) }
}

/// An input file with its documents.
struct InjectedSource<'a> {
    source: &'a Source,
    pieces: Vec<Piece<'a>>,
    /// Lines about what was skipped, and warnings.
    notes: Vec<String>,
    /// Lines about what was refused and is not in `pieces`.
    refused: Vec<String>,
}

/// A part of an input file.
enum Piece<'a> {
    Injected(Document<'a>, InjectedDocument),
    /// A document that is left as it is.
    Kept(Document<'a>),
    /// A file that is left as it is.
    File(&'a str, Format),
}

struct Injector {
    settings: Settings,
    kinds: Kinds,
    strict: bool,
    /// True if the output is one stream of JSON, which a file with YAML cannot be a part of.
    writes_json: bool,
}

impl Injector {
    fn inject_source<'a>(&self, source: &'a Source, references: &References) -> InjectedSource<'a> {
        let mut result =
            InjectedSource { source, pieces: Vec::new(), notes: Vec::new(), refused: Vec::new() };
        let text = match source.text() {
            Ok(text) => text,
            Err(error) => {
                result.refused.push(error);
                return result;
            }
        };
        let documents = yaml_documents::read(text);
        let error = documents.iter().find_map(|document| document.as_ref().err());
        let unparsable = || manifests::skip_unparsable(source, text, error?);
        if let Some(skip) = references.skip(source).or_else(unparsable) {
            if let Some(error) = source.invalid_in(1, text) {
                result.refused.push(error);
                return result;
            }
            let format = format_of(&documents);
            let is_left_out = self.writes_json && format == Format::Yaml;
            let words = if is_left_out { "; the JSON output does not contain it" } else { "" };
            result.notes.push(format!("skipped: {}: {skip}{words}", source.name));
            if !is_left_out {
                result.pieces.push(Piece::File(text, format));
            }
            return result;
        }
        let hint = manifests::template_hint(text);
        for document in documents {
            let position = document.as_ref().map(|document| (document.line, document.text));
            if let Some(error) = position.ok().and_then(|(line, text)| source.invalid_in(line, text)) {
                result.refused.push(error);
                continue;
            }
            match document {
                Ok(document) => self.inject_document(document, &mut result),
                Err(error) => result.refused.push(manifests::error_line(source, &error, hint)),
            }
        }
        result
    }

    fn inject_document<'a>(&self, document: Document<'a>, result: &mut InjectedSource<'a>) {
        let place = format!("{}:{}: document {}", result.source.name, document.line, document.number);
        let object = workload::object(&document.value);
        let object = if object.is_empty() { object } else { format!(" ({object})") };
        if let Some(skip) = Skip::of(&document.value, &document.parsed, &self.kinds) {
            result.notes.push(format!("skipped: {place}{object}: {skip}"));
            result.pieces.push(Piece::Kept(document));
            return;
        }
        let injected = match document::inject(&document.value, &self.kinds, &self.settings) {
            Ok(injected) => injected,
            Err(error) => return result.refused.push(format!("{place}{object}: {error}")),
        };
        result.notes.extend(injected.skipped.iter().map(|item| format!("skipped: {place}: {item}")));
        let skipped = injected.pods.iter().filter_map(|(site, summary)| {
            Some(format!("skipped: {place} ({}): {}", site.object, summary.skipped.as_ref()?))
        });
        result.notes.extend(skipped);
        let warnings = injected.pods.iter().flat_map(|(site, summary)| {
            let texts = summary.warnings.iter().map(ToString::to_string);
            texts.map(|text| {
                let text = text.strip_prefix(PROGRAM).unwrap_or(&text);
                format!("{place} ({}): {text}", site.object)
            })
        });
        let mut warnings: Vec<String> = warnings.collect();
        if self.strict && !warnings.is_empty() {
            return result.refused.append(&mut warnings);
        }
        result.notes.append(&mut warnings);
        result.pieces.push(Piece::Injected(document, injected));
    }
}

/// Returns the format of a file: JSON if it contains only documents in JSON.
fn format_of(documents: &[Result<Document, StreamError>]) -> Format {
    let is_json = |document: &Result<Document, StreamError>| {
        document.as_ref().is_ok_and(|document| document.format == Format::Json)
    };
    if !documents.is_empty() && documents.iter().all(is_json) { Format::Json } else { Format::Yaml }
}

/// Writes the results. Returns true if `--diff` has found a change.
fn write(target: &OutputTarget, results: &[InjectedSource], format: Option<Format>) -> Result<bool, Failure> {
    let is_refused = results.iter().any(|result| !result.refused.is_empty());
    match target {
        OutputTarget::Stdout => files::write_stdout(&output::stream(results, format))?,
        OutputTarget::File(path) => {
            let text = output::stream(results, format);
            // An empty file would hide that everything was refused.
            if !(text.is_empty() && is_refused) {
                files::write(path, &text)?;
            }
        }
        OutputTarget::InPlace => files::write_all(&output::changed_files(results, format))?,
        OutputTarget::DryRun => files::write_stdout(&output::dry_run(results))?,
        OutputTarget::Diff(colored) => {
            let diff = output::diff(results, format, *colored);
            files::write_stdout(&diff)?;
            return Ok(!diff.is_empty());
        }
    }
    Ok(false)
}
