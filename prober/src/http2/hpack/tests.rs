use super::{BadBlock, Decoder, encode};

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<String>, BadBlock> {
    let mut fields = Vec::new();
    decoder.decode(block, |(name, value)| {
        fields.push(format!("{}: {}", String::from_utf8_lossy(&name), String::from_utf8_lossy(&value)));
    })?;
    Ok(fields)
}

#[test]
fn what_is_encoded_is_decoded() {
    let mut block = Vec::new();
    encode(b":path", b"/a", &mut block);
    encode(b"x", "y".repeat(1000).as_bytes(), &mut block);
    let expected = vec![":path: /a".to_owned(), format!("x: {}", "y".repeat(1000))];
    assert_eq!(decode(&mut Decoder::default(), &block), Ok(expected));
}

#[test]
fn tables() {
    let mut decoder = Decoder::default();
    assert_eq!(decode(&mut decoder, &[0x88]), Ok(vec![":status: 200".to_owned()]));
    // Two fields are added, and the newest one has the lowest index.
    let added = decode(&mut decoder, b"\x40\x01a\x01b\x40\x01c\x01d");
    assert_eq!(added, Ok(vec!["a: b".to_owned(), "c: d".to_owned()]));
    assert_eq!(decode(&mut decoder, &[0xbe, 0xbf]), Ok(vec!["c: d".to_owned(), "a: b".to_owned()]));
    assert_eq!(decode(&mut decoder, &[0xc0]), Err(BadBlock));
    // An index for the name only.
    assert_eq!(decode(&mut decoder, b"\x0f\x2f\x01x"), Ok(vec!["c: x".to_owned()]));
    // A size of 0 empties the table.
    assert_eq!(decode(&mut decoder, &[0x20, 0x88]), Ok(vec![":status: 200".to_owned()]));
    assert_eq!(decode(&mut decoder, &[0xbe]), Err(BadBlock));
}

#[test]
fn the_table_has_a_size() {
    let mut decoder = Decoder::default();
    let mut field = b"\x40\x01a\x7f\xd1\x0e".to_vec();
    field.extend_from_slice(&[b'x'; 2000]);
    for _ in 0..5 {
        assert!(decode(&mut decoder, &field).is_ok());
        assert!(decoder.size <= 4096);
    }
    assert_eq!(decoder.table.len(), 2);
}

#[test]
fn sizes_change_at_the_begin_of_a_block() {
    let mut decoder = Decoder::default();
    assert!(decode(&mut decoder, &[0x88, 0x20]).is_ok(), "the table is empty");
    assert!(decode(&mut decoder, b"\x3f\xe1\x1f\x40\x01a\x01b").is_ok());
    assert_eq!(decode(&mut decoder, &[0x88, 0x20]), Err(BadBlock));
    assert_eq!(decode(&mut Decoder::default(), b"\x3f\xe2\x1f"), Err(BadBlock), "more than 4096");
}

#[test]
fn blocks_that_are_cut_off_or_overflow() {
    for block in [
        &b"\x80"[..],
        b"\xff",
        b"\x40",
        b"\x40\x01",
        b"\x40\x01a",
        b"\x40\x01a\x05b",
        b"\x00\x81\x00",
        b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
    ] {
        assert_eq!(decode(&mut Decoder::default(), block), Err(BadBlock), "{block:x?}");
    }
}
