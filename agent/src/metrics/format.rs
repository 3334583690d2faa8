//! PURE. The formats of an exposition, by their Content-Type.

/// The two formats of Prometheus that are lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' text format 0.0.4.
    Text,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl Format {
    /// Content-Type of the whole.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// From a part's Content-Type; without one it is text. `None`: neither.
    pub fn of(content_type: Option<&str>) -> Option<Self> {
        let kind =
            content_type.map_or("text/plain", |text| text.split(';').next().unwrap_or_default().trim());
        match kind {
            _ if kind.eq_ignore_ascii_case("text/plain") => Some(Self::Text),
            _ if kind.eq_ignore_ascii_case("application/openmetrics-text") => Some(Self::OpenMetrics),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
