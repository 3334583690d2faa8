use super::*;

#[test]
fn waiting_times_of_a_command_are_added() {
    for (command, seconds) in [
        ("sleep 15", 15),
        ("/bin/sh -c sleep 20 && nginx -s quit", 20),
        ("/bin/sh -c sleep 5; wget -q localhost/drain; sleep 2m", 125),
        ("app-health-agent drain --waitSeconds=40", 40),
        ("sh -c 'sleep 1.5'", 1),
        ("sleep infinity", 0),
        ("asleep 10", 0),
        ("nginx -s quit", 0),
        ("sleep", 0),
    ] {
        assert_eq!(exec_seconds(command), seconds, "{command}");
    }
}

#[test]
fn durations_have_units() {
    for (text, seconds) in [("30s", Some(30)), ("2m", Some(120)), ("1h", Some(3600)), ("5", Some(5))] {
        assert_eq!(duration_seconds(text), seconds, "{text}");
    }
    for text in ["", "s", "5d", "18446744073709551615h"] {
        assert_eq!(duration_seconds(text), None, "{text}");
    }
}
