//! Implements the recipes `conformance` and `fuzz-conformance`.

use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};

use super::page::Rows;
use super::suite::{self, Finding, Findings};
use super::{fuzz, page};
use kit::envoy::workspace;
use kit::pod;
use kit::terminal::say;

/// Compares kubelet's verdicts for direct probes and for probes through the filter
#[derive(Debug, Parser)]
#[command(name = "conformance")]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Run the cases of tests/conformance, write target/conformance.json and docs/conformance.md
    Suite {
        /// Run only cases whose `chapter: name` contains this text, and write no files
        #[arg(default_value = "")]
        only: String,
        /// Fail if docs/conformance.md differs from the result, instead of writing it
        #[arg(long)]
        check: bool,
    },
    /// Generate cases, run them, and minimize those that differ
    Fuzz {
        /// Seed of the generator; the same seed generates the same cases
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Number of cases
        #[arg(long, default_value_t = 2000)]
        cases: u64,
    },
}

/// Runs the command and returns whether all results are as expected.
///
/// # Errors
/// Names what cannot be read, started or written.
pub async fn run(arguments: Arguments) -> Result<bool, String> {
    match arguments.what {
        What::Suite { only, check } => run_suite(&only, check).await,
        What::Fuzz { seed, cases } => fuzz::run(seed, cases).await,
    }
}

async fn run_suite(only: &str, check: bool) -> Result<bool, String> {
    let mut chapters = suite::run(only).await?;
    let published = if check { Some(read_published()?) } else { None };
    let rows = published.as_deref().map(Rows::of);
    let as_expected = |finding: &Finding| {
        finding.wrong().is_none() && rows.as_ref().is_none_or(|rows| rows.contain(finding))
    };
    suite::repeat_unexpected(&mut chapters, as_expected).await?;
    let wrong: Vec<&Finding> = chapters
        .iter()
        .flat_map(|chapter| &chapter.findings)
        .filter(|finding| finding.wrong().is_some())
        .collect();
    for finding in &wrong {
        say(&format!("{}: {}\n", finding.case.name, finding.wrong().unwrap_or_default()));
    }
    say(&format!("{}\n", page::table(&chapters)));
    let mut right = wrong.is_empty();
    if only.is_empty() {
        right &= publish(&chapters, published.as_deref())?;
    }
    Ok(right)
}

fn page_file() -> PathBuf {
    workspace().join("docs/conformance.md")
}

fn read_published() -> Result<String, String> {
    let file = page_file();
    std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))
}

/// Compares the page with the published one, or writes it if there is none to compare with.
fn publish(chapters: &[Findings], published: Option<&str>) -> Result<bool, String> {
    let json = suite::json(chapters);
    let text = serde_json::to_string_pretty(&json).expect("a JSON value can be written");
    let name = if pod::is_native() { "target/conformance-native.json" } else { "target/conformance.json" };
    write(&workspace().join(name), &(text + "\n"))?;
    let markdown = page::markdown(chapters);
    say(&format!("{} cases, {} equal; {name}, docs/conformance.md\n", json["cases"], json["equal"]));
    let Some(published) = published else {
        write(&page_file(), &markdown)?;
        return Ok(true);
    };
    let same = page::verdicts(published) == page::verdicts(&markdown);
    if !same {
        for line in page::changed_verdicts(published, &markdown) {
            say(&format!("{line}\n"));
        }
        say("docs/conformance.md differs from the result: run ./justw conformance and review the diff\n");
    }
    Ok(same)
}

fn write(file: &Path, text: &str) -> Result<(), String> {
    std::fs::write(file, text).map_err(|error| format!("{}: {error}", file.display()))
}
