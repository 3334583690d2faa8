use std::rc::Rc;

use super::{Permit, Permits};

fn take(permits: &Rc<Permits>, client: &str, number: usize) -> Vec<Permit> {
    (0..number).map_while(|_| permits.take(|| client.into())).collect()
}

#[test]
fn one_client_takes_the_shared_permits_and_two_more() {
    let permits = Rc::new(Permits::default());
    let mut greedy = take(&permits, "a", 20);
    assert_eq!(greedy.len(), 10);
    let others = ["b", "c"].map(|client| take(&permits, client, 20));
    assert_eq!(others.each_ref().map(Vec::len), [2, 2]);
    drop(greedy.pop());
    let again = take(&permits, "a", 20);
    assert_eq!(again.len(), 1);
    drop(greedy);
    assert_eq!(take(&permits, "a", 20).len(), 8 + 1, "one of its permits is still taken");
}

#[test]
fn a_hundred_clients_leave_a_permit() {
    let permits = Rc::new(Permits::default());
    let clients: Vec<Permit> = (0..100).flat_map(|client| take(&permits, &format!("{client}"), 20)).collect();
    assert_eq!(clients.len(), 8 + 2 * 100);
    let kubelet = take(&permits, "kubelet", 1);
    assert_eq!(kubelet.len(), 1);
    let more: Vec<Permit> =
        (0..100).flat_map(|client| take(&permits, &format!("more {client}"), 20)).collect();
    assert_eq!(8 + 2 * 100 + 1 + more.len(), 256);
}

#[test]
fn all_permits_are_free_again() {
    let permits = Rc::new(Permits::default());
    for _ in 0..3 {
        let taken: Vec<Permit> =
            (0..300).flat_map(|client| take(&permits, &format!("{client}"), 3)).collect();
        assert_eq!(taken.len(), 256);
        drop(taken);
        assert!(permits.clients.borrow().is_empty());
        assert_eq!(permits.shared.get(), 0);
    }
}
