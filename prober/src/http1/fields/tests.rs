use probe::Reason;

use super::{FieldParser, Fields};

/// Parses fields in parts of one byte, and at once.
fn parse(text: &str) -> Result<Option<Fields>, Reason> {
    let at_once = all(text, usize::MAX);
    assert_eq!(at_once, all(text, 1), "{text:?}");
    at_once
}

fn all(text: &str, size: usize) -> Result<Option<Fields>, Reason> {
    let mut parser = FieldParser::default();
    for part in text.as_bytes().chunks(size) {
        if let (_, true) = parser.parse(part)? {
            return Ok(Some(parser.take()));
        }
    }
    Ok(None)
}

fn location(text: &str) -> Option<String> {
    let fields = parse(text).unwrap_or_else(|reason| panic!("{text:?}: {reason:?}")).expect("an end");
    fields.location.map(|location| String::from_utf8_lossy(&location).into_owned())
}

#[test]
fn values() {
    for (text, expected) in [
        ("\r\n", None),
        ("A: b\r\n\r\n", None),
        ("Location: /a\r\n\r\n", Some("/a")),
        ("LOCATION:/a \t\r\n\r\n", Some("/a")),
        ("Location: /a\nLocation: /b\n\n", Some("/a")),
        ("Location:\r\n\r\n", Some("")),
        ("Location: /a\r\n /b\r\n\t c\r\n\r\n", Some("/a /b c")),
        ("Location : /a\r\n\r\n", None),
        ("Loca tion: /a\r\n\r\n", None),
        ("Location: \u{e9}\r\n\r\n", Some("\u{e9}")),
    ] {
        assert_eq!(location(text).as_deref(), expected, "{text:?}");
    }
}

#[test]
fn what_go_rejects() {
    for text in [
        " A: b\r\n\r\n",
        ": b\r\n\r\n",
        "A\r\n\r\n",
        "A\tb: c\r\n\r\n",
        "A(: c\r\n\r\n",
        "A: b\rc\r\n\r\n",
        "A: b\r\r\n\r\n",
        "A: \0\r\n\r\n",
        "A: \x7f\r\n\r\n",
        "A: b\r\n \x01\r\n\r\n",
        "A: b\r\n\rc: d\r\n\r\n",
    ] {
        assert_eq!(parse(text), Err(Reason::Protocol), "{text:?}");
    }
    assert_eq!(parse("A: b\r\n"), Ok(None), "incomplete");
}

#[test]
fn values_that_do_not_matter_need_no_memory() {
    let mut parser = FieldParser::default();
    let mut feed = |text: &[u8]| parser.parse(text).map(|(_, is_end)| is_end);
    assert_eq!(feed(b"A: "), Ok(false));
    for _ in 0..300 {
        assert_eq!(feed(&[b'x'; 10_000]), Ok(false));
    }
    assert_eq!(feed(b"\r\nLocation: "), Ok(false));
    assert!(parser.value.capacity() < 100 && parser.name.is_some());
    let last = (0..300).map(|_| parser.parse(&[b'x'; 10_000])).find(Result::is_err);
    assert_eq!(last, Some(Err(Reason::Protocol)), "more than 1 MiB of a value that matters");
}

#[test]
fn repeated_fields_need_no_memory() {
    let lines = ["Trailer: a", "Connection: b", "Transfer-Encoding: c", "Content-Length: 1"];
    let text = lines.map(|line| format!("{line}\r\n").repeat(1000)).concat();
    let value = |text: &str| text.as_bytes().to_vec();
    let expected = Fields {
        content_lengths: vec![value("1")],
        transfer_encodings: vec![value("c"), value("c")],
        ..Fields::default()
    };
    assert_eq!(parse(&format!("{text}\r\n")), Ok(Some(expected)));
    let text = format!("{text}Trailer: a, Trailer\r\nConnection: b,upgrade\r\nContent-Length: 2\r\n\r\n");
    let fields = parse(&text).expect("valid fields").expect("an end");
    assert_eq!(fields.content_lengths, [value("1"), value("2")]);
    assert!(fields.has_invalid_trailer && fields.names_upgrade);
}
