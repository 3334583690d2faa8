//! Kubernetes documents in; findings about their probes, hooks and injection out. Rules are data
//! with a code, a severity and examples; `docs/lint.md` is generated from them.

mod finding;
mod lines;
mod linter;
mod options;
pub mod output;
mod path;
mod pod_view;
pub mod rule;
mod rules;
mod stream;
mod suppression;

pub use finding::{Finding, Origin};
pub use linter::{Report, lint};
pub use options::Options;
pub use rule::{RULES, Rule, Severity};
pub use stream::{StreamReport, lint_stream};
pub use suppression::IGNORE_ANNOTATION;

#[cfg(test)]
mod tests;
