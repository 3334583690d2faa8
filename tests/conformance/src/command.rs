//! Implements the recipes `conformance` and `fuzz-conformance`.

use clap::{Parser, Subcommand};

use super::suite::{self, Finding, Findings};
use super::verdicts::{self, Verdicts};
use super::{fuzz, page};
use kit::envoy::workspace;
use kit::pod::{self, Form};
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
    /// Run the cases of tests/conformance, write target/conformance.json, tests/conformance/verdicts.txt and
    /// docs/conformance.md
    Suite {
        /// Run only cases whose `chapter: name` contains this text, and write no files
        #[arg(default_value = "")]
        only: String,
        /// Fail if a verdict or docs/conformance.md differs from the result, instead of writing them
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
    let published = if check && pod::form().is_filter() { Some(Published::read()?) } else { None };
    let verdicts = published.as_ref().map(|published| Verdicts::of(&published.verdicts));
    let as_expected = |finding: &Finding| {
        finding.wrong().is_none() && verdicts.as_ref().is_none_or(|verdicts| verdicts.contain(finding))
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
        right &= publish(&chapters, published.as_ref())?;
    }
    Ok(right)
}

/// The texts that are checked in.
struct Published {
    verdicts: String,
    page: String,
}

impl Published {
    const VERDICTS: &'static str = "tests/conformance/verdicts.txt";
    const PAGE: &'static str = "docs/conformance.md";

    fn of(chapters: &[Findings]) -> Self {
        Self { verdicts: verdicts::text(chapters), page: page::markdown(chapters) }
    }

    fn read() -> Result<Self, String> {
        let read = |name: &str| {
            std::fs::read_to_string(workspace().join(name)).map_err(|error| format!("{name}: {error}"))
        };
        Ok(Self { verdicts: read(Self::VERDICTS)?, page: read(Self::PAGE)? })
    }

    fn write(&self) -> Result<(), String> {
        write(Self::VERDICTS, &self.verdicts)?;
        write(Self::PAGE, &self.page)
    }
}

/// Compares the result with the published one, or writes it if there is none to compare with.
fn publish(chapters: &[Findings], published: Option<&Published>) -> Result<bool, String> {
    let json = suite::json(chapters);
    let text = serde_json::to_string_pretty(&json).expect("a JSON value can be written");
    let name = match pod::form() {
        Form::Wasm => "target/conformance.json",
        Form::Native => "target/conformance-native.json",
        Form::Agent => "target/conformance-agent.json",
        Form::PilotAgent => "target/conformance-pilot-agent.json",
    };
    write(name, &(text + "\n"))?;
    if !pod::form().is_filter() {
        say(&format!("{} cases, {} equal; {name}\n", json["cases"], json["equal"]));
        return Ok(true);
    }
    let new = Published::of(chapters);
    say(&format!("{} cases, {} equal; {name}, {}\n", json["cases"], json["equal"], Published::PAGE));
    let Some(published) = published else {
        new.write()?;
        return Ok(true);
    };
    for line in verdicts::changes(&published.verdicts, &new.verdicts) {
        say(&format!("{line}\n"));
    }
    let same = published.verdicts == new.verdicts
        && page::without_statuses(&published.page) == page::without_statuses(&new.page);
    if !same {
        say(&format!(
            "{} or {} differs from the result: run ./justw conformance and review the diff\n",
            Published::VERDICTS,
            Published::PAGE
        ));
    }
    Ok(same)
}

fn write(name: &str, text: &str) -> Result<(), String> {
    std::fs::write(workspace().join(name), text).map_err(|error| format!("{name}: {error}"))
}
