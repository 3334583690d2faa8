use super::*;

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
    for (seconds, is_good) in
        [("1.5", true), ("-1", true), ("1e300", true), ("NaN", false), ("+Inf", false), ("x", false)]
    {
        assert_eq!(is_seconds(seconds), is_good, "{seconds}");
    }
}

#[test]
fn seconds_in_milliseconds() {
    for (seconds, expected) in [
        ("1.5", Some(1500)),
        ("12.0004", Some(12000)),
        ("-0", Some(0)),
        ("-0.0001", Some(0)),
        ("-1", None),
        ("NaN", None),
        ("1e300", None),
        ("9223372036854775.8", None),
        ("1730000000.123", Some(1_730_000_000_123)),
    ] {
        assert_eq!(millis(seconds), expected, "{seconds}");
    }
}
