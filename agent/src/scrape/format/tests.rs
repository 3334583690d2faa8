use super::*;

#[test]
fn formats() {
    for (content_type, format) in [
        (None, Some(Format::Text)),
        (Some("text/plain; version=0.0.4"), Some(Format::Text)),
        (Some("TEXT/PLAIN"), Some(Format::Text)),
        (Some("application/openmetrics-text; version=1.0.0"), Some(Format::OpenMetrics)),
        (Some("application/vnd.google.protobuf"), None),
        (Some("text/html"), None),
    ] {
        assert_eq!(Format::of(content_type), format, "{content_type:?}");
    }
}
