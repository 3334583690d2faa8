use super::verdicts;

#[test]
fn verdicts_are_what_counts() {
    let page = "| a (200) | failure 400 | failure 502 | |\n| b | error | success | D1 |\n";
    assert_eq!(verdicts(page), verdicts(&page.replace("502", "520")));
    assert_ne!(verdicts(page), verdicts(&page.replace("error", "failure")));
    assert_ne!(verdicts(page), verdicts(&page.replace("200", "201")));
}
