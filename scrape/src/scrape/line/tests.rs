use DropReason::*;
use Format::{OpenMetrics, Text};

use super::*;

fn sample<'a>(name: &'a str, series: &'a str, value: &'a str, timestamp: Option<&'a str>) -> Sample<'a> {
    let labels = series.find('{').map_or(Labels::default(), |from| Labels::parse(&series[from..]).unwrap());
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
        (Some("application/openmetrics-text"), Some(OpenMetrics)),
        (Some("application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily"), None),
        (Some("text/html; charset=utf-8"), Some(Text)),
        (Some("application/json"), Some(Text)),
        (Some(""), Some(Text)),
        (Some(";;"), Some(Text)),
    ] {
        assert_eq!(Format::of(content_type), format, "{content_type:?}");
    }
}

#[test]
fn comments() {
    for (line, expected) in [
        ("", Ok(Line::Comment)),
        (" \t", Ok(Line::Comment)),
        ("\u{c}", Err(InvalidName)),
        ("\u{3000}", Err(InvalidName)),
        ("# some words", Ok(Line::Comment)),
        ("#", Ok(Line::Comment)),
        ("# ", Ok(Line::Comment)),
        ("# EOF", Ok(Line::Eof)),
        ("# UNIT a seconds", Ok(Line::Comment)),
        ("# HELP", Ok(Line::Comment)),
        ("# HELPa b", Ok(Line::Comment)),
        ("#TYPE a counter", Ok(Line::Comment)),
        ("#TYPE x foo", Ok(Line::Comment)),
        ("# HELP a what it is", Ok(Line::Help { family: "a", text: "what it is" })),
        ("# HELP a  two  blanks ", Ok(Line::Help { family: "a", text: " two  blanks " })),
        ("# HELP a", Ok(Line::Help { family: "a", text: "" })),
        ("#\tHELP\ta:b\tc", Ok(Line::Help { family: "a:b", text: "c" })),
        ("# HELP 0x y", Err(InvalidName)),
        ("# HELP x-y z", Err(InvalidName)),
        ("# HELP \"a b\" y", Ok(Line::Help { family: "a b", text: "y" })),
        (" # HELP a b", Ok(Line::Help { family: "a", text: "b" })),
        ("# HELP \"\" y", Err(InvalidName)),
        ("# HELP \"a y", Err(InvalidName)),
        ("# TYPE \"a.b\" gauge", Ok(typed("a.b", "a.b", "gauge"))),
        ("# TYPE a counter", Ok(typed("a", "a", "counter"))),
        ("#  TYPE a  untyped ", Ok(typed("a", "a", "untyped"))),
        ("# TYPE a", Err(InvalidType)),
        ("# TYPE x ", Err(InvalidType)),
        ("# TYPE x foo", Err(InvalidType)),
        ("# TYPE x unknown", Err(InvalidType)),
        ("# TYPE x info", Err(InvalidType)),
        ("# TYPE x stateset", Err(InvalidType)),
        ("# TYPE x gaugehistogram", Err(InvalidType)),
        ("# TYPE x Counter", Err(InvalidType)),
        ("# TYPE x counter foo", Err(InvalidType)),
        ("# TYPE x-y counter", Err(InvalidName)),
        ("# TYPE 0x counter", Err(InvalidName)),
    ] {
        assert_eq!(Line::parse(line, Text), expected, "{line:?}");
    }
}

#[test]
fn comments_of_open_metrics() {
    for (line, expected) in [
        ("# EOF", Ok(Line::Eof)),
        ("# EOF ", Ok(Line::Comment)),
        ("# TYPE \"a.b\" counter", Ok(typed("a.b", "a.b_total", "counter"))),
        ("# UNIT a_seconds seconds", Ok(Line::Comment)),
        ("# TYPE a counter", Ok(typed("a", "a_total", "counter"))),
        ("# TYPE a_total counter", Ok(typed("a_total", "a_total", "counter"))),
        ("# TYPE a info", Ok(typed("a", "a_info", "gauge"))),
        ("# TYPE a stateset", Ok(typed("a", "a", "gauge"))),
        ("# TYPE a unknown", Ok(typed("a", "a", "untyped"))),
        ("# TYPE a gaugehistogram", Ok(typed("a", "a", "untyped"))),
        ("# TYPE a untyped", Err(InvalidType)),
        ("# HELP a b", Ok(Line::Help { family: "a", text: "b" })),
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
        ("a{b=\"1\" c=\"2\"} 1", sample("a", "a{b=\"1\" c=\"2\"}", "1", None)),
        ("a{b=\"\\d\"} 1", sample("a", "a{b=\"\\d\"}", "1", None)),
        (" \ta 1", sample("a", "a", "1", None)),
        ("{\"a.b\"} 1", sample("a.b", "{\"a.b\"}", "1", None)),
        ("a{b=\"\0\u{1}\"} 1", sample("a", "a{b=\"\0\u{1}\"}", "1", None)),
        ("a:b_1 -1e3\t7", sample("a:b_1", "a:b_1", "-1e3", Some("7"))),
    ] {
        assert_eq!(Line::parse(line, Text), Ok(Line::Sample(expected)), "{line:?}");
    }
    let Ok(Line::Sample(found)) = Line::parse("a {b=\"c\"}NaN", Text) else {
        panic!("this is a valid sample")
    };
    assert_eq!((found.series, found.value), ("a {b=\"c\"}", "NaN"));
}

#[test]
fn invalid_samples() {
    for (reason, lines) in [
        (
            InvalidName,
            vec![
                "a",
                "1a 1",
                "a+1",
                "a-b 1",
                "a.b 1",
                "\u{feff}a 1",
                "<html>",
                "{\"a\" 1",
                "{a=\"1\"} 1",
                "{} 1",
                "ä 1",
                "x\u{c}1",
                "\0",
                "x{\"y\"} 1",
                "[{\"a\": 1}]",
            ],
        ),
        (
            InvalidLabels,
            vec![
                "a{b=\"c 1",
                "{\"a\": 1}",
                "x{foo} 1",
                "x{1a=\"1\"} 1",
                "x{a=1} 1",
                "x{a='1'} 1",
                "x{,} 1",
                "x{a=\"1\",,} 1",
                "x{a:b=\"1\"} 1",
                "x{__name__=\"y\"} 1",
                "x{\"\"=\"1\"} 1",
                "x{a=\"1\";b=\"2\"} 1",
            ],
        ),
        (DuplicateLabel, vec!["x{a=\"1\",a=\"2\"} 1"]),
        (
            InvalidValue,
            vec![
                "a ",
                "a one",
                "x -nan",
                "x +NaN",
                "x 1#comment",
                "x 1\r2",
                "x 1\r",
                "x 1\u{c}2",
                "x 1\u{a0}",
                "x{a=\"1\"}{b=\"2\"} 1",
                "x .",
                "x 0x10",
                "x 0x1p4",
                "x 1_000",
                "x 1e999",
            ],
        ),
        (
            InvalidTimestamp,
            vec![
                "a 1 2 3",
                "a 1 x",
                "x 1 # {a=\"b\"} 1",
                "x 1 1.5",
                "x 1 1e3",
                "x 1 NaN",
                "x 1 -5",
                "x 1 +5",
                "x 1 99999999999999999999999",
                "x 1 #comment",
            ],
        ),
    ] {
        for line in lines {
            let found = Line::parse(line, Text);
            // The reason of a line that is no metric at all does not matter.
            let is_other = reason == InvalidName && matches!(found, Err(InvalidLabels));
            assert!(found == Err(reason) || is_other, "{line:?}: {found:?}");
        }
    }
    assert_eq!(Line::parse(&format!("x {}", "1".repeat(5000)), Text), Err(InvalidValue));
}

#[test]
fn samples_of_open_metrics() {
    for (line, expected) in [
        ("a 1", Some(("1", None))),
        ("a{b=\"c\"} 1 1.5", Some(("1", Some("1500")))),
        ("a_bucket{le=\"1\"} 3 # {id=\"#\"} 0.5 9", Some(("3", None))),
        ("a{b=\"#\"} 3 1e3 # {} 0.5", Some(("3", Some("1000000")))),
        ("a 1 0.0004", Some(("1", Some("0")))),
        ("a 1 -0.0004", Some(("1", Some("0")))),
        ("a 1 1.9999", Some(("1", Some("1999")))),
        ("a 1 1e12", Some(("1", Some("1000000000000000")))),
        ("a 1 -5", None),
        ("a 1 NaN", None),
        ("a 1 +Inf", None),
        ("a 1 1e300", None),
        ("a 1 soon", None),
        ("a -nan", None),
        ("a # {} 1", None),
    ] {
        let found = match Line::parse(line, OpenMetrics) {
            Ok(Line::Sample(Sample { value, timestamp, .. })) => Some((value, timestamp)),
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
