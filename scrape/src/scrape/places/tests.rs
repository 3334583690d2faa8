use std::net::IpAddr;

use super::*;

/// Returns the client 192.0.2.`last`.
fn client(last: u8) -> Option<Source> {
    Some(IpAddr::from([192, 0, 2, last]).into())
}

/// Takes this many places for each client, which must exist.
fn taken(places: &Places, clients: &[(Option<Source>, usize)]) -> Vec<Place> {
    let each = clients.iter().flat_map(|(client, count)| std::iter::repeat_n(*client, *count));
    each.map(|client| places.take(client).expect("a place")).collect()
}

fn superseded(taken: &[Place]) -> Vec<usize> {
    (0..taken.len()).filter(|number| taken[*number].superseded.is_cancelled()).collect()
}

#[test]
fn one_client_may_take_all_places_but_no_more() {
    for client in [client(1), None] {
        let places = Places::default();
        let mut all = taken(&places, &[(client, SCRAPES)]);
        assert!(places.take(client).is_none() && superseded(&all).is_empty());
        all.pop();
        assert!(places.take(client).is_some(), "one is free");
    }
}

#[test]
fn another_client_gets_the_oldest_place_of_the_client_with_the_most() {
    let places = Places::default();
    let all = taken(&places, &[(client(1), 4), (None, 3), (client(2), SCRAPES - 7)]);
    let first = places.take(client(3)).expect("a place");
    let second = places.take(client(3)).expect("a place");
    assert_eq!(superseded(&all), [7, 8]);
    assert!(!first.superseded.is_cancelled() && !second.superseded.is_cancelled());
    assert_eq!(places.count(), SCRAPES);
    drop(all);
    assert_eq!(places.count(), 2, "a superseded scrape frees no place of another one");
}

#[test]
fn a_client_supersedes_no_client_with_as_few_scrapes() {
    let places = Places::default();
    let half = SCRAPES / 2;
    let mut all = taken(&places, &[(client(1), half), (client(2), half)]);
    assert!(places.take(client(1)).is_none(), "both have the same number");
    let newcomers = taken(&places, &[(client(3), SCRAPES / 3)]);
    assert!(places.take(client(3)).is_none(), "all three have the same number");
    assert!(places.take(client(1)).is_none());
    assert!(superseded(&newcomers).is_empty() && superseded(&all).len() == SCRAPES / 3);
    all.clear();
    assert_eq!(places.count(), SCRAPES / 3);
}

#[test]
fn a_client_with_one_scrape_is_never_superseded() {
    let places = Places::default();
    let hostile: Vec<Place> = (1..=5).flat_map(|last| taken(&places, &[(client(last), 4)])).collect();
    let honest = places.take(client(100)).expect("a place");
    let mut more = Vec::new();
    for last in (1..=5).chain(101..=200) {
        more.extend((0..SCRAPES).map_while(|_| places.take(client(last))));
    }
    assert_eq!(places.count(), SCRAPES);
    assert!(!honest.superseded.is_cancelled());
    drop(hostile);
}
