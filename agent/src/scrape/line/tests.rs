use super::*;
use Format::{OpenMetrics, Text};

fn sample<'a>(name: &'a str, series: &'a str, value: &'a str, timestamp: Option<&'a str>) -> Sample<'a> {
    let labels =
        Labels { length: series.find('{').map_or(0, |from| series.len() - from), ..Labels::default() };
    Sample { name, series, labels, value, timestamp: timestamp.map(Cow::from) }
}

fn typed<'a>(family: &'a str, name: &'a str, kind: &'a str) -> Line<'a> {
    Line::Type { family, name: name.into(), kind }
}

#[test]
fn formats() {
    for (content_type, format) in [
        (None, Some(Text)),
        (Some("text/plain; version=0.0.4"), Some(Text)),
        (Some("TEXT/PLAIN"), Some(Text)),
        (Some("application/openmetrics-text; version=1.0.0"), Some(OpenMetrics)),
        (Some("application/vnd.google.protobuf"), None),
        (Some("text/html"), None),
    ] {
        assert_eq!(Format::of(content_type), format, "{content_type:?}");
    }
}

#[test]
fn comments() {
    for (line, expected) in [
        ("", Some(Line::Comment)),
        (" \t", Some(Line::Comment)),
        ("\u{c}", None),
        ("\u{3000}", None),
        ("# some words", Some(Line::Comment)),
        ("#", Some(Line::Comment)),
        ("# ", Some(Line::Comment)),
        ("# EOF", Some(Line::Comment)),
        ("# UNIT a seconds", Some(Line::Comment)),
        ("# HELP", Some(Line::Comment)),
        ("# HELPa b", Some(Line::Comment)),
        ("#TYPE a counter", Some(Line::Comment)),
        ("#TYPE x foo", Some(Line::Comment)),
        ("# HELP a what it is", Some(Line::Help { family: "a", text: "what it is" })),
        ("# HELP a", Some(Line::Help { family: "a", text: "" })),
        ("#\tHELP\ta:b\tc", Some(Line::Help { family: "a:b", text: "c" })),
        ("# HELP 0x y", None),
        ("# HELP x-y z", None),
        ("# HELP \"a b\" y", None),
        ("# TYPE a counter", Some(typed("a", "a", "counter"))),
        ("#  TYPE a  untyped ", Some(typed("a", "a", "untyped"))),
        ("# TYPE a", None),
        ("# TYPE x ", None),
        ("# TYPE x foo", None),
        ("# TYPE x unknown", None),
        ("# TYPE x info", None),
        ("# TYPE x stateset", None),
        ("# TYPE x gaugehistogram", None),
        ("# TYPE x Counter", None),
        ("# TYPE x counter foo", None),
        ("# TYPE x-y counter", None),
        ("# TYPE 0x counter", None),
    ] {
        assert_eq!(Line::parse(line, Text), expected, "{line:?}");
    }
}

#[test]
fn comments_of_open_metrics() {
    for (line, expected) in [
        ("# EOF", Some(Line::Comment)),
        ("# UNIT a_seconds seconds", Some(Line::Comment)),
        ("# TYPE a counter", Some(typed("a", "a_total", "counter"))),
        ("# TYPE a_total counter", Some(typed("a_total", "a_total", "counter"))),
        ("# TYPE a info", Some(typed("a", "a_info", "gauge"))),
        ("# TYPE a stateset", Some(typed("a", "a", "gauge"))),
        ("# TYPE a unknown", Some(typed("a", "a", "untyped"))),
        ("# TYPE a gaugehistogram", Some(typed("a", "a", "untyped"))),
        ("# TYPE a untyped", None),
        ("# HELP a b", Some(Line::Help { family: "a", text: "b" })),
    ] {
        assert_eq!(Line::parse(line, OpenMetrics), expected, "{line:?}");
    }
}

#[test]
fn samples() {
    for (line, expected) in [
        ("a 1", sample("a", "a", "1", None)),
        ("a\t1 ", sample("a", "a", "1", None)),
        ("a{} 1 5 ", sample("a", "a{}", "1", Some("5"))),
        ("a{b=\"}\\\" #\"} +Inf", sample("a", "a{b=\"}\\\" #\"}", "+Inf", None)),
        ("a{b=\"1\",} 1", sample("a", "a{b=\"1\",}", "1", None)),
        ("a:b_1 -1e3\t7", sample("a:b_1", "a:b_1", "-1e3", Some("7"))),
    ] {
        assert_eq!(Line::parse(line, Text), Some(Line::Sample(expected)), "{line:?}");
    }
    let Some(Line::Sample(found)) = Line::parse("a {b=\"c\"}NaN", Text) else {
        panic!("this is a valid sample")
    };
    assert_eq!((found.series, found.value), ("a {b=\"c\"}", "NaN"));
}

#[test]
fn invalid_samples() {
    for line in [
        "a",
        "a ",
        "a one",
        "a 1 2 3",
        "a 1 x",
        "1a 1",
        "a+1",
        "a-b 1",
        " a 1",
        "\u{feff}a 1",
        "<html>",
        "a{b=\"c 1",
        "{\"a\": 1}",
        "{\"a.b\"} 1",
        "x -nan",
        "x +NaN",
        "x 1 # {a=\"b\"} 1",
        "x 1 1.5",
        "x 1 1e3",
        "x 1 NaN",
        "x 1 -5",
        "x 1 99999999999999999999999",
        "x 1 #comment",
        "x 1#comment",
        "x{foo} 1",
        "x{1a=\"1\"} 1",
        "x{a=1} 1",
        "x{,} 1",
        "x{a:b=\"1\"} 1",
        "x 1\r2",
        "x 1\r",
        "x 1\u{c}2",
        "x\u{c}1",
        "x 1\u{a0}",
        "x{a=\"1\",a=\"2\"} 1",
        "x{a=\"\\q\"} 1",
        "x{a=\"1\" b=\"2\"} 1",
        "x{a=\"1\"}{b=\"2\"} 1",
        "x .",
        "x 0x10",
        "x 1_000",
    ] {
        assert_eq!(Line::parse(line, Text), None, "{line:?}");
    }
    assert_eq!(Line::parse(&format!("x {}", "1".repeat(5000)), Text), None);
}

#[test]
fn samples_of_open_metrics() {
    for (line, expected) in [
        ("a 1", Some(("1", None))),
        ("a{b=\"c\"} 1 1.5", Some(("1", Some("1500")))),
        ("a_bucket{le=\"1\"} 3 # {id=\"#\"} 0.5 9", Some(("3", None))),
        ("a{b=\"#\"} 3 1e3 # {} 0.5", Some(("3", Some("1000000")))),
        ("a 1 0.0004", Some(("1", Some("0")))),
        ("a 1 -5", None),
        ("a 1 NaN", None),
        ("a 1 +Inf", None),
        ("a 1 1e300", None),
        ("a 1 soon", None),
        ("a -nan", None),
        ("a # {} 1", None),
    ] {
        let found = match Line::parse(line, OpenMetrics) {
            Some(Line::Sample(Sample { value, timestamp, .. })) => Some((value, timestamp)),
            _ => None,
        };
        let found = found.as_ref().map(|(value, timestamp)| (*value, timestamp.as_deref()));
        assert_eq!(found, expected, "{line:?}");
    }
}

#[test]
fn values() {
    for good in [
        "0",
        "1",
        "+5",
        "-1e3",
        "1E9",
        ".5",
        "5.",
        "1e-999",
        "NaN",
        "nan",
        "Inf",
        "+Inf",
        "-inf",
        "infinity",
        "-Infinity",
    ] {
        assert!(is_value(good), "{good}");
    }
    for bad in [
        "", ".", "+", "-", "e5", "1e", "-nan", "+NaN", "1e999", "-1e999", "0x10", "0x1p4", "1_000", "1\r2",
        "1\u{c}2", "one", "1,5", "nano", "infinit", "１",
    ] {
        assert!(!is_value(bad), "{bad}");
    }
    assert!(!is_value(&"1".repeat(5000)), "out of range");
    assert!(is_value(&format!("0.{}1", "0".repeat(5000))), "long, but in range");
}

#[test]
fn timestamps() {
    for good in ["0", "1500", "9223372036854775807"] {
        assert!(is_millis(good), "{good}");
    }
    for bad in ["", "-5", "+5", "1.5", "1e3", "NaN", "9223372036854775808", "99999999999999999999999"] {
        assert!(!is_millis(bad), "{bad}");
    }
}
