use super::*;

#[test]
fn query_filters() {
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(filter(""), Ok(Filter::default()));
    let expected = Filter { namespace: some("shop"), group: None, state: some("False") };
    assert_eq!(filter("namespace=shop&state=False&group="), Ok(expected));
    assert_eq!(filter("namespace=shop&colour=red"), Err("colour".to_owned()));
}
