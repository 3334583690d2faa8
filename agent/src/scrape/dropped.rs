//! Counts the lines of a source that are not part of the merged metrics, by reason.

/// Reason why a line is not part of the merged metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropReason {
    TooLong,
    NotUtf8,
    InvalidName,
    InvalidLabels,
    DuplicateLabel,
    /// The name is valid only in quotes, and the scraper does not accept such names.
    QuotedName,
    InvalidValue,
    InvalidTimestamp,
    /// `le` of a histogram, or `quantile` of a summary.
    InvalidBound,
    InvalidType,
    TooManyFamilies,
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

impl DropReason {
    pub const ALL: [Self; 11] = [
        Self::TooLong,
        Self::NotUtf8,
        Self::InvalidName,
        Self::InvalidLabels,
        Self::DuplicateLabel,
        Self::QuotedName,
        Self::InvalidValue,
        Self::InvalidTimestamp,
        Self::InvalidBound,
        Self::InvalidType,
        Self::TooManyFamilies,
    ];

    /// Returns the reason as a metric label.
    pub fn word(self) -> &'static str {
        match self {
            Self::TooLong => "too_long",
            Self::NotUtf8 => "not_utf8",
            Self::InvalidName => "invalid_name",
            Self::InvalidLabels => "invalid_labels",
            Self::DuplicateLabel => "duplicate_label",
            Self::QuotedName => "quoted_name",
            Self::InvalidValue => "invalid_value",
            Self::InvalidTimestamp => "invalid_timestamp",
            Self::InvalidBound => "invalid_bound",
            Self::InvalidType => "invalid_type",
            Self::TooManyFamilies => "too_many_families",
        }
    }
}

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
