use proptest::prelude::*;

use super::{Json, field, has_duplicate_key};
use crate::ConfigError;

fn parse(text: &str) -> Result<Json, ConfigError> {
    Json::parse("key", text.as_bytes())
}

fn nested(levels: usize) -> String {
    "[".repeat(levels) + &"]".repeat(levels)
}

#[test]
fn values_print_as_they_were_written() {
    for text in [
        "null",
        "true",
        "false",
        "0",
        "-1",
        "18446744073709551615",
        "1.5",
        r#""""#,
        r#""a\"b\\c\n\r\t\u0000\u00e9\u007f/""#,
        r#""\ud83d\ude00""#,
        "[]",
        "[1,[2,{}],null]",
        "{}",
        r#"{"b":1,"a":{"c":[]},"b":2}"#,
    ] {
        assert_eq!(parse(text).expect(text).excerpt(), text);
    }
}

#[test]
fn excerpts_have_at_most_64_bytes() {
    for (length, expected) in [
        (62, format!("\"{}\"", "a".repeat(62))),
        (63, format!("\"{}…", "a".repeat(63))),
        (64, format!("\"{}…", "a".repeat(63))),
        (100_000, format!("\"{}…", "a".repeat(63))),
    ] {
        assert_eq!(Json::String("a".repeat(length)).excerpt(), expected, "{length}");
    }
    let many = parse(&format!("[{}1]", "1,".repeat(5000))).expect("an array").excerpt();
    assert_eq!(many, format!("[{}1…", "1,".repeat(31)));
    let many = parse(&format!("{{{}\"a\":1}}", "\"a\":1,".repeat(5000))).expect("an object").excerpt();
    assert_eq!(many.chars().count(), 65);
}

#[test]
fn deep_nesting_is_rejected_before_parsing() {
    for (levels, refused) in [(1, false), (31, false), (32, false), (33, true), (128, true), (100_000, true)]
    {
        let error = parse(&nested(levels)).err().map(|error| error.to_string());
        assert_eq!(error, refused.then(|| "key = …: more than 32 levels".into()), "{levels}");
    }
    let objects = "{\"a\":".repeat(33) + "1" + &"}".repeat(33);
    assert_eq!(parse(&objects).expect_err("deep").reason, "more than 32 levels");
}

#[test]
fn brackets_in_strings_do_not_count_as_nesting() {
    for text in [format!("\"{}\"", "[".repeat(99)), format!("[\"\\\"{}\",\"\\\\\",[]]", "{".repeat(99))] {
        assert!(parse(&text).is_ok(), "{text}");
    }
}

#[test]
fn integers() {
    for (text, expected) in [
        ("0", Some(0)),
        ("-7", Some(-7)),
        ("9223372036854775807", Some(i64::MAX)),
        ("-9223372036854775808", Some(i64::MIN)),
        ("18446744073709551615", Some(i64::MAX)),
        ("80.0", None),
        ("8e1", None),
        ("80.5", None),
        ("\"80\"", None),
        ("true", None),
        ("null", None),
        ("[80]", None),
        ("99999999999999999999999", None),
    ] {
        let integer = parse(text).expect(text).integer("key");
        assert_eq!(integer.as_ref().ok(), expected.as_ref(), "{text}");
        if let Err(error) = integer {
            assert_eq!(error.reason, "must be an integer", "{text}");
        }
    }
}

#[test]
fn fields_and_duplicates() {
    let Ok(Json::Object(pairs)) = parse(r#"{"Port":1,"host":null,"x":2}"#) else { panic!("an object") };
    for (name, ignore_case, found) in [
        ("port", true, true),
        ("PORT", true, true),
        ("port", false, false),
        ("Port", false, true),
        ("host", false, false),
        ("y", true, false),
    ] {
        assert_eq!(field(&pairs, name, ignore_case).is_some(), found, "{name} {ignore_case}");
    }
    for (text, folded, exact) in [
        (r#"{"a":1,"b":2}"#, false, false),
        (r#"{"a":1,"A":2}"#, true, false),
        (r#"{"a":1,"b":2,"a":1}"#, true, true),
        (r#"{"a":1,"\u0061":null}"#, true, true),
        (r#"{"é":1,"É":2}"#, false, false),
    ] {
        let Ok(Json::Object(pairs)) = parse(text) else { panic!("{text}") };
        assert_eq!(
            (has_duplicate_key(&pairs, true), has_duplicate_key(&pairs, false)),
            (folded, exact),
            "{text}"
        );
    }
}

proptest! {
    #[test]
    fn arbitrary_bytes_are_parsed_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        if let Err(error) = Json::parse("key", &bytes) {
            let text = error.to_string();
            prop_assert!(text.chars().all(|char| char == '…' || (' '..='~').contains(&char)), "{}", text);
        }
    }

    #[test]
    fn arbitrary_json_like_text_is_parsed_or_rejected(text in "[\\[\\]{}\",:\\\\0-9a-e.truenl -]{0,60}") {
        if let Ok(json) = parse(&text) {
            prop_assert!(json.excerpt().chars().count() <= 65);
        }
    }
}
