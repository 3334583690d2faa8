use std::net::IpAddr;

use super::*;

fn source(last: u8) -> Option<Source> {
    Some(IpAddr::from([192, 0, 2, last]).into())
}

#[tokio::test(start_paused = true)]
async fn one_source_writes_few_lines() {
    let log = ReviewLog::default();
    let taken = |source| (0..10_000).filter(|_| log.is_within_limit(source, LINE)).count() * LINE;
    let most = (32 << 10) / LINE * LINE;
    assert_eq!(taken(source(1)), most);
    assert_eq!(taken(source(2)), most, "another source has its own limit");
    assert_eq!(taken(None), 10_000 * LINE, "the API server has none");
    tokio::time::advance(MINUTE).await;
    assert_eq!(taken(source(1)), most);
}

#[test]
fn names_are_as_long_as_kubernetes_permits() {
    assert_eq!(quoted("shop"), "\"shop\"");
    assert_eq!(quoted(&"x".repeat(1 << 20)).len(), NAME + 2);
    assert_eq!(quoted("a\n\u{1b}[2J"), r#""a\n\u{1b}[2J""#);
}
