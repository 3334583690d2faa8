use super::*;

#[test]
fn valid_and_invalid_labels() {
    for (text, length) in [
        ("{}", Some(2)),
        ("{a=\"b\"} 1", Some(7)),
        ("{a=\"b\",}", Some(8)),
        ("{a=\"\",_b1=\"}\\\" \\\\ \\n ,\"}rest", Some(24)),
        ("{foo}", None),
        ("{1a=\"1\"}", None),
        ("{a=1}", None),
        ("{,}", None),
        ("{a=\"b\",,}", None),
        ("{a:b=\"1\"}", None),
        ("{a=\"1\"b=\"2\"}", None),
        ("{a=\"1\",a=\"2\"}", None),
        ("{a=\"\\q\"}", None),
        ("{a=\"\\", None),
        ("{__name__=\"a\"}", None),
        ("{\"a.b\"=\"1\"}", None),
        ("{\"a.b\"}", None),
        ("{ä=\"1\"}", None),
        ("{a=\"b\"", None),
        ("{a=\"b", None),
        ("{", None),
    ] {
        assert_eq!(Labels::parse(text).map(|labels| labels.length), length, "{text}");
    }
}

#[test]
fn blanks_between_tokens() {
    for text in ["{ }", "{ a=\"b\"}", "{a =\"b\"}", "{a= \"b\"}", "{a=\"b\"\t}", "{a=\"b\", c=\"d\"}"] {
        let length = Labels::parse(text).map(|labels| labels.length);
        assert_eq!(length, Some(text.len()), "{text}");
    }
    assert_eq!(Labels::parse("{a=\"1\" b=\"2\"}"), None, "a comma is missing");
}

#[test]
fn le_and_quantile() {
    let labels = Labels::parse("{a=\"b\",le=\"0.5\",quantile=\"x\"}").unwrap();
    assert_eq!((labels.le, labels.quantile), (Some("0.5"), Some("x")));
}

#[test]
fn duplicates_among_many_labels() {
    let many = |names: std::ops::Range<u32>, last: &str| {
        let labels: String = names.map(|number| format!("l{number}=\"\",")).collect();
        format!("{{{labels}{last}=\"\"}}")
    };
    assert!(Labels::parse(&many(0..5000, "m")).is_some());
    assert!(Labels::parse(&many(0..5000, "l2500")).is_none());
}
