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
        ("{a=\"1\"b=\"2\"}", Some(12)),
        ("{a=\"1\",a=\"2\"}", None),
        ("{a=\"\\q\"}", Some(8)),
        ("{a=\"\\", None),
        ("{__name__=\"a\"}", None),
        ("{\"a.b\"=\"1\"}", Some(11)),
        ("{\"a.b\"}", Some(7)),
        ("{\"a.b\",\"c\"}", None),
        ("{\"\"}", None),
        ("{\"\"=\"1\"}", None),
        ("{\"__name__\"=\"a\"}", None),
        ("{\"a\"=\"1\",a=\"2\"}", None),
        ("{\"a\" \"b\"}", None),
        ("{ä=\"1\"}", None),
        ("{a=\"b\"", None),
        ("{a=\"b", None),
        ("{", None),
    ] {
        assert_eq!(Labels::parse(text).ok().map(|labels| labels.length), length, "{text}");
    }
}

#[test]
fn blanks_between_tokens() {
    for text in ["{ }", "{ a=\"b\"}", "{a =\"b\"}", "{a= \"b\"}", "{a=\"b\"\t}", "{a=\"b\", c=\"d\"}"] {
        let length = Labels::parse(text).ok().map(|labels| labels.length);
        assert_eq!(length, Some(text.len()), "{text}");
    }
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
    assert!(Labels::parse(&many(0..5000, "m")).is_ok());
    assert!(Labels::parse(&many(0..5000, "l2500")) == Err(DropReason::DuplicateLabel));
}

#[test]
fn labels_that_are_written_in_another_form() {
    for (text, rewrite, quotes) in [
        ("{a=\"b\",}", false, false),
        ("{ a = \"\\\\ \\n \\\"\" }", false, false),
        ("{a=\"1\" b=\"2\"}", true, false),
        ("{a=\"C:\\dir\"}", true, false),
        ("{a=\"\\ä\"}", true, false),
        ("{\"a\"=\"1\"}", true, false),
        ("{\"a:b\"}", true, false),
        ("{\"a:b\"=\"1\"}", true, true),
        ("{\"a.b\",c=\"d\"}", true, true),
    ] {
        let labels = Labels::parse(text).unwrap();
        assert_eq!((labels.needs_rewrite, labels.needs_quotes), (rewrite, quotes), "{text}");
    }
    let labels = Labels::parse("{c=\"d\",\"a.b\",metrics_target=\"1\"}").unwrap();
    assert_eq!((labels.name, labels.count, labels.has_target), (Some("a.b"), 2, true));
}
