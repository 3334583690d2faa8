use super::changes;

#[test]
fn a_change_of_a_verdict_is_named() {
    let published = "failure: a (200)\nerror success D1: b\n";
    let changed = published.replace("error", "failure");
    assert_eq!(changes(published, &changed), ["- error success D1: b", "+ failure success D1: b"]);
    assert!(changes(published, published).is_empty());
}
