use super::*;

/// What kubectl's decoder says; `tests/control-plane/kubectl_decoder.rs` compares many more.
#[test]
fn plain_scalars_have_types() {
    for (text, expected) in [
        ("", Scalar::Null),
        ("~", Scalar::Null),
        ("y", Scalar::Boolean(true)),
        ("oFF", Scalar::Text("oFF".to_owned())),
        ("Off", Scalar::Boolean(false)),
        ("0644", Scalar::Integer(420)),
        ("-0b101", Scalar::Integer(-5)),
        ("0b-1", Scalar::Integer(-1)),
        ("0o17", Scalar::Integer(15)),
        ("0X1F", Scalar::Integer(31)),
        ("1_000", Scalar::Integer(1000)),
        ("08", Scalar::Float(8.0)),
        ("1e3", Scalar::Float(1000.0)),
        ("+.5", Scalar::Float(0.5)),
        ("1.", Scalar::Float(1.0)),
        ("-9223372036854775808", Scalar::Integer(i64::MIN)),
        ("18446744073709551615", Scalar::Unsigned(u64::MAX)),
        ("18446744073709551616", Scalar::Float(18_446_744_073_709_551_616.0)),
        ("123e4567", Scalar::Text("123e4567".to_owned())),
        (".5_1e1_0", Scalar::Float(0.51e10)),
        (".5_", Scalar::Text(".5_".to_owned())),
        ("._1", Scalar::Text("._1".to_owned())),
        ("1:30", Scalar::Text("1:30".to_owned())),
        ("2001-01-01", Scalar::Text("2001-01-01".to_owned())),
        ("0x", Scalar::Text("0x".to_owned())),
        ("-", Scalar::Text("-".to_owned())),
    ] {
        assert_eq!(Scalar::of_plain(text), expected, "{text:?}");
    }
}

#[test]
fn keys_become_text() {
    for (text, expected) in [
        ("on", Ok("true")),
        ("0644", Ok("420")),
        ("1e3", Ok("1000")),
        ("1e6", Ok("1e+06")),
        ("1000000", Ok("1000000")),
        ("0.00001", Ok("1e-05")),
        ("1.5", Ok("1.5")),
        ("1e39", Ok(".inf")),
        ("-.inf", Ok("-.inf")),
        (".nan", Ok(".nan")),
        ("null", Err("null is not a key; write it in quotes")),
        ("18446744073709551615", Err("the number is too large for a key; write it in quotes")),
    ] {
        let key = Scalar::of_plain(text).into_key().map(|(key, _)| key);
        assert_eq!(key.as_deref().map_err(|reason| *reason), expected, "{text:?}");
    }
}

/// The API server accepts `port: 9090.0`, because kubectl sends an integer.
#[test]
fn a_number_without_fraction_is_an_integer() {
    for (text, expected) in [
        ("9090.0", "9090"),
        ("1e3", "1000"),
        ("-2.", "-2"),
        ("0.5", "0.5"),
        ("-0.0", "-0.0"),
        ("9007199254740991.0", "9007199254740991"),
        ("9007199254740992.0", "9007199254740992.0"),
        ("1e21", "1e+21"),
    ] {
        let value = Scalar::of_plain(text).into_value().expect("a number in JSON");
        assert_eq!(value.to_string(), expected, "{text}");
    }
}

#[test]
fn tags_must_match() {
    assert_eq!(Scalar::of_tag("str", "1"), Ok(Scalar::Text("1".to_owned())));
    assert_eq!(Scalar::of_tag("int", "0x10"), Ok(Scalar::Integer(16)));
    assert_eq!(Scalar::of_tag("float", "1"), Ok(Scalar::Float(1.0)));
    assert_eq!(Scalar::of_tag("bool", "yes"), Ok(Scalar::Boolean(true)));
    for (tag, text) in [("int", "x"), ("float", "x"), ("bool", "1"), ("null", "x"), ("binary", "aGk=")] {
        assert!(Scalar::of_tag(tag, text).is_err(), "{tag} {text}");
    }
    assert!(Scalar::Float(f64::NAN).into_value().is_err());
}
