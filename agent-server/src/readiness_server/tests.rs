use super::*;

#[test]
fn queries() {
    let wait = |millis| Some(Duration::from_millis(millis));
    for (query, verbose, expected) in [
        ("", false, None),
        ("verbose", true, None),
        ("verbose=0", true, None),
        ("wait=1", false, wait(1)),
        ("wait=30000", false, wait(30_000)),
        ("wait=0", false, None),
        ("wait=30001", false, None),
        ("wait=-1", false, None),
        ("wait=1s", false, None),
        ("wait", false, None),
        ("other=1&verbose&wait=400&", true, wait(400)),
        ("%77ait=400", false, None),
    ] {
        assert_eq!(Query::parse(query), Query { verbose, wait: expected }, "{query}");
    }
}
