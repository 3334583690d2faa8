use proptest::prelude::*;

use super::*;

const LIMIT: FamilyLimit = FamilyLimit::TARGET;

const OWNER: Owner = Owner::Source(1);

/// Merges `parts`, each with its format and whether it was received completely. Returns the merged
/// text, the number of duplicates, and the number of dropped lines of each part.
fn merged(parts: &[(Format, &str, bool)]) -> (String, u64, Vec<u64>) {
    let mut merge = Merge::default();
    let mut out = Vec::new();
    let mut dropped = Vec::new();
    for (format, text, whole) in parts {
        let mut part = SourceState::new(*format, LIMIT, OWNER, None);
        merge.feed(&mut part, text.as_bytes(), &mut out);
        merge.finish(&mut part, *whole, &mut out);
        dropped.push(part.dropped().total());
    }
    (String::from_utf8(out).unwrap(), merge.duplicates(), dropped)
}

/// Merges one source for `reader`, and returns the text, the result and the dropped lines.
fn read(reader: Reader, format: Format, bytes: &[u8]) -> (String, ScrapeResult, Vec<(DropReason, u64, u64)>) {
    let (mut merge, mut part) = (Merge::new(reader), SourceState::new(format, LIMIT, OWNER, None));
    let mut out = Vec::new();
    merge.feed(&mut part, bytes, &mut out);
    merge.finish(&mut part, true, &mut out);
    let dropped = part.dropped().by_reason().map(|(reason, lines)| (reason, lines.count, lines.first));
    (String::from_utf8(out).unwrap(), part.result(), dropped.collect())
}

const TEXT: Format = Format::Text;
const OPEN: Format = Format::OpenMetrics;

#[test]
fn one_help_and_type_per_family() {
    let one = "# HELP a A.\n# TYPE a gauge\na{x=\"1\"} 1\n";
    let other = "# HELP a Another.\n# TYPE a counter\na{x=\"2\"} 2\n# TYPE b gauge\nb 3\n";
    let (text, duplicates, dropped) = merged(&[(TEXT, one, true), (TEXT, other, true)]);
    assert_eq!(text, "# HELP a A.\n# TYPE a gauge\na{x=\"1\"} 1\na{x=\"2\"} 2\n# TYPE b gauge\nb 3\n");
    assert_eq!((duplicates, dropped), (2, vec![0, 0]));
    let (text, duplicates, _) =
        merged(&[(TEXT, "a 1\n", true), (TEXT, "# TYPE a gauge\na{x=\"2\"} 2\n", true)]);
    assert_eq!((text.as_str(), duplicates), ("a 1\na{x=\"2\"} 2\n", 1), "a type after samples");
}

#[test]
fn one_line_costs_one_line() {
    for (part, whole, dropped, text) in [
        ("a 1\nb 2", true, 0, "a 1\nb 2\n"),
        ("a 1\nb 2", false, 0, "a 1\n"),
        ("a 1\n<html>\nb 2\n", true, 1, "a 1\nb 2\n"),
        ("<html>", true, 1, ""),
        ("a 1\n\0\nb{c=\"\0\"} 2\n", true, 1, "a 1\nb{c=\"\0\"} 2\n"),
        ("a 1\r\nb 2\r\n", true, 0, "a 1\nb 2\n"),
        ("", true, 0, ""),
    ] {
        let (found, _, results) = merged(&[(TEXT, part, whole), (TEXT, "z 9\n", true)]);
        assert_eq!((found, results), (format!("{text}z 9\n"), vec![dropped, 0]), "{part:?}");
    }
}

#[test]
fn a_long_line_costs_only_itself() {
    let long = "x".repeat(LINE_LIMIT + 1);
    for (part, text) in [
        (format!("a 1\n{long}\nb 2\n"), "a 1\nb 2\n"),
        (format!("a 1\n{long}{long}{long} 1\nb 2\n"), "a 1\nb 2\n"),
        (format!("a 1\n{long}"), "a 1\n"),
        (format!("a 1\n# HELP b {long}\nb 2\n"), "a 1\nb 2\n"),
    ] {
        for size in [1000, part.len()] {
            let (mut merge, mut source) = (Merge::default(), SourceState::new(TEXT, LIMIT, OWNER, None));
            let mut out = Vec::new();
            for chunk in part.as_bytes().chunks(size) {
                merge.feed(&mut source, chunk, &mut out);
                assert!(source.unfinished.len() <= LINE_LIMIT);
            }
            merge.finish(&mut source, true, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text);
            let dropped: Vec<_> = source.dropped().by_reason().collect();
            let [(DropReason::TooLong, lines)] = dropped[..] else { panic!("{dropped:?}") };
            assert_eq!((lines.count, lines.first, source.result()), (1, 2, Ok(())));
        }
    }
}

#[test]
fn dropped_lines_have_a_number_and_a_reason() {
    let bytes = b"before 1\nx 1 -5\n# \xff\n# HELP y \xff\ny{a=\"\xff\"} 1\n\nz one\n# TYPE q foo\nq 1\nz two\nafter 1\n";
    let (text, result, dropped) = read(Reader::default(), TEXT, bytes);
    assert_eq!((text.as_str(), result), ("before 1\nq 1\nafter 1\n", Ok(())));
    let expected = [
        (DropReason::NotUtf8, 2, 4),
        (DropReason::InvalidValue, 2, 7),
        (DropReason::InvalidTimestamp, 1, 2),
        (DropReason::InvalidType, 1, 8),
    ];
    assert_eq!(dropped, expected);
}

#[test]
fn a_source_without_a_valid_line_is_bad() {
    for (format, text, result) in [
        (TEXT, "<html>\n<p>\n</html>\n", Err(RequestFailure::BadBody)),
        (TEXT, "<html>\na 1\n", Ok(())),
        (TEXT, "", Ok(())),
        (TEXT, "# only a comment\n", Ok(())),
        (OPEN, "# EOF\n", Ok(())),
        (OPEN, "a 1\n# EOF", Ok(())),
        (OPEN, "a 1\n# EOF\nb 1\n", Ok(())),
        (OPEN, "a 1\n", Err(RequestFailure::BadBody)),
        (OPEN, "", Err(RequestFailure::BadBody)),
    ] {
        assert_eq!(read(Reader::default(), format, text.as_bytes()).1, result, "{text:?}");
    }
    assert_eq!(read(Reader::default(), OPEN, b"a 1\nb 12").0, "a 1\n", "the last line is incomplete");
}

#[test]
fn what_the_parser_of_the_scraper_accepts() {
    let two = Reader { is_prometheus: true, ..Reader::default() };
    let three = Reader { normalizes_bounds: true, accepts_quoted_names: true, ..two };
    let text = "# TYPE h histogram\nh_bucket{le=\"abc\"} 1\nh_bucket{le=\"1\"} 1\n# TYPE \"s.t\" summary\n{\"s.t\",quantile=\"1\"} 1\n{\"s.t_sum\"} 1\n";
    for (reader, dropped, lines) in [
        (Reader::default(), 4, vec!["h_bucket{le=\"1\"} 1"]),
        (two, 3, vec!["h_bucket{le=\"abc\"} 1", "h_bucket{le=\"1\"} 1"]),
        (
            three,
            0,
            vec![
                "h_bucket{le=\"abc\"} 1",
                "h_bucket{le=\"1.0\"} 1",
                "# TYPE \"s.t\" summary",
                "{\"s.t\",quantile=\"1.0\"} 1",
                "{\"s.t_sum\"} 1",
            ],
        ),
    ] {
        let (found, _, reasons) = read(reader, TEXT, text.as_bytes());
        assert_eq!(found, format!("# TYPE h histogram\n{}\n", lines.join("\n")), "{reader:?}");
        assert_eq!(reasons.iter().map(|(_, count, _)| count).sum::<u64>(), dropped, "{reader:?}");
    }
}

/// Two sources that alternate: each line is complete, and each `le` has the type of its family.
#[test]
fn sources_may_alternate() {
    let mut merge = Merge::new(Reader { normalizes_bounds: true, ..Reader::default() });
    let mut one = SourceState::new(TEXT, LIMIT, Owner::Labelled, Some("80".to_owned()));
    let mut other = SourceState::new(TEXT, LIMIT, Owner::Labelled, Some("81".to_owned()));
    let mut out = Vec::new();
    for (is_one, chunk) in [
        (true, "# TYPE h histogram\nh_buck"),
        (false, "# TYPE g gauge\n# TYPE h histogram\ng{le=\"1\"} 1\nh_bucket{le=\"2\"}"),
        (true, "et{le=\"1\"} 1\n"),
        (false, " 3\n"),
    ] {
        merge.feed(if is_one { &mut one } else { &mut other }, chunk.as_bytes(), &mut out);
    }
    let expected = "# TYPE h histogram\n# TYPE g gauge\ng{metrics_target=\"81\",le=\"1\"} 1\n\
                    h_bucket{metrics_target=\"80\",le=\"1.0\"} 1\nh_bucket{metrics_target=\"81\",le=\"2.0\"} 3\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
    assert_eq!(merge.shared(), (0, None));
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
fn an_invalid_line_costs_only_itself() {
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
        let (text, _, dropped) = merged(&[(TEXT, &part, true), (TEXT, "z 9\n", true)]);
        let others: Vec<_> = text.lines().filter(|line| !line.starts_with("# TYPE g ")).collect();
        assert_eq!((others, dropped), (vec!["a 1", "b 2", "z 9"], vec![1, 0]), "{odd}: {text}");
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
        let (found, _, dropped) = merged(&[(TEXT, part, true)]);
        assert_eq!((found.as_str(), dropped), (text, vec![0]), "{part:?}");
    }
    let open = "# HELP a \\\"b\\\"\n# TYPE a gauge\n# EOF\n";
    assert_eq!(merged(&[(OPEN, open, true)]).0, "# HELP a \"b\"\n# TYPE a gauge\n");
}

#[test]
fn timestamps_that_text_cannot_express_are_invalid() {
    for (odd, is_said) in [("b 1 1.5", true), ("b 1 NaN", false), ("b 1 1e300", false), ("b 1 -7", false)] {
        let part = format!("a 1\n{odd}\n# EOF\n");
        let (text, _, dropped) = merged(&[(OPEN, &part, true)]);
        assert_eq!((dropped[0], text.contains("b 1 ")), (u64::from(!is_said), is_said), "{odd}: {text}");
        assert!(text.starts_with("a 1\n"), "{odd}: {text}");
    }
}

#[test]
fn each_source_has_its_own_family_limit() {
    let many: String = (0..100).map(|number| format!("x{number} 1\n")).collect();
    let mut merge = Merge::default();
    let source = |limit| SourceState::new(TEXT, FamilyLimit(limit), OWNER, None);
    let (mut greedy, mut modest, mut out) = (source(50), source(2), Vec::new());
    merge.feed(&mut greedy, many.as_bytes(), &mut out);
    merge.feed(&mut greedy, b"x0{a=\"b\"} 1\n", &mut out);
    merge.finish(&mut greedy, true, &mut out);
    assert_eq!((greedy.result(), greedy.dropped().total()), (Err(RequestFailure::TooLarge), 50));
    merge.feed(&mut modest, b"# TYPE y gauge\ny 1\nx7 2\n# HELP z Z.\n", &mut out);
    merge.finish(&mut modest, true, &mut out);
    assert_eq!((modest.result(), modest.dropped().total()), (Ok(()), 0));
    let expected: String = (0..50).map(|number| format!("x{number} 1\n")).collect();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        expected + "x0{a=\"b\"} 1\n# TYPE y gauge\ny 1\nx7 2\n# HELP z Z.\n"
    );
}

proptest! {
    /// The output does not depend on how a source is split into chunks.
    #[test]
    fn chunk_boundaries_do_not_matter(cuts in proptest::collection::vec(0..120usize, 0..8)) {
        let text = "# HELP a A.\n# TYPE a counter\na_total{x=\"}\"} 1 2 # {} 3\n# TYPE b gauge\nb 1\nc 2\n# EOF\n";
        let mut merge = Merge::default();
        let (mut part, mut out) = (SourceState::new(OPEN, LIMIT, OWNER, None), Vec::new());
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
        cuts.sort_unstable();
        let mut from = 0;
        for to in cuts.into_iter().chain([text.len()]) {
            merge.feed(&mut part, &text.as_bytes()[from..to], &mut out);
            from = to;
        }
        merge.finish(&mut part, true, &mut out);
        prop_assert_eq!(String::from_utf8(out).unwrap(), merged(&[(OPEN, text, true)]).0);
    }

    /// Whatever bytes an application sends, the output consists of valid lines.
    #[test]
    fn arbitrary_bytes_result_in_valid_lines(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let mut merge = Merge::default();
        let (mut part, mut out) = (SourceState::new(TEXT, LIMIT, OWNER, None), Vec::new());
        merge.feed(&mut part, &bytes, &mut out);
        merge.finish(&mut part, true, &mut out);
        let text = String::from_utf8(out).unwrap();
        prop_assert!(text.is_empty() || text.ends_with('\n'));
        prop_assert!(text.lines().all(|line| Line::parse(line, TEXT).is_ok()));
    }
}
