use super::*;

#[test]
fn numbers_as_prometheus_3_stores_them() {
    for (text, expected) in [
        ("1", "1.0"),
        ("0", "0.0"),
        ("-0", "0.0"),
        ("-1", "-1.0"),
        ("+Inf", "+Inf"),
        ("inf", "+Inf"),
        ("-Inf", "-Inf"),
        ("NaN", "NaN"),
        ("0.005", "0.005"),
        ("0.50", "0.5"),
        ("1e-5", "1e-05"),
        ("0.0001", "0.0001"),
        ("10", "10.0"),
        ("100000", "100000.0"),
        ("1000000", "1e+06"),
        ("1234567", "1.234567e+06"),
        ("2.5e10", "2.5e+10"),
        ("123456.75", "123456.75"),
        ("1e100", "1e+100"),
        ("-1.5e-7", "-1.5e-07"),
    ] {
        assert_eq!(normalized(text).as_deref(), Some(expected), "{text}");
    }
    for text in ["", "abc", "1_0", "0x1p4", "\\\\1", "-nan", "+NaN", "1e999"] {
        assert_eq!(normalized(text), None, "{text}");
    }
}
