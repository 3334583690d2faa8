use super::*;

/// Simulates the clock in steps of 1 ms up to 1000 ms with changes at the given times, and compares
/// the times of the pushes.
fn check(changes: &[u64], pushes: &[u64]) {
    let milliseconds = Duration::from_millis;
    let mut debounce = Debounce::new(milliseconds(50), milliseconds(200));
    let mut pushed = Vec::new();
    for now in 0..1000 {
        if changes.contains(&now) {
            debounce.changed(milliseconds(now));
        }
        if debounce.due().is_some_and(|due| due <= milliseconds(now)) {
            debounce.pushed(milliseconds(now));
            pushed.push(now);
        }
    }
    assert_eq!(pushed, pushes, "{changes:?}");
}

#[test]
fn first_change_is_pushed_immediately_and_later_ones_together() {
    check(&[], &[]);
    check(&[10], &[10]);
    check(&[10, 60], &[10, 60]);
    check(&[10, 59], &[10, 109]);
    check(&[10, 20, 30], &[10, 80]);
    // Continuous changes are pushed at most 200 ms after the first pending one.
    let steady: Vec<u64> = (0..50).map(|step| step * 10).collect();
    check(&steady, &[0, 210, 420, 540]);
}
