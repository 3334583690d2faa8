use proptest::prelude::*;

use super::*;

const LIMIT: FamilyLimit = FamilyLimit::TARGET;

/// Merges `parts`, each with its format and whether it was received completely. Returns the merged
/// text, the number of duplicates, and whether each part was valid.
fn merged(parts: &[(Format, &str, bool)]) -> (String, u64, Vec<bool>) {
    let mut merge = Merge::default();
    let mut out = Vec::new();
    let mut good = Vec::new();
    for (from, text, whole) in parts {
        let mut part = SourceState::new(*from, LIMIT);
        let fed = merge.feed(&mut part, text.as_bytes(), &mut out);
        let finished = merge.finish(part, *whole && fed.is_ok(), &mut out);
        good.push(fed.is_ok() && finished.is_ok());
    }
    (String::from_utf8(out).unwrap(), merge.duplicates(), good)
}

const TEXT: Format = Format::Text;
const OPEN: Format = Format::OpenMetrics;

#[test]
fn one_help_and_type_per_family() {
    let one = "# HELP a A.\n# TYPE a gauge\na{x=\"1\"} 1\n";
    let other = "# HELP a Another.\n# TYPE a counter\na{x=\"2\"} 2\n# TYPE b gauge\nb 3\n";
    let (text, duplicates, good) = merged(&[(TEXT, one, true), (TEXT, other, true)]);
    assert_eq!(text, "# HELP a A.\n# TYPE a gauge\na{x=\"1\"} 1\na{x=\"2\"} 2\n# TYPE b gauge\nb 3\n");
    assert_eq!((duplicates, good), (2, vec![true, true]));
    let (text, duplicates, _) =
        merged(&[(TEXT, "a 1\n", true), (TEXT, "# TYPE a gauge\na{x=\"2\"} 2\n", true)]);
    assert_eq!((text.as_str(), duplicates), ("a 1\na{x=\"2\"} 2\n", 1), "a type after samples");
}

#[test]
fn truncated_after_the_last_valid_line() {
    for (part, whole, good, text) in [
        ("a 1\nb 2", true, true, "a 1\nb 2\n"),
        ("a 1\nb 2", false, true, "a 1\n"),
        ("a 1\n<html>\nb 2\n", true, false, "a 1\n"),
        ("<html>", true, false, ""),
        ("a 1\n\0\n", true, false, "a 1\n"),
        ("a 1\r\nb 2\r\n", true, true, "a 1\nb 2\n"),
        ("", true, true, ""),
    ] {
        let (found, _, results) = merged(&[(TEXT, part, whole), (TEXT, "z 9\n", true)]);
        assert_eq!((found, results[0]), (format!("{text}z 9\n"), good), "{part:?}");
    }
    let endless = "x".repeat(LINE_LIMIT + 1);
    assert_eq!(merged(&[(TEXT, &endless, false)]).2, [false]);
}

#[test]
fn open_metrics_becomes_text() {
    let open = "# HELP a Counted.\n# TYPE a counter\n# UNIT a \na_total{x=\"1\"} 3 1.5 # {id=\"z\"} 1 2\na_created 7\n\
                # TYPE b info\n# HELP b Info.\nb_info{v=\"1\"} 1\n# TYPE c unknown\nc 1\n# TYPE d histogram\n# HELP d D.\n\
                d_bucket{le=\"+Inf\"} 1 # {} 4\n# EOF\n";
    let text = "# HELP a_total Counted.\n# TYPE a_total counter\na_total{x=\"1\"} 3 1500\na_created 7\n\
                # TYPE b_info gauge\n# HELP b_info Info.\nb_info{v=\"1\"} 1\n# TYPE c untyped\nc 1\n# TYPE d histogram\n# HELP d D.\n\
                d_bucket{le=\"+Inf\"} 1\n";
    assert_eq!(merged(&[(OPEN, open, true)]).0, text);
}

#[test]
fn an_invalid_line_truncates_only_its_source() {
    for odd in [
        "x -nan",
        "x 1 1.5",
        "x 1 #comment",
        "# TYPE x foo",
        "# HELP 0x y",
        "x{foo} 1",
        "x 1\r2",
        "# TYPE g histogram\ng_bucket{le=\"x\"} 1",
        "# TYPE g summary\ng{quantile=\"-nan\"} 1",
    ] {
        let part = format!("a 1\n{odd}\nb 2\n");
        let (text, _, good) = merged(&[(TEXT, &part, true), (TEXT, "z 9\n", true)]);
        assert!(
            text.starts_with("a 1\n") && text.ends_with("z 9\n") && !text.contains("b 2"),
            "{odd}: {text}"
        );
        assert!(!text.contains('x') && !text.contains("g_bucket"), "{odd}: {text}");
        assert_eq!(good, [false, true], "{odd}");
    }
}

#[test]
fn lines_are_normalized() {
    for (part, text) in [
        ("a\t1 \nb 2 3\t\n", "a 1\nb 2 3\n"),
        ("#\tTYPE  a\tgauge \n", "# TYPE a gauge\n"),
        ("# HELP a C:\\dir \\\\ \\n \\\n", "# HELP a C:\\\\dir \\\\ \\n \\\\\n"),
        ("# HELP a \\\"b\\\"\n", "# HELP a \\\\\"b\\\\\"\n"),
        ("#TYPE a foo\na{b=\"1\",}2\n", "a{b=\"1\",} 2\n"),
    ] {
        let (found, _, good) = merged(&[(TEXT, part, true)]);
        assert_eq!((found.as_str(), good), (text, vec![true]), "{part:?}");
    }
    let open = "# HELP a \\\"b\\\"\n# TYPE a gauge\n# EOF\n";
    assert_eq!(merged(&[(OPEN, open, true)]).0, "# HELP a \"b\"\n# TYPE a gauge\n");
}

#[test]
fn timestamps_that_text_cannot_express_are_invalid() {
    for (odd, is_said) in [("b 1 1.5", true), ("b 1 NaN", false), ("b 1 1e300", false), ("b 1 -7", false)] {
        let part = format!("a 1\n{odd}\n# EOF\n");
        let (text, _, good) = merged(&[(OPEN, &part, true)]);
        assert_eq!((good[0], text.contains("b 1 ")), (is_said, is_said), "{odd}: {text}");
        assert!(text.starts_with("a 1\n"), "{odd}: {text}");
    }
}

#[test]
fn each_source_has_its_own_family_limit() {
    let many: String = (0..100).map(|number| format!("x{number} 1\n")).collect();
    let mut merge = Merge::default();
    let (mut greedy, mut modest, mut out) =
        (SourceState::new(TEXT, FamilyLimit(50)), SourceState::new(TEXT, FamilyLimit(2)), Vec::new());
    assert_eq!(merge.feed(&mut greedy, many.as_bytes(), &mut out), Err(RequestFailure::TooLarge));
    assert_eq!(merge.finish(greedy, false, &mut out), Ok(()));
    assert_eq!(merge.feed(&mut modest, b"# TYPE y gauge\ny 1\nx7 2\n# HELP z Z.\n", &mut out), Ok(()));
    assert_eq!(merge.finish(modest, true, &mut out), Ok(()));
    let expected: String = (0..50).map(|number| format!("x{number} 1\n")).collect();
    assert_eq!(String::from_utf8(out).unwrap(), expected + "# TYPE y gauge\ny 1\nx7 2\n# HELP z Z.\n");
}

proptest! {
    /// The output does not depend on how a source is split into chunks.
    #[test]
    fn chunk_boundaries_do_not_matter(cuts in proptest::collection::vec(0..120usize, 0..8)) {
        let text = "# HELP a A.\n# TYPE a counter\na_total{x=\"}\"} 1 2 # {} 3\n# TYPE b gauge\nb 1\nc 2\n# EOF\n";
        let mut merge = Merge::default();
        let (mut part, mut out) = (SourceState::new(OPEN, LIMIT), Vec::new());
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.sort_unstable();
        let mut from = 0;
        for to in cuts.into_iter().chain([text.len()]) {
            merge.feed(&mut part, &text.as_bytes()[from..to], &mut out).unwrap();
            from = to;
        }
        merge.finish(part, true, &mut out).unwrap();
        prop_assert_eq!(String::from_utf8(out).unwrap(), merged(&[(OPEN, text, true)]).0);
    }

    /// Whatever bytes an application sends, the output consists of valid lines.
    #[test]
    fn arbitrary_bytes_result_in_valid_lines(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut merge = Merge::default();
        let (mut part, mut out) = (SourceState::new(TEXT, LIMIT), Vec::new());
        let fed = merge.feed(&mut part, &bytes, &mut out);
        let _ = merge.finish(part, fed.is_ok(), &mut out);
        let text = String::from_utf8(out).unwrap();
        prop_assert!(text.is_empty() || text.ends_with('\n'));
        prop_assert!(text.lines().all(|line| Line::parse(line, TEXT).is_some()));
    }
}
