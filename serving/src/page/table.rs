//! Tables of a page, as values: the server renders them as HTML, and the page's script renders the
//! same values from JSON.

use std::time::Duration;

use serde::{Serialize, Serializer};

/// A table; the first cell of each row is the header of the row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Table {
    /// Identifier of the table in the page.
    pub id: &'static str,
    pub caption: &'static str,
    /// Explanation below the caption; may be empty.
    pub note: String,
    pub columns: &'static [&'static str],
    /// Each row has as many cells as there are columns.
    pub rows: Vec<Vec<Cell>>,
}

/// JSON: a string, `{"tone": "bad", "text": "failing"}`, `{"at": 1500}` with milliseconds, or
/// `{"results": [["ok", 12, true], ["refused", 1, false]]}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Cell {
    Text(String),
    Status {
        tone: Tone,
        text: String,
    },
    /// A time since the start of the process, shown as an age.
    At {
        #[serde(serialize_with = "millis")]
        at: Duration,
    },
    /// Results, oldest first.
    Results {
        results: Results,
    },
}

/// Results as runs of equal ones: reason, number, and whether it is a success.
pub type Results = Vec<(String, u32, bool)>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    Good,
    Bad,
    /// Neither good nor bad, such as an unknown status.
    Plain,
}

impl Tone {
    /// Returns the name of the CSS class.
    pub fn word(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Plain => "plain",
        }
    }
}

impl Cell {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub fn status(tone: Tone, text: impl Into<String>) -> Self {
        Self::Status { tone, text: text.into() }
    }
}

fn millis<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}
