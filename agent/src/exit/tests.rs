use super::*;

#[test]
fn a_clap_error_becomes_one_line() {
    let message = "error: unexpected argument '--admn' found\n\n  tip: a similar argument exists: '--admin'\n\nUsage: x\n\nFor more\n";
    assert_eq!(
        one_line(message),
        "unexpected argument '--admn' found tip: a similar argument exists: '--admin'"
    );
}

#[test]
fn codes() {
    let codes = [
        (Failure::Broken(String::new()), 1),
        (Failure::Usage(String::new()), 64),
        (Failure::Unavailable(String::new()), 69),
        (Failure::Ended(String::new()), 70),
        (Failure::Machine(String::new()), 71),
        (Failure::CannotWrite(String::new()), 73),
        (Failure::NotExecutable(String::new()), 126),
        (Failure::NotFound(String::new()), 127),
        (Failure::Signal("SIGINT", 2), 130),
        (Failure::Signal("SIGTERM", 15), 143),
    ];
    for (failure, code) in codes {
        assert_eq!(failure.code(), code, "{failure:?}");
    }
}
