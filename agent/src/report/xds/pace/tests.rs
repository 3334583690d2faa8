use super::*;

/// Checks that reading `messages` messages in a row takes `expected`.
async fn check(pace: &mut Pace, messages: u32, expected: Duration) {
    let start = Instant::now();
    for _ in 0..messages {
        pace.pass().await;
    }
    assert_eq!(start.elapsed(), expected, "{messages} messages");
}

#[tokio::test(start_paused = true)]
async fn a_flood_waits_and_a_pause_makes_up_for_it() {
    let mut pace = Pace::new();
    check(&mut pace, BURST, Duration::ZERO).await;
    check(&mut pace, 30, INTERVAL * 30).await;
    sleep(INTERVAL * BURST).await;
    check(&mut pace, BURST, Duration::ZERO).await;
    check(&mut pace, 1, INTERVAL).await;
}
