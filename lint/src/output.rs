//! Findings as text, JSON, SARIF, and workflow commands of GitHub.

mod github;
mod json;
mod sarif;
mod text;

pub use github::github;
pub use json::json;
pub use sarif::sarif;
pub use text::text;

use crate::{Finding, Severity};

/// The findings of a run with what else is reported.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// In the order of the files, documents and Pods.
    pub findings: Vec<Finding>,
    /// Findings that an annotation suppresses.
    pub suppressed: usize,
    /// Pods and Pod templates.
    pub pods: usize,
    /// Files that were read, or 0 for a cluster.
    pub files: usize,
    /// Files and documents that were not checked, with the reason.
    pub skipped: Vec<String>,
}

impl Results {
    /// Returns the number of findings of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.rule.severity == severity).count()
    }
}

#[cfg(test)]
mod tests;
