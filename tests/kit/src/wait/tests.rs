use std::time::Duration;

use super::scaled;

#[test]
fn a_slow_machine_gets_more_time_and_a_wrong_value_changes_nothing() {
    let seconds = |value: Option<&str>| scaled(value.map(str::to_owned)).as_secs();
    assert_eq!(seconds(Some("2.5")), 600);
    let unchanged = [None, Some("1"), Some("0.1"), Some("-3"), Some("NaN"), Some("fast"), Some("")];
    for value in unchanged {
        assert_eq!(Duration::from_secs(seconds(value)), super::USUAL_TIMEOUT, "{value:?}");
    }
}
