use super::*;

#[test]
fn a_clap_error_becomes_one_line() {
    let message = "error: unexpected argument '--admn' found\n\n  tip: a similar argument exists: '--admin'\n\nUsage: x\n\nFor more\n";
    assert_eq!(
        one_line(message),
        "unexpected argument '--admn' found tip: a similar argument exists: '--admin'"
    );
}
