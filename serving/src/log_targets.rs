//! The targets of log lines. They name a module as if the crates of a program were its modules, so that
//! a search in a log does not depend on which crate a module is in.

use std::fmt;

use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Formats an event with `format`, and replaces the crate's name at the start of its target.
#[derive(Debug)]
pub struct LogTargets<F> {
    pub format: F,
    /// Names of crates, and what a line shows in place of each.
    pub names: &'static [(&'static str, &'static str)],
}

impl<F> LogTargets<F> {
    /// Returns the target to show; `None` if it is the event's own.
    fn shown(&self, target: &str) -> Option<String> {
        let (name, rest) = target.split_at(target.find("::").unwrap_or(target.len()));
        let (_, shown) = self.names.iter().find(|(known, _)| *known == name)?;
        Some(format!("{shown}{rest}"))
    }
}

impl<S, N, F> FormatEvent<S, N> for LogTargets<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let target = event.metadata().target();
        let Some(shown) = self.shown(target) else {
            return self.format.format_event(context, writer, event);
        };
        let mut line = String::new();
        self.format.format_event(context, Writer::new(&mut line), event)?;
        let (before, after) = if line.starts_with('{') { ("\"target\":\"", '"') } else { (" ", ':') };
        let replaced =
            line.replacen(&format!("{before}{target}{after}"), &format!("{before}{shown}{after}"), 1);
        writer.write_str(&replaced)
    }
}

#[cfg(test)]
mod tests;
