//! Each rule is violated by `testdata/rules/CODE.bad.yaml` and not by `CODE.good.yaml`. The first line
//! of an example may contain flags: `# app-health lint --expect-pause 30s`.

mod invalid;
mod page;
mod placement;
mod real;
mod reports;
mod texts;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Parser as _;
use injector::flags::{KindsArgs, SettingsArgs};

use crate::{Options, RULES, Severity, StreamReport, lint_stream};

/// The flags that examples use.
#[derive(clap::Parser)]
struct Flags {
    #[command(flatten)]
    settings: SettingsArgs,
    #[command(flatten)]
    kinds: KindsArgs,
    #[arg(long, value_parser = seconds)]
    expect_pause: Option<Duration>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let number = text.strip_suffix('s').and_then(|number| number.parse().ok());
    number.map(Duration::from_secs).ok_or_else(|| "must be like 30s".to_owned())
}

/// Returns the options for the given flags.
pub(crate) fn options(flags: &str) -> Options {
    let words = ["app-health"].into_iter().chain(flags.split_whitespace());
    let Flags { settings, kinds, expect_pause } = Flags::try_parse_from(words).expect("flags");
    Options { settings: settings.check(None).expect("settings"), kinds: kinds.kinds(), expect_pause }
}

/// Returns true if generated files are written instead of compared.
fn updates_golden() -> bool {
    std::env::var_os("UPDATE_GOLDEN").is_some()
}

fn testdata() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata")
}

/// Returns the text of an example; `kind` is `bad` or `good`.
fn example(code: &str, kind: &str) -> String {
    let file = testdata().join(format!("rules/{code}.{kind}.yaml"));
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// Lints an example with the flags of its first line.
fn lint_example(text: &str) -> StreamReport {
    let first = text.lines().next().unwrap_or_default();
    let flags = first.strip_prefix("# app-health lint").unwrap_or_default();
    lint_stream("example.yaml", text, &options(flags))
}

/// Returns the codes of all findings.
fn codes(report: &StreamReport) -> BTreeSet<&'static str> {
    report.findings.iter().map(|finding| finding.rule.code).collect()
}

#[test]
fn each_rule_is_violated_by_its_bad_example_and_not_by_its_good_one() {
    for rule in RULES.iter() {
        let bad = lint_example(&example(rule.code, "bad"));
        assert!(codes(&bad).contains(rule.code), "{}: bad: {bad:#?}", rule.code);
        assert_eq!((bad.errors.len(), bad.objects), (0, 1), "{}", rule.code);
        let good = lint_example(&example(rule.code, "good"));
        assert!(!codes(&good).contains(rule.code), "{}: good: {good:#?}", rule.code);
        assert_eq!((good.errors.len(), good.objects, good.pods), (0, 1, 1), "{}", rule.code);
        let errors: Vec<_> =
            good.findings.iter().filter(|finding| finding.rule.severity == Severity::Error).collect();
        assert!(errors.is_empty(), "{}: good: {errors:#?}", rule.code);
    }
}

#[test]
fn each_example_belongs_to_a_rule() {
    let entries = std::fs::read_dir(testdata().join("rules")).expect("a folder");
    let names: BTreeSet<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    let expected =
        RULES.iter().flat_map(|rule| ["bad", "good"].map(|kind| format!("{}.{kind}.yaml", rule.code)));
    assert_eq!(names, expected.collect());
}

#[test]
fn codes_and_names_are_unique_and_ordered() {
    let codes: Vec<&str> = RULES.iter().map(|rule| rule.code).collect();
    assert!(codes.is_sorted_by(|first, second| first < second), "{codes:?}");
    let names: BTreeSet<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(names.len(), RULES.len());
    assert!(codes.iter().all(|code| code.len() == 5 && code.starts_with("AH")), "{codes:?}");
}
