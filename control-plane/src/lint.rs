//! The command `lint`: reads manifests or a cluster, and reports findings about probes.

mod cluster;

use std::path::PathBuf;

use crate::args::lint::LintFormat;
use crate::config::{LintConfig, LintInput};
use crate::exit;
use crate::files::{self, Source, Sources};
use crate::manifests::{self, References};
use lint::output::{self, Results};
use lint::{Options, Severity, lint_stream};
use serving::exit::Failure;
use tokio::runtime::Builder;

/// Prints the findings. Fails with the exit code 1 if there is an error, or with `--strict` a warning.
pub fn run(config: LintConfig) -> Result<(), Failure> {
    let LintConfig { input, options, format, strict } = config;
    let (results, errors, unreadable) = match input {
        LintInput::Files { filenames, directories } => lint_files(&filenames, &directories, &options)?,
        LintInput::Cluster(scope) => {
            let command = cluster::lint(scope, &options);
            let results = serving::runtime::block_on(&mut Builder::new_current_thread(), command)?;
            (results, Vec::new(), Vec::new())
        }
    };
    let text = match format {
        LintFormat::Text => output::text(&results),
        LintFormat::Json => output::json(&results),
        LintFormat::Sarif => output::sarif(&results),
        LintFormat::Github => output::github(&results),
    };
    files::write_stdout(&text)?;
    // JSON contains them.
    if format != LintFormat::Json {
        for skipped in &results.skipped {
            exit::stderr_line(&format!("skipped: {skipped}"));
        }
    }
    if !unreadable.is_empty() {
        return Err(Failure::CannotRead(exit::joined(&[unreadable, errors].concat())));
    }
    if !errors.is_empty() {
        return Err(Failure::Data(exit::joined(&errors)));
    }
    let fails = results.count(Severity::Error) > 0 || strict && results.count(Severity::Warning) > 0;
    if fails { Err(Failure::General(String::new())) } else { Ok(()) }
}

/// Lints all documents of all files. Returns also the errors of documents that cannot be parsed, and
/// of files that cannot be read.
///
/// # Errors
/// Fails if no file can be read.
fn lint_files(
    filenames: &[PathBuf],
    directories: &[PathBuf],
    options: &Options,
) -> Result<(Results, Vec<String>, Vec<String>), Failure> {
    let mut read = files::read(filenames, false);
    read.append(files::read(directories, true));
    if read.sources.is_empty() {
        read = Sources { sources: read.complete()?, ..Sources::default() };
    }
    let references = References::read(&read);
    let Sources { sources, unreadable, too_large, .. } = read;
    let (mut results, mut errors) = (Results::default(), too_large);
    for source in &sources {
        match (references.skip(source), source.text()) {
            (Some(skip), _) => results.skipped.push(format!("{}: {skip}", source.name)),
            (None, Ok(text)) => lint_source(source, text, options, &mut results, &mut errors),
            (None, Err(error)) => errors.push(error),
        }
    }
    Ok((results, errors, unreadable))
}

fn lint_source(
    source: &Source,
    text: &str,
    options: &Options,
    results: &mut Results,
    errors: &mut Vec<String>,
) {
    let name = &source.name;
    let report = lint_stream(name, text, options);
    errors.extend(source.invalid_in(1, text));
    let error = report.errors.first();
    if let Some(skip) = error.and_then(|error| manifests::skip_unparsable(source, text, error)) {
        results.skipped.push(format!("{name}: {skip}"));
        return;
    }
    let hint = manifests::template_hint(text);
    errors.extend(report.errors.iter().map(|error| manifests::error_line(source, error, hint)));
    for (number, skip) in &report.skipped {
        results.skipped.push(format!("{name}: document {number}: {skip}"));
    }
    for (number, item) in &report.skipped_items {
        results.skipped.push(format!("{name}: document {number}: {item}"));
    }
    if report.objects == 0 && report.skipped.is_empty() && report.errors.is_empty() {
        results.skipped.push(format!("{name}: no Kubernetes object"));
    }
    results.findings.extend(report.findings);
    results.suppressed += report.suppressed;
    results.pods += report.pods;
    results.files += 1;
}
