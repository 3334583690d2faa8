//! The output of `inject`: a stream, changed files, a diff, or a list of what would be done.

use std::path::PathBuf;

use similar::TextDiff;

use super::{InjectedSource, Piece};
use injector::workload;
use injector::yaml_documents::{Document, Format};
use serde_json::Value;

const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const PLAIN: &str = "\u{1b}[0m";
/// Lines of a diff before its first hunk.
const HEADER_LINES: usize = 2;

impl Piece<'_> {
    /// Returns the text of the output: the original bytes if nothing changes.
    fn written(&self, format: Option<Format>) -> String {
        match self {
            Self::Injected(document, injected) => {
                written(document, &injected.value, injected.changed, format)
            }
            Self::Kept(document) => written(document, &document.value, false, format),
            Self::File(text, _) => (*text).to_owned(),
        }
    }

    fn format(&self) -> Format {
        match self {
            Self::Injected(document, _) | Self::Kept(document) => document.format,
            Self::File(_, format) => *format,
        }
    }
}

fn written(document: &Document, value: &Value, changed: bool, format: Option<Format>) -> String {
    let format = format.unwrap_or(document.format);
    if document.number == 0 {
        return if format == Format::Json { String::new() } else { document.text.to_owned() };
    }
    if changed || format != document.format {
        document.with_value(value, format)
    } else {
        document.text.to_owned()
    }
}

/// Joins all documents into one stream.
pub(super) fn stream(results: &[InjectedSource], format: Option<Format>) -> String {
    join(results.iter().flat_map(|result| &result.pieces), format)
}

fn join<'a>(pieces: impl Iterator<Item = &'a Piece<'a>>, format: Option<Format>) -> String {
    let mut stream = String::new();
    let mut last = Format::Yaml;
    for piece in pieces {
        let text = piece.written(format);
        let text = if stream.is_empty() { text.as_str() } else { text.trim_start_matches('\u{feff}') };
        if text.is_empty() {
            continue;
        }
        let now = format.unwrap_or(piece.format());
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

/// Returns the files that change, with their new text. A file in which something was refused does
/// not change.
pub(super) fn changed_files(results: &[InjectedSource], format: Option<Format>) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    for result in results.iter().filter(|result| result.refused.is_empty()) {
        let text = join(result.pieces.iter(), format);
        if let Some(path) =
            result.source.path.as_ref().filter(|_| result.source.text().is_ok_and(|source| source != text))
        {
            files.push((path.clone(), text));
        }
    }
    files
}

/// Returns lines such as `shop.yaml: document 2: Deployment/shop: sidecar native; app/livez,
/// app/readyz rewritten`.
pub(super) fn dry_run(results: &[InjectedSource]) -> String {
    let mut lines = String::new();
    let mut add = |line: String| {
        lines.push_str(&printable::line(&line));
        lines.push('\n');
    };
    for InjectedSource { source, pieces, .. } in results {
        for piece in pieces {
            let (document, injected) = match piece {
                Piece::Injected(document, injected) => (document, Some(injected)),
                Piece::Kept(document) => (document, None),
                Piece::File(..) => {
                    add(format!("{}: skipped", source.name));
                    continue;
                }
            };
            if document.number == 0 {
                continue;
            }
            let place = format!("{}: document {}", source.name, document.number);
            let object = workload::object(&document.value);
            let object = if object.is_empty() { "no kind" } else { &object };
            match injected {
                None => add(format!("{place}: {object}: skipped")),
                Some(injected) if injected.pods.is_empty() && injected.skipped.is_empty() => {
                    add(format!("{place}: {object}: no Pods"));
                }
                Some(injected) => {
                    for item in &injected.skipped {
                        add(format!("{place}: {} ({}): skipped", item.field, item.object));
                    }
                    for (site, summary) in &injected.pods {
                        add(format!("{place}: {}: {}", site.object, summary.describe()));
                    }
                }
            }
        }
    }
    lines
}

/// Returns a unified diff of each document that would change.
pub(super) fn diff(results: &[InjectedSource], format: Option<Format>, colored: bool) -> String {
    let mut text = String::new();
    for InjectedSource { source, pieces, .. } in results {
        for piece in pieces {
            let (Piece::Injected(document, _) | Piece::Kept(document)) = piece else { continue };
            let after = piece.written(format);
            if after == document.text {
                continue;
            }
            let name = format!("{}: document {}", printable::line(&source.name), document.number);
            let diff = TextDiff::from_lines(document.text, &after)
                .unified_diff()
                .missing_newline_hint(false)
                .header(&name, &format!("{name}, injected"))
                .to_string();
            for (number, line) in diff.lines().enumerate() {
                let line = printable::lines(line);
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
