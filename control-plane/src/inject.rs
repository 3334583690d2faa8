//! The command `inject`. It reads and injects all inputs before it writes the first output.

use std::fmt::Write as _;

use similar::{ChangeTag, TextDiff};

use crate::config::{InjectConfig, Target};
use crate::exit;
use crate::files::{self, Source};
use injector::document::{self, Injected};
use injector::settings::Settings;
use injector::stream::{self, Document, Format};
use injector::workload;
use serving::exit::Failure;

const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const PLAIN: &str = "\u{1b}[0m";

pub fn run(config: InjectConfig) -> Result<(), Failure> {
    let InjectConfig { settings, filenames, recursive, target, format, strict } = config;
    let sources = files::read(&filenames, recursive)?;
    let (mut results, mut errors, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
    for source in &sources {
        match std::str::from_utf8(&source.bytes) {
            Ok(text) => results.push(inject(source, text, &settings, &mut errors, &mut warnings)),
            Err(error) => errors.push(not_utf8(source, error.valid_up_to())),
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
        Target::Stdout => files::write_stdout(&all(&results, format)),
        Target::File(path) => files::write(&path, &all(&results, format)),
        Target::InPlace => in_place(&results, format),
        Target::DryRun => files::write_stdout(&dry_run(&results)),
        Target::Diff(colored) => {
            let diff = diff(&results, format, colored);
            files::write_stdout(&diff)?;
            if diff.is_empty() { Ok(()) } else { Err(Failure::General(String::new())) }
        }
    }
}

/// An input file with its injected documents.
struct InjectedSource<'a> {
    source: &'a Source,
    documents: Vec<(Document<'a>, Injected)>,
}

fn not_utf8(source: &Source, at: usize) -> String {
    let before = source.bytes.get(..at).unwrap_or_default();
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
    format!("{}:{line}:{column}: is not UTF-8", source.name)
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
    for document in stream::read(text) {
        let document = match document {
            Ok(document) => document,
            Err(error) => {
                errors.push(format!("{name}:{error}"));
                continue;
            }
        };
        let place = || {
            let object = workload::object(&document.value);
            let object = if object.is_empty() { object } else { format!(" ({object})") };
            format!("{name}:{}: document {}{object}", document.line, document.number)
        };
        match document::inject(&document.value, settings) {
            Ok(injected) => {
                for (site, summary) in &injected.pods {
                    let place =
                        format!("{name}:{}: document {} ({})", document.line, document.number, site.object);
                    warnings.extend(summary.warnings.iter().map(|warning| format!("{place}: {warning}")));
                }
                documents.push((document, injected));
            }
            Err(refused) => errors.push(format!("{}: {refused}", place())),
        }
    }
    InjectedSource { source, documents }
}

/// Returns the text of a document: the original bytes if nothing changes.
fn written(document: &Document, injected: &Injected, format: Option<Format>) -> String {
    let format = format.unwrap_or(document.format);
    if document.number == 0 {
        return if format == Format::Json { String::new() } else { document.text.to_owned() };
    }
    if injected.changed || format != document.format {
        document.with(&injected.value, format)
    } else {
        document.text.to_owned()
    }
}

/// Joins documents into one stream.
fn join<'a>(documents: impl Iterator<Item = &'a (Document<'a>, Injected)>, format: Option<Format>) -> String {
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
                let object = if object.is_empty() { "no kind".to_owned() } else { object };
                writeln!(lines, "{place}: {object}: no Pods").expect("writing to a String cannot fail");
            }
            for (site, summary) in &injected.pods {
                writeln!(lines, "{place}: {}: {}", site.object, summary.line())
                    .expect("writing to a String cannot fail");
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
            let diff = TextDiff::from_lines(document.text, &after);
            write!(text, "--- {name}\n+++ {name}, injected\n").expect("writing to a String cannot fail");
            for hunk in diff.unified_diff().context_radius(3).iter_hunks() {
                writeln!(text, "{}", hunk.header()).expect("writing to a String cannot fail");
                for change in hunk.iter_changes() {
                    let (sign, color) = match change.tag() {
                        ChangeTag::Delete => ('-', RED),
                        ChangeTag::Insert => ('+', GREEN),
                        ChangeTag::Equal => (' ', ""),
                    };
                    let line = change.value().trim_end_matches(['\n', '\r']);
                    let (color, plain) = if colored && !color.is_empty() { (color, PLAIN) } else { ("", "") };
                    writeln!(text, "{color}{sign}{line}{plain}").expect("writing to a String cannot fail");
                }
            }
        }
    }
    text
}
