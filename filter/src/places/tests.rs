use super::{Place, Places};

fn take(places: &Places, client: &str, number: usize) -> Vec<Place> {
    (0..number).map_while(|_| places.take(|| client.into())).collect()
}

#[test]
fn one_client_takes_the_shared_places_and_two_more() {
    let places = Places::default();
    let mut greedy = take(&places, "a", 20);
    assert_eq!(greedy.len(), 10);
    assert_eq!(take(&places, "b", 20).len(), 2);
    assert_eq!(take(&places, "c", 20).len(), 2);
    places.free(&greedy.pop().expect("a place"));
    assert_eq!(take(&places, "a", 20).len(), 1);
    greedy.into_iter().for_each(|place| places.free(&place));
    assert_eq!(take(&places, "a", 20).len(), 8 + 1, "one of its places is still taken");
}

#[test]
fn a_hundred_clients_leave_a_place() {
    let places = Places::default();
    let clients: usize = (0..100).map(|client| take(&places, &format!("{client}"), 20).len()).sum();
    assert_eq!(clients, 8 + 2 * 100);
    assert_eq!(take(&places, "kubelet", 1).len(), 1);
    let more: usize = (0..100).map(|client| take(&places, &format!("more {client}"), 20).len()).sum();
    assert_eq!(8 + 2 * 100 + 1 + more, 256);
}

#[test]
fn all_places_are_free_again() {
    let places = Places::default();
    for _ in 0..3 {
        let taken: Vec<Place> = (0..300).flat_map(|client| take(&places, &format!("{client}"), 3)).collect();
        assert_eq!(taken.len(), 256);
        taken.into_iter().for_each(|place| places.free(&place));
    }
    assert!(places.clients.borrow().is_empty());
}
