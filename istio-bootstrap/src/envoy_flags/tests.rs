use super::*;

#[test]
fn levels_are_split() {
    assert_eq!(levels("warning"), ("warning", vec![]));
    assert_eq!(levels("info,misc:error,upstream:debug"), ("info", vec!["misc:error", "upstream:debug"]));
    assert_eq!(levels("misc:error"), ("", vec!["misc:error"]));
    assert_eq!(levels("info,a:b:c,debug"), ("debug", vec![]));
}
