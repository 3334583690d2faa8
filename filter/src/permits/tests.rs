use super::{Permit, Permits};

fn take(permits: &Permits, client: &str, number: usize) -> Vec<Permit> {
    (0..number).map_while(|_| permits.take(|| client.into())).collect()
}

#[test]
fn one_client_takes_the_shared_permits_and_two_more() {
    let permits = Permits::default();
    let mut greedy = take(&permits, "a", 20);
    assert_eq!(greedy.len(), 10);
    assert_eq!(take(&permits, "b", 20).len(), 2);
    assert_eq!(take(&permits, "c", 20).len(), 2);
    permits.free(&greedy.pop().expect("a permit"));
    assert_eq!(take(&permits, "a", 20).len(), 1);
    greedy.into_iter().for_each(|permit| permits.free(&permit));
    assert_eq!(take(&permits, "a", 20).len(), 8 + 1, "one of its permits is still taken");
}

#[test]
fn a_hundred_clients_leave_a_permit() {
    let permits = Permits::default();
    let clients: usize = (0..100).map(|client| take(&permits, &format!("{client}"), 20).len()).sum();
    assert_eq!(clients, 8 + 2 * 100);
    assert_eq!(take(&permits, "kubelet", 1).len(), 1);
    let more: usize = (0..100).map(|client| take(&permits, &format!("more {client}"), 20).len()).sum();
    assert_eq!(8 + 2 * 100 + 1 + more, 256);
}

#[test]
fn all_permits_are_free_again() {
    let permits = Permits::default();
    for _ in 0..3 {
        let taken: Vec<Permit> =
            (0..300).flat_map(|client| take(&permits, &format!("{client}"), 3)).collect();
        assert_eq!(taken.len(), 256);
        taken.into_iter().for_each(|permit| permits.free(&permit));
    }
    assert!(permits.clients.borrow().is_empty());
}
