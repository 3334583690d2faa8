use tokio::sync::mpsc::{self, Sender};
use tokio::time::{advance, sleep};

use super::*;

const PATIENCE: Duration = Duration::from_millis(100);

fn sources(count: usize) -> (Vec<Sender<&'static str>>, Arrivals<&'static str>) {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..count).map(|_| mpsc::channel(4)).unzip();
    (senders, Arrivals::new(receivers, PATIENCE))
}

#[tokio::test(start_paused = true)]
async fn a_silent_source_delays_no_other() {
    let (mut senders, mut arrivals) = sources(2);
    let (good, silent) = (senders.pop().unwrap(), senders.pop().unwrap());
    let started = Instant::now();
    good.send("a").await.unwrap();
    good.send("b").await.unwrap();
    drop(good);
    for chunk in [Some("a"), Some("b"), None] {
        assert_eq!(arrivals.next().await, Some((1, chunk)));
    }
    assert_eq!(started.elapsed(), Duration::ZERO);
    drop(silent);
    assert_eq!(arrivals.next().await, Some((0, None)));
    assert_eq!(arrivals.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn the_current_source_comes_first() {
    let (senders, mut arrivals) = sources(3);
    senders[1].send("a").await.unwrap();
    assert_eq!(arrivals.next().await, Some((1, Some("a"))));
    senders[0].send("x").await.unwrap();
    let late = senders[1].clone();
    tokio::spawn(async move {
        sleep(PATIENCE / 2).await;
        late.send("b").await.unwrap();
    });
    assert_eq!(arrivals.next().await, Some((1, Some("b"))), "within its time");
    assert_eq!(arrivals.next().await, Some((0, Some("x"))), "the time is over");
}

#[tokio::test(start_paused = true)]
async fn a_source_that_stalls_again_and_again_delays_the_others_once() {
    let (senders, mut arrivals) = sources(2);
    let started = Instant::now();
    senders[0].send("slow").await.unwrap();
    assert_eq!(arrivals.next().await, Some((0, Some("slow"))));
    for _ in 0..50 {
        senders[1].send("fast").await.unwrap();
        senders[0].send("slow").await.unwrap();
        let mut found = [arrivals.next().await, arrivals.next().await].map(|arrived| arrived.unwrap().0);
        found.sort_unstable();
        assert_eq!(found, [0, 1]);
        advance(PATIENCE).await;
    }
    senders[1].send("fast").await.unwrap();
    senders[1].send("fast").await.unwrap();
    let before = started.elapsed();
    for _ in 0..2 {
        assert_eq!(arrivals.next().await, Some((1, Some("fast"))));
    }
    assert!(started.elapsed() - before <= PATIENCE, "{:?}", started.elapsed() - before);
}
