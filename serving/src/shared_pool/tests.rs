use std::pin::pin;
use std::task::{Context, Waker};

use super::*;

fn is_evicted(slot: &Slot) -> bool {
    pin!(slot.evicted()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[tokio::test(start_paused = true)]
async fn slots_that_grow_beyond_the_total_evict_idle_ones() {
    let pool = SharedPool::new(10, 10);
    let (idle, busy, greedy) = (pool.open(None), pool.open(None), pool.open(None));
    assert_eq!((idle.grow(4), busy.grow(4), busy.set_busy(), pool.used()), (Ok(()), Ok(()), true, 8));
    assert_eq!((greedy.grow(6), pool.used()), (Ok(()), 10));
    assert!(is_evicted(&idle) && !is_evicted(&busy) && !is_evicted(&greedy));
    assert_eq!((greedy.grow(1), pool.used()), (Err(Full), 4));
    assert!(is_evicted(&greedy) && !greedy.set_busy());
    drop(busy);
    assert_eq!(pool.used(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_busy_slot_can_be_evicted_after_it_has_been_idle() {
    let pool = SharedPool::new(1, 1);
    let first = pool.admit(None).unwrap();
    assert!(first.set_busy() && pool.admit(None).is_err());
    first.set_idle(Duration::from_secs(1));
    assert!(pool.admit(None).is_err());
    tokio::time::advance(Duration::from_secs(1)).await;
    let second = pool.admit(None).unwrap();
    assert!(is_evicted(&first) && !is_evicted(&second));
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_is_admitted_fairly_evicts_a_busy_one_of_a_source_with_more() {
    let pool = SharedPool::new(2, 2);
    let source = |last: u8| Some(std::net::IpAddr::from([192, 0, 2, last]).into());
    let greedy = [(); 2].map(|()| pool.admit_fairly(source(1)).unwrap());
    assert!(greedy.iter().all(Slot::set_busy));
    let other = pool.admit_fairly(source(2)).unwrap();
    assert!(is_evicted(&greedy[0]) && !is_evicted(&greedy[1]) && !is_evicted(&other));
    assert!(pool.admit_fairly(source(3)).is_err(), "each source has one");
    other.release();
    assert!(!is_evicted(&other), "its holder goes on");
    assert!(pool.admit_fairly(source(3)).is_ok());
}
