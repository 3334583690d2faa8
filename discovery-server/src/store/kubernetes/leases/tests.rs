use std::time::Duration;

use super::{Isolation, Lease, Leases};

/// Each row has: the second; the Leases that are read (`name:version` or `name:version:released`);
/// the instances that are alive; and the stale ones.
type Row = (u64, &'static [&'static str], &'static [&'static str], &'static [&'static str]);

fn check(rows: &[Row]) {
    let mut leases = Leases::new("me".to_owned());
    for (second, read, alive, stale) in rows {
        let read = read.iter().map(|text| {
            let mut parts = text.split(':').map(str::to_owned);
            let (instance, version) = (parts.next().expect("a name"), parts.next().expect("a version"));
            Lease { instance, version, released: parts.next().is_some() }
        });
        let replicas = leases.update(Duration::from_secs(*second), read.collect());
        let found: Vec<&str> = replicas.alive.iter().map(String::as_str).collect();
        assert_eq!(found, *alive, "alive at {second}");
        let found: Vec<&str> = replicas.stale.iter().map(|(instance, _)| instance.as_str()).collect();
        assert_eq!(found, *stale, "stale at {second}");
    }
}

#[test]
fn a_lease_is_valid_for_30_seconds_after_its_change() {
    check(&[
        (0, &["a:1", "me:2"], &["a", "me"], &[]),
        (9, &["a:3", "me:2"], &["a", "me"], &[]),
        (19, &["a:3"], &["a", "me"], &[]),
        (29, &["a:3"], &["a", "me"], &[]),
        (38, &["a:3"], &["a", "me"], &[]),
        (39, &["a:3"], &["me"], &[]),
        (40, &["a:4"], &["a", "me"], &[]),
    ]);
}

#[test]
fn an_old_lease_is_valid_from_the_first_read() {
    check(&[(500, &["a:1"], &["a", "me"], &[]), (505, &["a:1"], &["a", "me"], &[])]);
}

#[test]
fn no_replica_expires_after_a_read_gap() {
    check(&[
        (0, &["a:1"], &["a", "me"], &[]),
        (60, &["a:1"], &["a", "me"], &[]),
        (69, &["a:1"], &["a", "me"], &[]),
        (79, &["a:1"], &["a", "me"], &[]),
        (89, &["a:1"], &["a", "me"], &[]),
        (90, &["a:1"], &["me"], &[]),
    ]);
}

#[test]
fn a_released_lease_ends_immediately_and_a_deleted_one_expires() {
    check(&[
        (0, &["a:1", "b:1"], &["a", "b", "me"], &[]),
        (5, &["a:2:released"], &["b", "me"], &[]),
        (14, &["a:2:released"], &["b", "me"], &[]),
        (23, &["a:2:released"], &["b", "me"], &[]),
        (30, &["a:2:released"], &["me"], &[]),
    ]);
}

#[test]
fn stale_leases_are_reported_after_ten_minutes() {
    let mut leases = Leases::new("me".to_owned());
    let lease = || vec![Lease { instance: "a".to_owned(), version: "1".to_owned(), released: false }];
    let mut stale = Vec::new();
    for second in (0..=600).step_by(10) {
        stale.push(!leases.update(Duration::from_secs(second), lease()).stale.is_empty());
    }
    assert_eq!(stale.iter().position(|stale| *stale), Some(60));
}

#[test]
fn released_instances_are_named() {
    let mut leases = Leases::new("me".to_owned());
    let lease =
        |instance: &str, released| Lease { instance: instance.to_owned(), version: "1".to_owned(), released };
    let replicas = leases.update(Duration::ZERO, vec![lease("a", true), lease("b", false)]);
    assert_eq!(replicas.released.into_iter().collect::<Vec<_>>(), ["a"]);
}

/// Its Lease expires 30 s after its last renewal.
#[test]
fn agents_are_sent_away_after_half_of_the_lease() {
    let mut isolation = Isolation::default();
    for (now, renewed, ends, is_isolated) in [
        (10, 0, false, false),
        (20, 10, false, false),
        (24, 10, false, false),
        (25, 10, true, true),
        (28, 10, false, true),
        (84, 10, false, true),
        // An agent may have connected again.
        (85, 10, true, true),
        (88, 87, false, false),
        (102, 87, true, true),
    ] {
        let seconds = Duration::from_secs;
        assert_eq!(isolation.update(seconds(now), seconds(renewed)), ends, "at {now}");
        assert_eq!(isolation.is_isolated(), is_isolated, "at {now}");
    }
}
