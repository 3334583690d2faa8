use super::*;

#[test]
fn parse_and_format() {
    let rows = [
        ("1970-01-01T00:00:00Z", Some(0)),
        ("2026-01-02T03:04:05Z", Some(1_767_323_045)),
        ("2026-01-02T03:04:05.999Z", Some(1_767_323_045)),
        ("2026-01-02T04:04:05+01:00", Some(1_767_323_045)),
        ("2026-01-02T01:34:05-01:30", Some(1_767_323_045)),
        ("2026-01-02", None),
        ("2026-13-02T03:04:05Z", None),
        ("2026-01-02T03:04:05", None),
        ("2026-01-02T03:04:05+1", None),
        ("2026-01-02t03:04:05Z", Some(1_767_323_045)),
        ("+026-01-02T03:04:05Z", None),
        ("ÿ026-01-02T03:04:05Z", None),
        ("", None),
    ];
    for (text, seconds) in rows {
        let read = text.parse::<Timestamp>().ok();
        assert_eq!(read.map(Timestamp::seconds), seconds, "{text}");
        if let Some(read) = read.filter(|_| text.len() == 20) {
            assert_eq!(read.to_string(), text.to_uppercase());
        }
    }
    assert_eq!(Timestamp::from_seconds(i64::MAX).to_string(), "9999-12-31T23:59:59Z");
    assert_eq!(Timestamp::from_seconds(i64::MIN).to_string(), "0000-01-01T00:00:00Z");
}

#[test]
fn ages_are_rounded() {
    let minus = |millis| Timestamp::from_seconds(100).minus(Duration::from_millis(millis)).seconds();
    assert_eq!([minus(0), minus(499), minus(500), minus(1_499), minus(99_600)], [100, 100, 99, 99, 0]);
    assert_eq!(Timestamp::from_seconds(0).minus(Duration::MAX).to_string(), "0000-01-01T00:00:00Z");
}
