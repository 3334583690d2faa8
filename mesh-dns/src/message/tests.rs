use super::*;

/// A question for the name, with this type.
pub(crate) fn question(name: &str, kind: u16) -> Vec<u8> {
    let mut message = vec![0xab, 0xcd, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 0];
    write_name(name, &mut message);
    message.extend_from_slice(&kind.to_be_bytes());
    message.extend_from_slice(&CLASS_IN.to_be_bytes());
    message
}

#[test]
fn questions_are_read() {
    let query = Query::parse(&question("Web.Shop", TYPE_A)).unwrap();
    assert_eq!(query.name.as_deref(), Some("web.shop"));
    assert_eq!((query.kind, query.limit), (TYPE_A, 512));
    let root = [0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1];
    assert_eq!(Query::parse(&root).unwrap().name, None);
    let query = Query::parse(&question("a \u{df}.example", TYPE_A)).unwrap();
    assert_eq!(query.name.as_deref(), Some("a \u{df}.example"), "each byte is a character");
    let mut with_dot = question("a.b.example", TYPE_A);
    with_dot.splice(HEADER..HEADER + 4, *b"\x03a.b");
    let name = Query::parse(&with_dot).unwrap().name.unwrap();
    assert_eq!(name.split('.').count(), 2, "{name}: the first dot is in a label");
    let mut written = Vec::new();
    write_name(&name, &mut written);
    assert!(with_dot[HEADER..].starts_with(&written));
}

#[test]
fn other_records_of_a_question_are_complete_or_missing() {
    let mut message = question("web.shop", TYPE_A);
    message[11] = 1;
    assert_eq!(Query::parse(&message).unwrap().limit, SMALLEST_LIMIT);
    let opt = [0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 2, 7, 7];
    for length in 1..opt.len() {
        let message = [&message, &opt[..length]].concat();
        assert!(matches!(Query::parse(&message), Err(NoQuery::Refused(_))), "{length} bytes");
    }
    assert_eq!(Query::parse(&[&message, &opt[..]].concat()).unwrap().limit, 1232);
}

#[test]
fn the_size_of_edns_is_read() {
    for (size, limit) in [(1232_u16, 1232), (100, 512), (65_535, 65_535)] {
        let mut message = question("web.shop", TYPE_AAAA);
        message[11] = 1;
        message.push(0);
        message.extend_from_slice(&TYPE_OPT.to_be_bytes());
        message.extend_from_slice(&size.to_be_bytes());
        message.extend_from_slice(&[0; 6]);
        assert_eq!(Query::parse(&message).unwrap().limit, limit);
    }
}

#[test]
fn what_is_no_question_is_refused() {
    let valid = question("web.shop", TYPE_A);
    for length in 0..HEADER {
        assert_eq!(Query::parse(&valid[..length]), Err(NoQuery::Ignored));
    }
    let response = {
        let mut message = valid.clone();
        message[2] |= 0x80;
        message
    };
    assert_eq!(Query::parse(&response), Err(NoQuery::Ignored));
    let code = |message: &[u8]| match Query::parse(message) {
        Err(NoQuery::Refused(answer)) => {
            assert_eq!((answer.len(), &answer[..2]), (HEADER, &message[..2]));
            answer[3] & 0xf
        }
        other => panic!("{other:?}"),
    };
    for length in HEADER..valid.len() {
        assert_eq!(code(&valid[..length]), Code::FormatError as u8);
    }
    let changed = |index: usize, value: u8| {
        let mut message = valid.clone();
        message[index] = value;
        message
    };
    assert_eq!(code(&changed(5, 0)), Code::FormatError as u8, "no question");
    assert_eq!(code(&changed(5, 2)), Code::FormatError as u8, "two questions");
    assert_eq!(code(&changed(2, 0x10)), Code::NotImplemented as u8, "another opcode");
    assert_eq!(code(&changed(12, 0xc0)), Code::FormatError as u8, "a pointer in a question");
}

/// No message of a client may make the reader panic.
#[test]
fn random_messages_are_read() {
    let mut state = 7_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    for _ in 0..20_000 {
        let mut message = question("web.shop.svc.cluster.local", TYPE_A);
        for _ in 0..4 {
            let index = usize::from(random()) % message.len();
            message[index] = random();
        }
        message.truncate(usize::from(random()));
        if let Ok(query) = Query::parse(&message) {
            assert!(query.failure(Code::ServerFailure).len() >= HEADER);
        }
    }
}

#[test]
fn responses_are_written() {
    let query = Query::parse(&question("a.b", TYPE_A)).unwrap();
    let records = [
        Record { name: "a.b".to_owned(), data: Data::Alias("c".to_owned()) },
        Record { name: "c".to_owned(), data: Data::A([10, 0, 0, 1].into()) },
    ];
    let expected = b"\xab\xcd\x85\x00\0\x01\0\x02\0\0\0\0\
        \x01a\x01b\0\0\x01\0\x01\
        \x01a\x01b\0\0\x05\0\x01\0\0\0\x1e\0\x03\x01c\0\
        \x01c\0\0\x01\0\x01\0\0\0\x1e\0\x04\x0a\0\0\x01";
    assert_eq!(query.response(&records, 512), expected);
    // What does not fit is left out, and the response says so.
    let short = query.response(&records, expected.len() - 1);
    assert_eq!((short[2], short[7]), (0x87, 1));
    assert_eq!(short.len(), expected.len() - 17);
    assert_eq!(
        query.failure(Code::ServerFailure),
        b"\xab\xcd\x81\x02\0\x01\0\0\0\0\0\0\x01a\x01b\0\0\x01\0\x01"
    );
}

#[test]
fn responses_belong_to_their_query() {
    let query = question("a.b", TYPE_A);
    let mut response = query.clone();
    assert!(!answers(&response, &query), "not a response");
    response[2] |= 0x80;
    assert!(answers(&response, &query));
    let changed = |at: usize, byte| {
        let mut changed = response.clone();
        changed[at] = byte;
        changed
    };
    assert!(!answers(&changed(0, 0), &query), "another number");
    assert!(answers(&changed(HEADER + 1, b'A'), &query), "upper case");
    assert!(!answers(&changed(HEADER + 1, b'x'), &query), "another name");
    assert!(!answers(&changed(HEADER + 6, 28), &query), "another type");
    assert!(!answers(&response[..HEADER + 5], &query), "half of a question");
    assert!(answers(&changed(5, 0)[..HEADER], &query), "an error without the question");
    let mut records = changed(5, 0);
    records[7] = 1;
    assert!(!answers(&records, &query), "records for no question");
    assert!(!answers(&[], &query));
}
