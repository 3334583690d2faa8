use super::*;

fn sample<'a>(
    name: &'a str,
    series: &'a str,
    value: &'a str,
    timestamp: Option<&'a str>,
) -> Option<Line<'a>> {
    Some(Line::Sample(Sample { name, series, value, timestamp }))
}

#[test]
fn lines() {
    for (line, expected) in [
        ("", Some(Line::Comment)),
        ("# some words", Some(Line::Comment)),
        ("#", Some(Line::Comment)),
        ("# EOF", Some(Line::Eof)),
        ("# UNIT a seconds", Some(Line::Unit)),
        ("# HELP a what it is", Some(Line::Help { family: "a", text: "what it is" })),
        ("# HELP a", Some(Line::Help { family: "a", text: "" })),
        ("#TYPE a counter", Some(Line::Type { family: "a", kind: "counter" })),
        ("# TYPE a", None),
        ("a 1", sample("a", "a", "1", None)),
        ("a{} 1 5", sample("a", "a{}", "1", Some("5"))),
        ("a{b=\"}\\\" #\"} +Inf", sample("a", "a{b=\"}\\\" #\"}", "+Inf", None)),
        ("a {b=\"c\"}NaN", sample("a", "a {b=\"c\"}", "NaN", None)),
        ("a:b_1 -1e3\t7", sample("a:b_1", "a:b_1", "-1e3", Some("7"))),
        ("a_bucket{le=\"1\"} 3 # {id=\"x\"} 0.5 9", sample("a_bucket", "a_bucket{le=\"1\"}", "3", None)),
        ("a", None),
        ("a one", None),
        ("a 1 2 3", None),
        ("a 1 x", None),
        ("1a 1", None),
        ("<html>", None),
        ("a{b=\"c 1", None),
        ("{\"a\": 1}", None),
    ] {
        assert_eq!(Line::parse(line), expected, "{line:?}");
    }
}
