use super::*;

#[test]
fn levels() {
    let log = LogLevelHandle::detached();
    assert!(log.set("debug") && log.set("error"));
    assert!(!log.set("Debug") && !log.set("all") && !log.set(""));
}

#[test]
fn the_format_of_an_invalid_command_line() {
    for (line, variable, format) in [
        ("run --bogus --log-format json", None, LogFormat::Json),
        ("run --log-format=json --bogus", None, LogFormat::Json),
        ("run --bogus", Some("json"), LogFormat::Json),
        ("run --bogus --log-format text", Some("json"), LogFormat::Text),
        ("run --bogus --log-format", Some("json"), LogFormat::Text),
        ("run --bogus -- --log-format json", None, LogFormat::Text),
        ("run --bogus", None, LogFormat::Text),
    ] {
        let found = requested_format(line.split(' ').map(OsString::from), variable.map(OsStr::new));
        assert_eq!(found, format, "{line}");
    }
}
