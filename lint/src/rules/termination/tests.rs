use super::*;

#[test]
fn waiting_times_of_a_command_are_added() {
    for (command, seconds) in [
        ("sleep 15", 15),
        ("sleep 30s", 30),
        ("sleep 1d", 86_400),
        ("sleep 1m 30s", 90),
        ("sleep 0.5m", 30),
        ("sleep 1e2", 100),
        ("/bin/sh -c sleep 20 && nginx -s quit", 20),
        ("/bin/sh -c sleep 5; wget -q localhost/drain; sleep 2m", 125),
        ("sh -c sleep 5\nsleep 6", 11),
        ("app-health-agent drain --waitSeconds=40", 40),
        ("sh -c 'sleep 1.5'", 1),
        ("sleep 0.5", 0),
        ("sleep .5; sleep .5", 1),
        ("sleep 60 & nginx -s quit", 0),
        ("sleep 60 & wait", 60),
        ("sleep 60 >/dev/null 2>&1; nginx -s quit", 60),
        ("sleep 60 >&2; nginx -s quit", 60),
        ("sleep 60 &>/dev/null; nginx -s quit", 60),
        ("sleep 60&>>/tmp/log; nginx -s quit", 60),
        ("sleep 60 <&-; nginx -s quit", 60),
        ("nginx -s quit 2>&1 && sleep 60", 60),
        ("sleep 60 >/dev/null 2>&1 & nginx -s quit", 0),
        ("sleep 60 &>/dev/null & nginx -s quit", 0),
        ("timeout 10 sleep infinity", 10),
        ("timeout -k 1 10 sleep 3", 3),
        ("asleep 10", 0),
        ("nginx -s quit", 0),
        ("tail -n 5 /var/log/nginx", 0),
        ("tail --pid=1 -f /dev/null", 0),
        ("sleep", 0),
        ("sleep $DELAY", 0),
        ("sleep -5", 0),
    ] {
        assert_eq!(exec_length(command), Length::Seconds(seconds), "{command}");
    }
}

#[test]
fn endless_commands_are_recognized() {
    for command in [
        "sleep infinity",
        "sleep inf",
        "/bin/sleep Infinity",
        "sh -c 'nginx -s quit; sleep infinity'",
        "sleep infinity & wait",
        "timeout 0 sleep infinity",
        "tail -f /dev/null",
        "tail -n 0 -F /var/log/nginx",
        "tail --follow=name /var/log/nginx",
    ] {
        assert_eq!(exec_length(command), Length::Endless, "{command}");
    }
    assert!(Length::Endless > Length::Seconds(u64::MAX));
}

#[test]
fn durations_have_units() {
    for (text, seconds) in
        [("30s", 30), ("2m", 120), ("1h", 3600), ("1m30s", 90), ("1.5h", 5400), ("900ms", 0), ("2s500ms", 2)]
    {
        assert_eq!(duration_seconds(text), Some(seconds), "{text}");
    }
    for text in ["", "s", "5", "5d", "5sec", "-5s"] {
        assert_eq!(duration_seconds(text), None, "{text}");
    }
}
