//! Golden tests: for each `x.yaml`, `x.yaml.injected` contains the results and warnings as
//! comments, and then the output. The first line of an input may contain flags: `# app-health
//! inject --sidecar-mode classic`. `UPDATE_GOLDEN=1` rewrites the golden files.

mod properties;

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Parser as _;

use super::document;
use super::kinds::Kinds;
use super::settings::Settings;
use super::skip::Skip;
use super::yaml_documents;
use crate::flags::SettingsArgs;

/// The flags that both commands have.
#[derive(clap::Parser)]
struct Flags {
    #[command(flatten)]
    settings: SettingsArgs,
}

/// Returns the settings for the given flags.
pub(crate) fn settings(flags: &str) -> Settings {
    let words = ["app-health"].into_iter().chain(flags.split_whitespace());
    let Flags { settings } = Flags::try_parse_from(words).expect("flags");
    let template = settings.template.as_ref().map(|name| {
        fs::read_to_string(folder().join("templates").join(name)).expect("a template of the goldens")
    });
    settings.check(template.as_deref()).expect("settings")
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/inject")
}

/// Returns the paths and texts of all inputs in order.
pub(crate) fn inputs() -> Vec<(PathBuf, String)> {
    let entries = fs::read_dir(folder()).expect("the folder of the goldens");
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "yaml" || extension == "json"));
    files.sort();
    files.into_iter().map(|file| (file.clone(), fs::read_to_string(file).expect("an input"))).collect()
}

/// Returns the settings for the flags in the first line of an input.
pub(crate) fn settings_of(text: &str) -> Settings {
    let first = text.lines().next().unwrap_or_default();
    settings(first.strip_prefix("# app-health inject").unwrap_or_default())
}

/// Injects into YAML documents; returns the comments (the result of each Pod, warnings), and the documents.
fn injected(text: &str, settings: &Settings) -> (String, String) {
    let (mut notes, mut yaml_documents) = (String::new(), String::new());
    for document in yaml_documents::read(text) {
        let document = match document {
            Ok(document) => document,
            Err(error) => {
                writeln!(notes, "# {error}").expect("a string");
                continue;
            }
        };
        let kinds = Kinds::default();
        if let Some(skip) = Skip::of(&document.value, document.text, &kinds) {
            writeln!(notes, "# skipped: {skip}").expect("a string");
            yaml_documents.push_str(document.text);
            continue;
        }
        match document::inject(&document.value, &kinds, settings) {
            Ok(injected) => {
                for (site, summary) in &injected.pods {
                    writeln!(notes, "# {}: {}: {}", site.object, summary.outcome.word(), summary.describe())
                        .expect("a string");
                    for warning in &summary.warnings {
                        writeln!(notes, "# {warning}").expect("a string");
                    }
                }
                let bytes = if injected.changed {
                    document.with_value(&injected.value, document.format)
                } else {
                    document.text.to_owned()
                };
                yaml_documents.push_str(&bytes);
            }
            Err(refused) => writeln!(notes, "# refused: {refused}").expect("a string"),
        }
    }
    (notes, yaml_documents)
}

#[test]
fn goldens() {
    let update = std::env::vars_os().any(|(name, _)| name == "UPDATE_GOLDEN");
    let mut wrong = Vec::new();
    for (file, text) in inputs() {
        let (notes, yaml_documents) = injected(&text, &settings_of(&text));
        let body: String = yaml_documents
            .lines()
            .filter(|line| !line.starts_with("# app-health inject"))
            .fold(String::new(), |body, line| body + line + "\n");
        let actual = notes + &body;
        let mut golden = file.clone().into_os_string();
        golden.push(".injected");
        if update {
            fs::write(&golden, &actual).expect("the golden can be written");
        } else if fs::read_to_string(&golden).ok().as_ref() != Some(&actual) {
            wrong.push(file);
        }
    }
    assert!(wrong.is_empty(), "run with UPDATE_GOLDEN=1 and review the diff: {wrong:#?}");
    assert!(inputs().len() >= 60, "golden files are missing");
}

#[test]
fn injection_is_idempotent() {
    for (file, text) in inputs() {
        let settings = settings_of(&text);
        let (_, once) = injected(&text, &settings);
        let (_, twice) = injected(&once, &settings);
        assert_eq!(twice, once, "{}", file.display());
    }
}
