use super::*;

#[test]
fn levels() {
    let log = LogLevelHandle::detached();
    assert!(log.set("debug") && log.set("error"));
    assert!(!log.set("Debug") && !log.set("all") && !log.set(""));
}
