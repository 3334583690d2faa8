use super::super::dropped::DropReason::{self, *};
use super::super::{FamilyLimit, Format, Merge, Owner, Reader, SourceState};
use super::*;

/// Merges one source, in chunks of this size. Returns the text, and number and first line of the dropped
/// lines of each reason.
fn read(format: Format, text: &str, chunk: usize) -> (String, Vec<(DropReason, u64, u64)>) {
    let reader = Reader { accepts_quoted_names: true, ..Reader::default() };
    let mut merge = Merge::new(reader);
    let mut source = SourceState::new(format, FamilyLimit::TARGET, Owner::Source(1), None);
    let mut out = Vec::new();
    for chunk in text.as_bytes().chunks(chunk) {
        merge.feed(&mut source, chunk, &mut out);
    }
    merge.finish(&mut source, true, &mut out);
    let dropped = source.dropped().by_reason().map(|(reason, lines)| (reason, lines.count, lines.first));
    (String::from_utf8(out).unwrap(), dropped.collect())
}

#[test]
fn line_breaks_in_quotes_are_escaped() {
    for (text, expected) in [
        ("a 1\nb{x=\"1\n2\"} 2\nc 3\n", "a 1\nb{x=\"1\\n2\"} 2\nc 3\n"),
        ("b{x=\"1\n2\"} 2", "b{x=\"1\\n2\"} 2\n"),
        ("b{x=\"\n\n\",y=\"\n\"} 2 5\n", "b{x=\"\\n\\n\",y=\"\\n\"} 2 5\n"),
        ("b{x=\"at\n# TYPE b counter\n# EOF\"} 2\n", "b{x=\"at\\n# TYPE b counter\\n# EOF\"} 2\n"),
        ("b{x=\"\\\\\n\\\"\n\\d\"} 2\n", "b{x=\"\\\\\\n\\\"\\n\\\\d\"} 2\n"),
        ("{\"b\nc\",\"x\ny\"=\"1\"} 2\n", "{\"b\\nc\",\"x\\ny\"=\"1\"} 2\n"),
        ("\t b {x = \"1\n2\"} 2\n", "b{x=\"1\\n2\"} 2\n"),
    ] {
        for chunk in [1, text.len()] {
            assert_eq!(read(Format::Text, text, chunk), (expected.to_owned(), vec![]), "{text:?}");
        }
    }
}

/// A quote that is never closed costs its own line, not those that follow.
#[test]
fn an_unclosed_quote_costs_one_line() {
    let many: String = (0..300).map(|number| format!("n{number} 1\n")).collect();
    let long = "x".repeat(LINE_LIMIT);
    for (text, expected, dropped) in [
        ("a{x=\"1} 1\nb 2\n", "b 2\n".to_owned(), vec![(InvalidLabels, 1, 1)]),
        (
            "a{x=\"1} 1\nb 2\nc{y=\"3\"} 3\nd 4\n",
            "b 2\nc{y=\"3\"} 3\nd 4\n".into(),
            vec![(InvalidLabels, 1, 1)],
        ),
        ("a{x=\"1} 1\nb{x=\"1\n2\"} 2\n", "b{x=\"1\\n2\"} 2\n".into(), vec![(InvalidLabels, 1, 1)]),
        ("a{x=\"1\n2\"} x\nb 2\n", "b 2\n".into(), vec![(InvalidName, 1, 2), (InvalidLabels, 1, 1)]),
        ("a{x=\"1", String::new(), vec![(InvalidLabels, 1, 1)]),
        (&format!("a{{x=\"1}} 1\n{many}b 2\n"), format!("{many}b 2\n"), vec![(InvalidLabels, 1, 1)]),
        (
            &format!("a{{x=\"1}} 1\nb 2\n{long}x\nc 3\n"),
            "b 2\nc 3\n".into(),
            vec![(TooLong, 1, 3), (InvalidLabels, 1, 1)],
        ),
        (
            &format!("a{{x=\"1\n{}\"}} 1\nc 3\n", &long[10..]),
            "c 3\n".into(),
            vec![(InvalidName, 1, 2), (InvalidLabels, 1, 1)],
        ),
    ] {
        for chunk in [1000, text.len()] {
            assert_eq!(read(Format::Text, text, chunk), (expected.clone(), dropped.clone()), "{text:.40?}");
        }
    }
}

#[test]
fn open_metrics_has_no_line_breaks_in_quotes() {
    let (text, dropped) = read(Format::OpenMetrics, "a{x=\"1\n2\"} 1\nb 2\n# EOF\n", 1000);
    assert_eq!(text, "b 2\n");
    assert_eq!(dropped, [(InvalidName, 1, 2), (InvalidLabels, 1, 1)]);
}
