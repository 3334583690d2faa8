//! Runs the written cases, compares the result with their marks, and reports them.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::batch::{self, Outcome};
use super::case::Case;
use super::compare::{Difference, describe};
use super::expand::{self, Chapter};
use super::kind::Kind;
use kit::envoy::workspace;
use kit::pod;

/// A case that was run, and its result.
#[derive(Clone, Debug)]
pub struct Finding {
    pub case: Case,
    pub outcome: Outcome,
}

impl Finding {
    /// Returns the kind of the difference, if there is a known one.
    pub fn kind(&self) -> Option<Kind> {
        kind(&self.case, self.outcome.difference.as_ref()?)
    }

    /// Returns an explanation if the result is not as marked.
    pub fn wrong(&self) -> Option<String> {
        let (found, marked) = (self.kind(), self.case.marked());
        let text = describe(&self.outcome.direct, &self.outcome.through);
        match (&self.outcome.difference, found, marked) {
            (Some(difference), None, _) => Some(format!("{difference:?} differs:\n{text}")),
            (_, found, Some(marked)) if found != Some(marked) => {
                Some(format!("is marked {marked:?} but differs in another way or not at all:\n{text}"))
            }
            _ => None,
        }
    }
}

/// A chapter that was run.
pub struct Findings {
    pub title: String,
    pub findings: Vec<Finding>,
}

impl Findings {
    /// Returns the title with an initial capital.
    pub fn heading(&self) -> String {
        let mut characters = self.title.chars();
        let first: String = characters.next().into_iter().flat_map(char::to_uppercase).collect();
        first + characters.as_str()
    }
}

/// Runs every case of `tests/conformance` whose `chapter: name` contains `only`.
///
/// # Errors
/// If a case cannot be read, or the cases cannot be run.
pub async fn run(only: &str) -> Result<Vec<Findings>, String> {
    let chapters = expand::read(&workspace().join("tests/conformance/cases"))?;
    check_cases(&chapters)?;
    let chapters: Vec<Chapter> = chapters
        .into_iter()
        .map(|chapter| {
            let chosen = |case: &Case| format!("{}: {}", chapter.title, case.name).contains(only);
            Chapter { cases: chapter.cases.into_iter().filter(chosen).collect(), title: chapter.title }
        })
        .collect();
    let cases: Vec<Case> = chapters.iter().flat_map(|chapter| &chapter.cases).cloned().collect();
    let outcomes = batch::run(&cases, kind).await?;
    let mut findings = cases.into_iter().zip(outcomes).map(|(case, outcome)| Finding { case, outcome });
    Ok(chapters
        .into_iter()
        .map(|chapter| {
            let count = chapter.cases.len();
            Findings { title: chapter.title, findings: findings.by_ref().take(count).collect() }
        })
        .collect())
}

/// Runs the cases again whose finding is not `as_expected`, one at a time, until it is: on a busy machine
/// a case can miss its deadline also when it is probed directly.
///
/// # Errors
/// If the cases cannot be run.
pub async fn repeat_unexpected(
    chapters: &mut [Findings],
    as_expected: impl Fn(&Finding) -> bool,
) -> Result<(), String> {
    /// More unexpected results have another cause than a busy machine.
    const MAX_CASES: usize = 50;
    const MAX_REPETITIONS: usize = 3;
    let findings = chapters.iter_mut().flat_map(|chapter| &mut chapter.findings);
    for finding in findings.filter(|finding| !as_expected(finding)).take(MAX_CASES) {
        for _ in 0..MAX_REPETITIONS {
            finding.outcome = batch::run(std::slice::from_ref(&finding.case), kind).await?.remove(0);
            if as_expected(finding) {
                break;
            }
        }
    }
    Ok(())
}

/// Returns the kind of a difference: the marked one, or D7 for headers omitted over TLS, which
/// needs no mark.
fn kind(case: &Case, difference: &Difference) -> Option<Kind> {
    let left_out = *difference == Difference::ConnectionHeaders && pod::form().is_filter();
    left_out.then_some(Kind::D7).or(case.marked())
}

fn check_cases(chapters: &[Chapter]) -> Result<(), String> {
    let mut names = BTreeSet::new();
    for case in chapters.iter().flat_map(|chapter| &chapter.cases) {
        if !names.insert(&case.name) {
            return Err(format!("{}: the name is used by two cases", case.name));
        }
        if case.probe.handler().is_none() {
            return Err(format!("{}: probe needs httpGet, tcpSocket or grpc", case.name));
        }
    }
    Ok(())
}

/// Returns `{"cases", "equal", "different": [{"kind", "reason", "cases"}], "chapters": [{"title", "cases":
/// [{"name", "direct", "through", "kind"}]}]}`: in `different` an entry for each known kind, and one for
/// each case that differs without a kind.
pub fn json(chapters: &[Findings]) -> Value {
    let findings = || chapters.iter().flat_map(|chapter| &chapter.findings);
    let mut kinds: BTreeMap<Kind, Vec<&str>> = BTreeMap::new();
    let mut different: Vec<Value> = Vec::new();
    for finding in findings().filter(|finding| finding.outcome.difference.is_some()) {
        match finding.kind() {
            Some(kind) => kinds.entry(kind).or_default().push(&finding.case.name),
            None => different.push(json!({
                "kind": "unintended", "reason": finding.wrong(), "cases": [finding.case.name],
            })),
        }
    }
    let known = kinds
        .iter()
        .map(|(kind, cases)| json!({"kind": format!("{kind:?}"), "reason": kind.reason(), "cases": cases}));
    different.splice(0..0, known);
    json!({
        "cases": findings().count(),
        "equal": findings().filter(|finding| finding.outcome.difference.is_none()).count(),
        "different": different,
        "chapters": chapters.iter().map(chapter).collect::<Vec<_>>(),
    })
}

fn chapter(chapter: &Findings) -> Value {
    let case = |finding: &Finding| {
        json!({
            "name": finding.case.name,
            "direct": finding.outcome.direct.short(),
            "through": finding.outcome.through.short(),
            "kind": finding.kind(),
        })
    };
    json!({"title": chapter.title, "cases": chapter.findings.iter().map(case).collect::<Vec<_>>()})
}
