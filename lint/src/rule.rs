//! The rules: codes, severities and texts. The checks are in `crate::rules`.

mod injection;
mod placement;
mod probes;

pub use injection::*;
pub use placement::*;
pub use probes::*;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; often right as it is.
    Info,
    /// Works, but is known to cause outages or false verdicts.
    Warning,
    /// Cannot work: the API server rejects it, or every probe fails.
    Error,
}

impl Severity {
    /// Returns the word in the output.
    pub fn word(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// A rule. Its texts are plain sentences without Markdown.
#[derive(Debug, PartialEq, Eq)]
pub struct Rule {
    /// The code, such as `AH001`. Codes are part of the interface and are never reused.
    pub code: &'static str,
    /// The name in a few words with hyphens, such as `named-port`.
    pub name: &'static str,
    pub severity: Severity,
    /// The violation as a short phrase.
    pub title: &'static str,
    /// The consequences of the violation.
    pub why: &'static str,
    /// Advice on what to do instead.
    pub fix: &'static str,
}

/// Declares rules as statics, and all of them in order as `ALL`.
macro_rules! rules {
    ($all:ident: $($rule:ident = $code:literal $name:literal $severity:ident, $title:literal, $why:literal, $fix:literal;)+) => {
        $(
            #[doc = $title]
            pub static $rule: Rule = Rule {
                code: $code,
                name: $name,
                severity: Severity::$severity,
                title: $title,
                why: $why,
                fix: $fix,
            };
        )+
        /// The rules of this module in the order of their codes.
        pub static $all: &[&Rule] = &[$(&$rule),+];
    };
}
use rules;

/// Returns all rules in the order of their codes.
pub static RULES: std::sync::LazyLock<Vec<&'static Rule>> = std::sync::LazyLock::new(|| {
    PROBE_RULES.iter().chain(INJECTION_RULES).chain(PLACEMENT_RULES).copied().collect()
});

/// Returns the rule with this code, in upper or lower case.
pub fn by_code(code: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.code.eq_ignore_ascii_case(code)).copied()
}
