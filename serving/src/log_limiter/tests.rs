use super::*;

#[test]
fn a_repeated_warning_is_logged_once_a_minute_with_its_count() {
    let (start, mut repeated) = (Instant::now(), LogLimiter::default());
    let logged: Vec<_> = [0, 1, 59, 60, 61, 200]
        .map(|seconds| repeated.record(start + Duration::from_secs(seconds)))
        .into_iter()
        .collect();
    assert_eq!(logged, [Some(1), None, None, Some(3), None, Some(2)]);
}
