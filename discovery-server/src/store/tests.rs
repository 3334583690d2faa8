use super::*;

fn write(sequence: u64) -> Write {
    Write { sequence, record: None, session: 0 }
}

#[tokio::test(start_paused = true)]
async fn only_the_newest_write_of_an_entry_is_kept() {
    let writes = PendingWrites::default();
    let (a, b) = (Key::new("shop", "a"), Key::new("shop", "b"));
    writes.push(a.clone(), write(1));
    writes.push(b.clone(), write(2));
    writes.push(a.clone(), write(3));
    assert_eq!(writes.take().await, BTreeMap::from([(a.clone(), write(3)), (b, write(2))]));
    assert!(writes.take_now().is_empty());
    let taken = tokio::spawn({
        let writes = writes.clone();
        async move { writes.take().await }
    });
    tokio::task::yield_now().await;
    writes.push(a.clone(), write(4));
    assert_eq!(taken.await.expect("it ends"), BTreeMap::from([(a, write(4))]));
}
