use std::io::Cursor;

use super::super::reader::Reader;
use super::Chunks;
use crate::response::BrokenBody;

/// Reads a chunked body that has arrived as a whole, at most `most` bytes, and returns how many there were.
async fn read(text: &[u8], most: usize) -> Result<usize, BrokenBody> {
    let mut reader = Reader::new(Cursor::new(text.to_vec()), u64::MAX);
    let (mut chunks, mut total) = (Chunks::default(), 0);
    while total < most {
        match chunks.read(&mut reader, most - total).await? {
            0 => break,
            read => total += read,
        }
    }
    Ok(total)
}

#[tokio::test]
async fn bodies() {
    let (zeros, extension) = ("0".repeat(15), "x".repeat(3000));
    let broken = Err(BrokenBody);
    for (text, expected) in [
        ("0\r\n\r\n".to_owned(), Ok(0)),
        ("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n".to_owned(), Ok(5)),
        ("A\r\n0123456789\r\n0\r\n\r\n".to_owned(), Ok(10)),
        ("3;x=y\r\nabc\r\n0\r\nA: b\r\n\r\n".to_owned(), Ok(3)),
        (format!("{zeros}3 \t\r\nabc\r\n0\r\n\r\n"), Ok(3)),
        (format!("{zeros}03\r\nabc\r\n0\r\n\r\n"), broken),
        ("3 ;x\r\nabc\r\n0\r\n\r\n".to_owned(), broken),
        ("3\nabc\r\n0\r\n\r\n".to_owned(), broken),
        ("3\r\nabc\n0\r\n\r\n".to_owned(), broken),
        ("3\r\nabcd\r\n0\r\n\r\n".to_owned(), broken),
        ("\r\nabc\r\n0\r\n\r\n".to_owned(), broken),
        ("3\r\nab".to_owned(), broken),
        ("3\r\nabc\r\n".to_owned(), broken),
        ("3\r\nabc\r\n0\r\n".to_owned(), broken),
        ("3\r\nabc\r\n0\r\nA b\r\n\r\n".to_owned(), broken),
        (format!("3\r\nabc\r\n0\r\nA: {}\r\n\r\n", "x".repeat(5000)), broken),
        (format!("1;{extension}\r\na\r\n").repeat(7) + "0\r\n\r\n", broken),
    ] {
        assert_eq!(read(text.as_bytes(), 1000).await, expected, "{:?}", &text[..text.len().min(60)]);
    }
}

/// Go's reader examines what follows the last byte that it needs, if it has arrived.
#[tokio::test]
async fn an_error_right_after_the_limit_counts() {
    assert_eq!(read(b"3\r\nabcxy", 3).await, Err(BrokenBody));
    assert_eq!(read(b"3\r\nabc\r\nx\r\n", 3).await, Err(BrokenBody));
    assert_eq!(read(b"3\r\nabc\r\n", 3).await, Ok(3));
    assert_eq!(read(b"4\r\nabcdx", 3).await, Ok(3));
}
