use std::time::Duration;

use super::{duration_string, parse_duration, unquote};

#[test]
fn durations_are_read_as_by_go() {
    let cases = [
        ("0", Some(Duration::ZERO)),
        ("45s", Some(Duration::from_secs(45))),
        ("1m30s", Some(Duration::from_secs(90))),
        ("1.5h", Some(Duration::from_secs(5400))),
        (".5s", Some(Duration::from_millis(500))),
        ("5.s", Some(Duration::from_secs(5))),
        ("100ms", Some(Duration::from_millis(100))),
        ("", None),
        ("5", None),
        (".s", None),
        ("5 s", None),
        ("5d", None),
        ("1.2.3s", None),
        ("0.000000001s", Some(Duration::from_nanos(1))),
        ("2562047h", Some(Duration::from_secs(2_562_047 * 3600))),
        ("2562048h", None),
        ("99999999999999999999h", None),
    ];
    for (text, expected) in cases {
        assert_eq!(parse_duration(text), expected, "{text}");
    }
}

#[test]
fn durations_are_written_as_by_go() {
    let cases = [
        (0, "0s"),
        (1, "1ns"),
        (1_500, "1.5µs"),
        (2_000_000, "2ms"),
        (1_500_000_000, "1.5s"),
        (60_000_000_000, "1m0s"),
        (3_600_000_000_000, "1h0m0s"),
        (5_405_250_000_000, "1h30m5.25s"),
    ];
    for (nanoseconds, expected) in cases {
        assert_eq!(duration_string(Duration::from_nanos(nanoseconds)), expected);
    }
}

#[test]
fn quoted_texts_are_read_as_by_go() {
    let cases = [
        (r#""plain""#, Some("plain")),
        (r#""a\n\t\"\\b""#, Some("a\n\t\"\\b")),
        (r#""\x41\101\u00e9\U0001F600""#, Some("AAé😀")),
        (r#""\a\b\f\r\v""#, Some("\u{7}\u{8}\u{c}\r\u{b}")),
        ("`a\\n`", Some("a\\n")),
        (r#""a"b""#, None),
        (r#""a"#, None),
        ("a", None),
        ("\"", None),
        (r#""\q""#, None),
        (r#""\400""#, None),
        (r#""\ud800""#, None),
    ];
    for (text, expected) in cases {
        assert_eq!(unquote(text).as_deref(), expected, "{text}");
    }
}
