//! Exposition formats, identified by their Content-Type.

/// The two line-based exposition formats of Prometheus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' text format 0.0.4.
    Text,
    /// OpenMetrics 1.0.0.
    OpenMetrics,
}

impl Format {
    /// Returns the Content-Type of a response in this format.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }

    /// Returns the format of a source's Content-Type; without a Content-Type it is text. `None`
    /// means that the format is not supported.
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
