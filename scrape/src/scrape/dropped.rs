//! Counts the lines of a source that are not part of the merged metrics, by reason.

enum_table::table! {
    /// Reason why a line is not part of the merged metrics.
    pub enum DropReason(
        /// Returns the reason as a metric label.
        word: &'static str,
    ) {
        TooLong("too_long"),
        NotUtf8("not_utf8"),
        InvalidName("invalid_name"),
        InvalidLabels("invalid_labels"),
        DuplicateLabel("duplicate_label"),
        /// The name is valid only in quotes, and the scraper does not accept such names.
        QuotedName("quoted_name"),
        InvalidValue("invalid_value"),
        InvalidTimestamp("invalid_timestamp"),
        /// `le` of a histogram, or `quantile` of a summary.
        InvalidBound("invalid_bound"),
        InvalidType("invalid_type"),
        TooManyFamilies("too_many_families"),
    }
}

/// Lines that were dropped for one reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DroppedLines {
    pub count: u64,
    /// Number of the first of these lines; the first line of a source has the number 1.
    pub first: u64,
}

/// Dropped lines of a source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped([DroppedLines; DropReason::ALL.len()]);

impl Dropped {
    pub(super) fn add(&mut self, reason: DropReason, line: u64) {
        let lines = &mut self.0[reason as usize];
        if lines.count == 0 {
            lines.first = line;
        }
        lines.count += 1;
    }

    pub fn total(&self) -> u64 {
        self.0.iter().map(|lines| lines.count).sum()
    }

    /// Returns the lines of each reason that occurred.
    pub fn by_reason(&self) -> impl Iterator<Item = (DropReason, DroppedLines)> {
        DropReason::ALL.into_iter().zip(self.0).filter(|(_, lines)| lines.count > 0)
    }

    pub(super) fn has(&self, reason: DropReason) -> bool {
        self.0[reason as usize].count > 0
    }
}

#[cfg(test)]
mod tests;
