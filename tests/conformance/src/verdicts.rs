//! The verdicts of all cases, in the format of `tests/conformance/verdicts.txt`: a heading for each
//! chapter and a line for each case.

use std::collections::BTreeSet;

use super::suite::{Finding, Findings};

const INTRODUCTION: &str = "\
# The verdict of each case: of the direct probe and, where they differ in any way, of the probe through the
# filter and the kind of the difference. `./justw conformance` writes this file.
";

/// The lines of a file of verdicts.
pub struct Verdicts(BTreeSet<String>);

impl Verdicts {
    pub fn of(text: &str) -> Self {
        Self(text.lines().map(str::to_owned).collect())
    }

    /// Returns true if the verdicts of this finding are in the file.
    pub fn contain(&self, finding: &Finding) -> bool {
        self.0.contains(&line(finding))
    }
}

/// Returns the file.
pub fn text(chapters: &[Findings]) -> String {
    let mut text = INTRODUCTION.to_owned();
    for chapter in chapters {
        text += &format!("\n# {}\n", chapter.heading());
        for finding in &chapter.findings {
            text += &format!("{}\n", line(finding));
        }
    }
    text
}

/// The status that kubelet printed is left out: which of two causes comes first may be a race, which
/// does not affect the verdict.
fn line(finding: &Finding) -> String {
    let (outcome, name) = (&finding.outcome, &finding.case.name);
    if outcome.difference.is_none() {
        return format!("{}: {name}", outcome.direct.verdict);
    }
    let kind = finding.kind().map_or("unintended".to_owned(), |kind| format!("{kind:?}"));
    format!("{} {} {kind}: {name}", outcome.direct.verdict, outcome.through.verdict)
}

/// Returns the lines that only one of two texts has, `-` before the published ones and `+` before the
/// new ones.
pub fn changes(published: &str, new: &str) -> Vec<String> {
    let only = |text: &str, other: &str, sign: char| -> Vec<String> {
        let other: BTreeSet<&str> = other.lines().collect();
        let changed = text.lines().filter(|line| !other.contains(line));
        changed.map(|line| format!("{sign} {line}")).collect()
    };
    [only(published, new, '-'), only(new, published, '+')].concat()
}

#[cfg(test)]
mod tests;
