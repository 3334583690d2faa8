use super::*;

#[test]
fn go_durations() {
    for (text, millis) in [
        ("5s", Some(5000)),
        ("1m30s", Some(90_000)),
        ("500ms", Some(500)),
        ("1.5h", Some(5_400_000)),
        ("0", Some(0)),
        ("0s", Some(0)),
        ("", None),
        ("5", None),
        ("-5s", None),
        ("5 s", None),
        ("5d", None),
        ("1e3s", None),
        ("..s", None),
    ] {
        assert_eq!(go_duration(text), millis.map(Duration::from_millis), "{text:?}");
    }
}
