//! The command `inject`. It reads and injects all inputs before it writes the first output.

use similar::TextDiff;

use crate::config::{InjectConfig, OutputTarget};
use crate::exit;
use crate::files::{self, Source};
use injector::document::{self, InjectedDocument};
use injector::settings::Settings;
use injector::workload;
use injector::yaml_documents::{self, Document, Format};
use serving::exit::Failure;

const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const PLAIN: &str = "\u{1b}[0m";
/// Lines of a diff before its first hunk.
const HEADER_LINES: usize = 2;
/// Prefix of a warning, which this command prints at the start of each line instead.
const PROGRAM: &str = "app-health: ";

pub fn run(config: InjectConfig) -> Result<(), Failure> {
    let InjectConfig { settings, filenames, recursive, target, format, strict } = config;
    let sources = files::read(&filenames, recursive).complete()?;
    let (mut results, mut errors, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    for source in &sources {
        match source.text() {
            Ok(text) => results.push(inject(source, text, &settings, &mut errors, &mut warnings)),
            Err(error) => errors.push(error),
        }
    }
    if strict {
        errors.append(&mut warnings);
    }
    for warning in &warnings {
        exit::stderr_line(warning);
    }
    if !errors.is_empty() {
        return Err(Failure::Data(errors.join("\n")));
    }
    match target {
        OutputTarget::Stdout => files::write_stdout(&all(&results, format)),
        OutputTarget::File(path) => files::write(&path, &all(&results, format)),
        OutputTarget::InPlace => in_place(&results, format),
        OutputTarget::DryRun => files::write_stdout(&dry_run(&results)),
        OutputTarget::Diff(colored) => {
            let diff = diff(&results, format, colored);
            files::write_stdout(&diff)?;
            if diff.is_empty() { Ok(()) } else { Err(Failure::General(String::new())) }
        }
    }
}

/// An input file with its injected documents.
struct InjectedSource<'a> {
    source: &'a Source,
    documents: Vec<(Document<'a>, InjectedDocument)>,
}

fn inject<'a>(
    source: &'a Source,
    text: &'a str,
    settings: &Settings,
    errors: &mut Vec<String>,
    warnings: &mut Vec<String>,
) -> InjectedSource<'a> {
    let name = &source.name;
    let mut documents = Vec::new();
    for document in yaml_documents::read(text) {
        let document = match document {
            Ok(document) => document,
            Err(error) => {
                errors.push(format!("{name}:{error}"));
                continue;
            }
        };
        let place = format!("{name}:{}: document {}", document.line, document.number);
        match document::inject(&document.value, settings) {
            Ok(injected) => {
                for (site, summary) in &injected.pods {
                    for warning in &summary.warnings {
                        let text = warning.to_string();
                        let text = text.strip_prefix(PROGRAM).unwrap_or(&text);
                        warnings.push(format!("{place} ({}): {text}", site.object));
                    }
                }
                documents.push((document, injected));
            }
            Err(error) => {
                let object = workload::object(&document.value);
                let object = if object.is_empty() { object } else { format!(" ({object})") };
                errors.push(format!("{place}{object}: {error}"));
            }
        }
    }
    InjectedSource { source, documents }
}

/// Returns the text of a document: the original bytes if nothing changes.
fn written(document: &Document, injected: &InjectedDocument, format: Option<Format>) -> String {
    let format = format.unwrap_or(document.format);
    if document.number == 0 {
        return if format == Format::Json { String::new() } else { document.text.to_owned() };
    }
    if injected.changed || format != document.format {
        document.with_value(&injected.value, format)
    } else {
        document.text.to_owned()
    }
}

/// Joins documents into one stream.
fn join<'a>(
    documents: impl Iterator<Item = &'a (Document<'a>, InjectedDocument)>,
    format: Option<Format>,
) -> String {
    let mut stream = String::new();
    let mut last = Format::Yaml;
    for (document, injected) in documents {
        let text = written(document, injected, format);
        let text = if stream.is_empty() { text.as_str() } else { text.trim_start_matches('\u{feff}') };
        if text.is_empty() {
            continue;
        }
        let now = format.unwrap_or(document.format);
        if !stream.is_empty() {
            if !stream.ends_with('\n') {
                stream.push('\n');
            }
            let marked = text.starts_with("---") || text.starts_with('%') || stream.ends_with("\n...\n");
            if !marked && (now, last) != (Format::Json, Format::Json) {
                stream.push_str("---\n");
            }
        }
        stream.push_str(text);
        last = now;
    }
    stream
}

fn all(results: &[InjectedSource], format: Option<Format>) -> String {
    join(results.iter().flat_map(|result| &result.documents), format)
}

fn in_place(results: &[InjectedSource], format: Option<Format>) -> Result<(), Failure> {
    let mut files = Vec::new();
    for result in results {
        let text = join(result.documents.iter(), format);
        if let Some(path) = result.source.path.as_ref().filter(|_| text.as_bytes() != result.source.bytes) {
            files.push((path.clone(), text));
        }
    }
    files::write_all(&files)
}

/// Returns lines such as `shop.yaml: document 2: Deployment/shop: sidecar native; app/livez,
/// app/readyz rewritten`.
fn dry_run(results: &[InjectedSource]) -> String {
    let mut lines = String::new();
    for InjectedSource { source, documents } in results {
        for (document, injected) in documents.iter().filter(|(document, _)| document.number > 0) {
            let place = format!("{}: document {}", source.name, document.number);
            if injected.pods.is_empty() {
                let object = workload::object(&document.value);
                let object = if object.is_empty() { "no kind" } else { &object };
                lines += &format!("{place}: {object}: no Pods\n");
            }
            for (site, summary) in &injected.pods {
                lines += &format!("{place}: {}: {}\n", site.object, summary.describe());
            }
        }
    }
    lines
}

/// Returns a unified diff of each document that would change.
fn diff(results: &[InjectedSource], format: Option<Format>, colored: bool) -> String {
    let mut text = String::new();
    for InjectedSource { source, documents } in results {
        for (document, injected) in documents {
            let after = written(document, injected, format);
            if after == document.text {
                continue;
            }
            let name = format!("{}: document {}", source.name, document.number);
            let diff = TextDiff::from_lines(document.text, &after)
                .unified_diff()
                .missing_newline_hint(false)
                .header(&name, &format!("{name}, injected"))
                .to_string();
            for (number, line) in diff.lines().enumerate() {
                text += &match line.as_bytes() {
                    [b'-', ..] if colored && number >= HEADER_LINES => format!("{RED}{line}{PLAIN}\n"),
                    [b'+', ..] if colored && number >= HEADER_LINES => format!("{GREEN}{line}{PLAIN}\n"),
                    _ => format!("{line}\n"),
                };
            }
        }
    }
    text
}
