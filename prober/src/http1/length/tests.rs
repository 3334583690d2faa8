use probe::Reason;

use super::super::head::Parser;
use super::Length;

fn length_of(start: &str, fields: &[&str]) -> Result<Length, Reason> {
    let text =
        format!("{start}\r\n{}\r\n", fields.iter().map(|field| format!("{field}\r\n")).collect::<String>());
    let mut parser = Parser::default();
    let (consumed, _) = parser.parse(text.as_bytes())?;
    let (_, head) = parser.parse(&text.as_bytes()[consumed..])?;
    super::length(&head.expect("a complete head"))
}

#[test]
fn the_end_of_a_body() {
    const OK: &str = "HTTP/1.1 200 OK";
    const CHUNKED: &str = "Transfer-Encoding: chunked";
    for (start, fields, expected) in [
        (OK, &[][..], Ok(Length::Connection)),
        (OK, &["Content-Length: 5"], Ok(Length::Bytes(5))),
        (OK, &["Content-Length: 5", "Content-Length:  5 "], Ok(Length::Bytes(5))),
        (OK, &["Content-Length: 5", "Content-Length: 6"], Err(Reason::Protocol)),
        (OK, &["Content-Length: 9223372036854775807"], Ok(Length::Bytes(i64::MAX.unsigned_abs()))),
        (OK, &["Content-Length: 9223372036854775808"], Err(Reason::Protocol)),
        (OK, &["Content-Length: +5"], Err(Reason::Protocol)),
        (OK, &["Content-Length: -5"], Err(Reason::Protocol)),
        (OK, &["Content-Length: 5 6"], Err(Reason::Protocol)),
        (OK, &["Content-Length:"], Err(Reason::Protocol)),
        (OK, &["Content-Length : 5"], Ok(Length::Connection)),
        (OK, &[CHUNKED], Ok(Length::Chunks)),
        (OK, &["transfer-encoding: Chunked", "Content-Length: 5"], Ok(Length::Chunks)),
        (OK, &[CHUNKED, "Content-Length: x"], Err(Reason::Protocol)),
        (OK, &[CHUNKED, CHUNKED], Err(Reason::Protocol)),
        (OK, &["Transfer-Encoding: gzip, chunked"], Err(Reason::Protocol)),
        (OK, &[CHUNKED, "Trailer: a, Content-Length"], Err(Reason::Protocol)),
        (OK, &["Trailer: Content-Length"], Ok(Length::Connection)),
        ("HTTP/1.0 200 OK", &[CHUNKED, "Content-Length: 5"], Ok(Length::Bytes(5))),
        ("HTTP/0.0 200 OK", &[CHUNKED], Ok(Length::Chunks)),
        ("HTTP/2.0 200 OK", &[CHUNKED], Ok(Length::Chunks)),
        ("HTTP/1.1 204 No Content", &["Content-Length: 5"], Ok(Length::Bytes(0))),
        ("HTTP/1.1 304 Not Modified", &[CHUNKED], Ok(Length::Bytes(0))),
        ("HTTP/1.1 204 No Content", &["Content-Length: x"], Err(Reason::Protocol)),
        ("HTTP/1.1 103 Early Hints", &["Transfer-Encoding: x"], Err(Reason::Protocol)),
        ("HTTP/1.1 101 Switching", &[], Ok(Length::Bytes(0))),
        ("HTTP/1.1 101 Switching", &["Upgrade: x", "Connection: close, Upgrade"], Ok(Length::Connection)),
    ] {
        assert_eq!(length_of(start, fields), expected, "{start} {fields:?}");
    }
}
