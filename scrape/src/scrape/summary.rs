//! The metrics about a scrape itself, which are known only at its end.

use std::fmt::Write as _;
use std::time::Duration;

use super::ScrapeResult;

/// Outcome of the scrape of one source.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Value of the label `source`.
    pub(super) name: &'static str,
    /// Escaped value of the label `target`.
    pub(super) target: String,
    pub(super) result: ScrapeResult,
    pub(super) took: Duration,
    /// Number of dropped lines.
    pub(super) dropped: u64,
}

/// Returns the metrics about these sources, in the text format. `duplicates` and `shared` are the
/// numbers of repeated `HELP` and `TYPE` lines and of families of several sources.
pub(super) fn text(outcomes: &[Outcome], duplicates: u64, shared: u64) -> String {
    let mut text = String::new();
    let mut of_each = |name: &str, help: &str, value: &dyn Fn(&Outcome) -> String| {
        let _ = write!(text, "# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} gauge\n");
        for outcome in outcomes {
            let Outcome { name: source, target, .. } = outcome;
            let labels = format!("source=\"{source}\",target=\"{target}\"");
            let _ = writeln!(text, "{PREFIX}{name}{{{labels}}} {}", value(outcome));
        }
    };
    of_each("scrape_up", "1 if this source was scraped completely", &|outcome| {
        u8::from(outcome.result.is_ok()).to_string()
    });
    of_each("scrape_duration_seconds", "Duration of the scrape of this source", &|outcome| {
        format!("{:.6}", outcome.took.as_secs_f64())
    });
    of_each("scrape_lines_dropped", "Lines of this source that cannot be merged", &|outcome| {
        outcome.dropped.to_string()
    });
    for (name, help, value) in [
        (
            "duplicate_families",
            "HELP and TYPE lines of this scrape that were dropped as duplicates",
            duplicates,
        ),
        (
            "shared_families",
            "Families that several sources of this scrape have without a label that tells them apart",
            shared,
        ),
    ] {
        let _ = write!(
            text,
            "# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} gauge\n{PREFIX}{name} {value}\n"
        );
    }
    text
}

const PREFIX: &str = "app_health_agent_";

#[cfg(test)]
mod tests;
