use super::*;
use Format::{OpenMetrics, Text};

fn sample<'a>(name: &'a str, series: &'a str, value: &'a str, timestamp: Option<&'a str>) -> Sample<'a> {
    let labels =
        Labels { length: series.find('{').map_or(0, |from| series.len() - from), ..Labels::default() };
    Sample { name, series, labels, value, timestamp, exemplar: None }
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
        ("# TYPE a counter", Some(Line::Type { family: "a", kind: "counter" })),
        ("#  TYPE a  untyped ", Some(Line::Type { family: "a", kind: "untyped" })),
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
        ("# EOF", Some(Line::Eof)),
        ("# UNIT a_seconds seconds", Some(Line::Unit { family: "a_seconds", unit: "seconds" })),
        ("# UNIT a ", Some(Line::Unit { family: "a", unit: "" })),
        ("# UNIT a seconds", None),
        ("# UNIT seconds seconds", None),
        ("# TYPE a unknown", Some(Line::Type { family: "a", kind: "unknown" })),
        ("# TYPE a gaugehistogram", Some(Line::Type { family: "a", kind: "gaugehistogram" })),
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
    let plain = |line| match Line::parse(line, OpenMetrics) {
        Some(Line::Sample(Sample { value, timestamp, exemplar, .. })) => Some((value, timestamp, exemplar)),
        _ => None,
    };
    for (line, expected) in [
        ("a 1", Some(("1", None, None))),
        ("a{b=\"c\"} 1 1.5", Some(("1", Some("1.5"), None))),
        ("a 1 -5", Some(("1", Some("-5"), None))),
        ("a_bucket{le=\"1\"} 3 # {id=\"#\"} 0.5 9", Some(("3", None, Some("{id=\"#\"} 0.5 9")))),
        ("a 3 1e3 # {} 0.5", Some(("3", Some("1e3"), Some("{} 0.5")))),
        ("a 1 NaN", None),
        ("a 1 +Inf", None),
        ("a 1 1e999", None),
        ("a -nan", None),
        ("a {b=\"c\"} 1", None),
        ("a{b=\"c\"}1", None),
        ("a{b=\"c\", d=\"e\"} 1", None),
        ("a 1 # ", None),
        ("a 1 # {}", None),
        ("a 1 # {} x", None),
        ("a 1 # {} 1 NaN", None),
        ("a 1 # {} 1 2 3", None),
        ("a 1 # {id} 1", None),
        ("a 1 #comment", None),
    ] {
        assert_eq!(plain(line), expected, "{line:?}");
    }
}
