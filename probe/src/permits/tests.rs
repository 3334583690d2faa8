use super::{Permit, Permits};

fn take(permits: &mut Permits, client: &str, number: usize) -> Vec<Permit> {
    (0..number).map_while(|_| permits.take(|| client.into())).collect()
}

#[test]
fn one_client_takes_the_shared_permits_and_two_more() {
    let mut permits = Permits::default();
    let mut greedy = take(&mut permits, "a", 20);
    assert_eq!(greedy.len(), 10);
    assert_eq!(["b", "c"].map(|client| take(&mut permits, client, 20).len()), [2, 2]);
    permits.give_back(&greedy.pop().expect("a permit"));
    assert_eq!(take(&mut permits, "a", 20).len(), 1);
    greedy.iter().for_each(|permit| permits.give_back(permit));
    assert_eq!(take(&mut permits, "a", 20).len(), 8 + 1, "one of its permits is still taken");
}

#[test]
fn a_hundred_clients_leave_a_permit() {
    let mut permits = Permits::default();
    let mut many = |name: &str| -> usize {
        (0..100).map(|client| take(&mut permits, &format!("{name} {client}"), 20).len()).sum()
    };
    assert_eq!(many("one"), 8 + 2 * 100);
    assert_eq!(many("another"), 248 - 2 * 100);
}

#[test]
fn all_permits_are_free_again() {
    let mut permits = Permits::default();
    for _ in 0..3 {
        let taken: Vec<Permit> =
            (0..300).flat_map(|client| take(&mut permits, &format!("{client}"), 3)).collect();
        assert_eq!(taken.len(), 256);
        taken.iter().for_each(|permit| permits.give_back(permit));
        assert_eq!(permits, Permits::default());
    }
}
