//! Formats the results of the suite: a table of the chapters, and `docs/conformance.md`.

use std::collections::BTreeMap;

use comfy_table::{Table, presets};

use super::kind::Kind;
use super::suite::{Finding, Findings};

const INTRODUCTION: &str = "\
# Conformance

Each case is an application that does something, and a probe. Kubelet's own prober (the package `pkg/probe` of Kubernetes
1.36.3) asks it twice: directly, and through Envoy with the filter. The verdict has to be the same: `success` (a warning
counts as one), `failure`, or `error`, upon which kubelet counts nothing. The number is the status that kubelet printed.
For `httpGet` the application must have seen the same requests on the same number of connections.

Made by `./justw conformance` from the cases in `tests/conformance/`; `./justw test` fails when a verdict changes.
A difference belongs to one of the kinds at the end, or the tests fail.
";

/// Returns a table with a row for each chapter.
pub fn table(chapters: &[Findings]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(["chapter", "cases", "equal", "different, as known", "unintended"]);
    for chapter in chapters.iter().filter(|chapter| !chapter.findings.is_empty()) {
        let count = |wanted: &dyn Fn(&Finding) -> bool| {
            chapter.findings.iter().filter(|finding| wanted(finding)).count().to_string()
        };
        let equal = |finding: &Finding| finding.outcome.difference.is_none();
        table.add_row([
            chapter.title.clone(),
            chapter.findings.len().to_string(),
            count(&equal),
            count(&|finding| !equal(finding) && finding.wrong().is_none()),
            count(&|finding| finding.wrong().is_some()),
        ]);
    }
    table
}

/// Returns the whole page as Markdown.
pub fn markdown(chapters: &[Findings]) -> String {
    let findings = || chapters.iter().flat_map(|chapter| &chapter.findings);
    let total = findings().count();
    let equal = findings().filter(|finding| finding.outcome.difference.is_none()).count();
    let mut page = format!("{INTRODUCTION}\n{total} cases, {equal} equal, {} different.\n", total - equal);
    for chapter in chapters {
        page += &format!(
            "\n## {}\n\n| case | direct | through the filter | |\n| --- | --- | --- | --- |\n",
            heading(&chapter.title)
        );
        for finding in &chapter.findings {
            let kind = finding.kind().map(|kind| format!("{kind:?}")).unwrap_or_default();
            let (direct, through) = (finding.outcome.direct.short(), finding.outcome.through.short());
            page += &format!("| {} | {direct} | {through} | {kind} |\n", cell(&finding.case.name));
        }
    }
    page += "\n## Known differences\n\n| kind | what, and why | cases here |\n| --- | --- | --- |\n";
    let mut kinds: BTreeMap<Kind, usize> = BTreeMap::new();
    for kind in findings().filter_map(Finding::kind) {
        *kinds.entry(kind).or_default() += 1;
    }
    for (kind, cases) in kinds {
        page += &format!("| {kind:?} | {} | {cases} |\n", kind.reason());
    }
    page
}

/// Returns the page without the statuses that kubelet printed. Which of two causes comes first may
/// be a race; the verdict is not affected.
pub fn verdicts(page: &str) -> String {
    let mut text = String::with_capacity(page.len());
    for (index, part) in page.split("| failure ").enumerate() {
        text.push_str(if index == 0 { "" } else { "| failure " });
        text.push_str(part.trim_start_matches(|character: char| index > 0 && character.is_ascii_digit()));
    }
    text
}

fn heading(title: &str) -> String {
    let mut characters = title.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

/// Escapes a name for a cell of a Markdown table.
fn cell(name: &str) -> String {
    name.replace('|', "\\|").replace('<', "&lt;")
}

#[cfg(test)]
mod tests;
