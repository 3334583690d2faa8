use probe::Reason;

use super::{Head, Parser};

/// Parses a head that arrives in parts of `size` bytes.
fn parse(text: &[u8], size: usize) -> Result<Option<(Head, usize)>, Reason> {
    let (mut parser, mut consumed) = (Parser::default(), 0);
    while consumed < text.len() {
        let end = (consumed + size).min(text.len());
        let (bytes, head) = parser.parse(&text[consumed..end])?;
        consumed += bytes;
        if let Some(head) = head {
            return Ok(Some((head, consumed)));
        }
    }
    Ok(None)
}

fn status(line: &str) -> Option<u16> {
    let text = format!("{line}\r\n\r\n");
    let parsed = [1, 3, 1000].map(|size| parse(text.as_bytes(), size));
    assert_eq!(parsed[0], parsed[1], "{line}");
    assert_eq!(parsed[0], parsed[2], "{line}");
    let [parsed, ..] = parsed;
    parsed.ok().flatten().map(|(head, _)| head.status)
}

#[test]
fn status_lines_as_in_go() {
    for (line, expected) in [
        ("HTTP/1.1 200 OK", Some(200)),
        ("HTTP/1.1 200", Some(200)),
        ("HTTP/1.1   200 OK", Some(200)),
        ("HTTP/1.0 204 \u{1}", Some(204)),
        ("HTTP/2.0 200 OK", Some(200)),
        ("HTTP/1.1 +20 OK", Some(20)),
        ("HTTP/1.1 999 x", Some(999)),
        ("HTTP/1.1 -20 OK", None),
        ("HTTP/1.1 2000", None),
        ("HTTP/1.1 20", None),
        ("HTTP/1.1 2x0", None),
        ("HTTP/1.1\t200 OK", None),
        ("HTTP/1.1 200\tOK", None),
        ("HTTP/1.10 200 OK", None),
        ("http/1.1 200 OK", None),
        ("HTTP/1.1", None),
        ("", None),
    ] {
        assert_eq!(status(line), expected, "{line:?}");
    }
}

#[test]
fn only_a_line_feed_ends_a_line() {
    let (head, consumed) =
        parse(b"HTTP/1.1 200 OK\nContent-Length: 3\n\nabc", 1).expect("valid").expect("a head");
    assert_eq!((head.status, consumed, head.fields.content_lengths), (200, 35, vec![b"3".to_vec()]));
    assert_eq!(parse(b"HTTP/1.1 200 OK\r\nA: b\r\n", 7), Ok(None));
}
