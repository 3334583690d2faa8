use super::super::line::{Format, Line};
use super::*;

const THREE: Reader = Reader { is_prometheus: true, normalizes_bounds: true, accepts_quoted_names: true };

fn written(line: &str, kind: Kind, target: Option<&str>, reader: Reader) -> String {
    let Ok(Line::Sample(sample)) = Line::parse(line, Format::Text) else { panic!("{line} is a sample") };
    let mut out = Vec::new();
    write(&mut out, &sample, Bound::of(&sample, kind), target, reader);
    String::from_utf8(out).unwrap()
}

#[test]
fn series_that_some_parsers_reject_are_rewritten() {
    for (line, expected) in [
        ("a 1", "a"),
        ("a{} 1", "a{}"),
        ("a{b=\"c\",} 1", "a{b=\"c\",}"),
        ("a{b=\"C:\\dir\\x\"} 1", "a{b=\"C:\\\\dir\\\\x\"}"),
        ("a{b=\"\\\\d \\n \\\" \\ä \\\\\"} 1", "a{b=\"\\\\d \\n \\\" \\\\ä \\\\\"}"),
        ("a{b=\"1\" c=\"2\"} 1", "a{b=\"1\",c=\"2\"}"),
        ("a{b=\"1\"c=\"2\", } 1", "a{b=\"1\",c=\"2\"}"),
        ("{\"a\",\"b\"=\"1\"} 1", "a{b=\"1\"}"),
        ("{\"a\"} 1", "a"),
        ("{\"a.b\"} 1", "{\"a.b\"}"),
        ("{c=\"d\",\"a.b\"} 1", "{\"a.b\",c=\"d\"}"),
        ("a{\"b.c\"=\"d\"} 1", "a{\"b.c\"=\"d\"}"),
        ("{\"a\\\"b\\d\"} 1", "{\"a\\\"b\\\\d\"}"),
    ] {
        assert_eq!(written(line, Kind::Other, None, Reader::default()), expected, "{line}");
    }
}

#[test]
fn the_label_of_the_target() {
    for (line, expected) in [
        ("a 1", "a{metrics_target=\"80\"}"),
        ("a{} 1", "a{metrics_target=\"80\"}"),
        ("a { } 1", "a{metrics_target=\"80\"}"),
        ("a{b=\"c\"} 1", "a{metrics_target=\"80\",b=\"c\"}"),
        ("a {b=\"c\", }1", "a{metrics_target=\"80\",b=\"c\", }"),
        ("a{b=\"\\d\"} 1", "a{metrics_target=\"80\",b=\"\\\\d\"}"),
        ("{\"a.b\"} 1", "{\"a.b\",metrics_target=\"80\"}"),
        ("{\"a\"} 1", "a{metrics_target=\"80\"}"),
        ("a{metrics_target=\"x\"} 1", "a{metrics_target=\"x\"}"),
    ] {
        assert_eq!(written(line, Kind::Other, Some("80"), Reader::default()), expected, "{line}");
    }
}

#[test]
fn bounds_as_prometheus_3_stores_them() {
    let bucket = "a_bucket{le=\"1\",quantile=\"1\"} 1";
    for (kind, reader, expected) in [
        (Kind::Histogram, THREE, "a_bucket{le=\"1.0\",quantile=\"1\"}"),
        (Kind::Summary, THREE, "a_bucket{le=\"1\",quantile=\"1.0\"}"),
        (Kind::Other, THREE, "a_bucket{le=\"1\",quantile=\"1\"}"),
        (Kind::Histogram, Reader::default(), "a_bucket{le=\"1\",quantile=\"1\"}"),
    ] {
        assert_eq!(written(bucket, kind, None, reader), expected);
    }
    assert_eq!(written("a{le=\"0.5\"} 1", Kind::Histogram, None, THREE), "a{le=\"0.5\"}");
    assert_eq!(written("a{le=\"abc\"} 1", Kind::Histogram, None, THREE), "a{le=\"abc\"}");
    let both = written("a{le=\"1e7\"} 1", Kind::Histogram, Some("80"), THREE);
    assert_eq!(both, "a{metrics_target=\"80\",le=\"1e+07\"}");
}
