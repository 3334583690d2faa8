use super::changed_verdicts;

const PAGE: &str = "| a (200) | failure 400 | failure 502 | |\n| b | error | success | D1 |\n";

#[test]
fn a_change_of_a_verdict_is_named() {
    let changed = PAGE.replace("error", "failure");
    assert_eq!(
        changed_verdicts(PAGE, &changed),
        ["- | b | error | success | D1 |", "+ | b | failure | success | D1 |"]
    );
    assert_eq!(changed_verdicts(PAGE, &PAGE.replace("200", "201")).len(), 2);
}

#[test]
fn statuses_are_not_compared() {
    assert!(changed_verdicts(PAGE, &PAGE.replace("502", "520")).is_empty());
}
