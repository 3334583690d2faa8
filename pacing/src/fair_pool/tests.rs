use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const NOW: Duration = Duration::ZERO;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Returns a pool with one member for each source, numbered from 0.
fn pool(total: usize, share: usize, sources: &[char]) -> FairPool<char, ()> {
    let mut pool = FairPool::new(total, share);
    for source in sources {
        pool.admit(*source, NOW, ()).expect("a place");
    }
    pool
}

fn members(pool: &FairPool<char, ()>) -> Vec<u64> {
    pool.members.keys().copied().collect()
}

#[test]
fn the_source_with_the_most_loses_the_member_that_has_been_idle_longest() {
    let mut pool = pool(5, 5, &['a', 'b', 'b', 'b', 'c']);
    assert!(pool.set_idle(1, Some(seconds(2))) && pool.set_idle(2, Some(seconds(1))));
    assert!(pool.set_idle(3, None));
    assert_eq!(pool.admit('c', seconds(2), ()), Ok(5));
    assert_eq!(members(&pool), [0, 1, 3, 4, 5]);
    // All have at most two; of those, the oldest with the longest idle time.
    assert_eq!(pool.admit('d', seconds(2), ()), Ok(6));
    assert_eq!(members(&pool), [0, 1, 3, 5, 6]);
    assert!(!pool.set_idle(4, None), "it has been evicted");
}

#[test]
fn a_busy_member_is_evicted_last_and_only_for_fairness() {
    let mut pool = pool(4, 4, &['a', 'a', 'a', 'b']);
    for number in 0..4 {
        assert!(pool.set_idle(number, None));
    }
    assert!(pool.set_idle(2, Some(seconds(9))));
    assert_eq!(pool.admit('c', NOW, ()), Ok(4));
    assert_eq!(members(&pool), [0, 1, 3, 4], "the one that becomes idle first");
    assert_eq!(pool.admit('d', NOW, ()), Ok(5));
    assert_eq!(members(&pool), [1, 3, 4, 5], "the oldest busy one");
    assert!(pool.set_idle(4, None) && pool.set_idle(5, Some(seconds(1))));
    assert_eq!(pool.admit('e', NOW, ()), Err(Full), "each has one, and none is idle");
    assert_eq!(pool.admit('e', seconds(1), ()), Ok(6));
    assert_eq!(members(&pool), [1, 3, 4, 6], "the idle one");
    assert_eq!(pool.admit('c', seconds(1), ()), Err(Full), "the idle one is of another source that has one");
    assert!(pool.set_idle(4, Some(NOW)));
    assert_eq!(pool.admit('c', seconds(1), ()), Ok(7));
    assert_eq!(members(&pool), [1, 3, 6, 7], "its own idle one");
}

/// Two sources with 600 connections each that are used all the time kept every other one out.
#[test]
fn active_flooders_keep_no_other_source_out() {
    let mut pool = FairPool::new(1024, 640);
    let soon = NOW + seconds(1);
    for connection in 0..1200 {
        if let Ok(number) = pool.admit(['a', 'b'][connection % 2], NOW, ()) {
            let idle = [None, Some(soon)][connection / 2 % 2];
            assert!(pool.set_idle(number, idle));
        }
    }
    assert_eq!((pool.amount(&'a'), pool.amount(&'b')), (512, 512));
    for served in 1..=341 {
        let number = pool.admit('c', NOW, ()).expect("a place");
        assert!(pool.set_idle(number, Some(soon)));
        let _ = (pool.admit('a', NOW, ()), pool.admit('b', NOW, ()));
        assert_eq!(pool.amount(&'c'), served, "flooders do not get it back");
    }
    assert!(pool.amount(&'a').abs_diff(pool.amount(&'b')) <= 1 && pool.used() == 1024);
    assert_eq!(pool.amounts.len(), 3);
}

#[test]
fn a_source_at_its_share_evicts_its_own_members_only() {
    let mut pool = pool(10, 2, &['b', 'a', 'a']);
    assert_eq!(pool.admit('a', NOW, ()), Ok(3));
    assert_eq!(members(&pool), [0, 2, 3]);
    assert!(pool.set_idle(2, None) && pool.set_idle(3, None));
    assert_eq!(pool.admit('a', seconds(9), ()), Err(Full));
    assert_eq!(pool.admit('c', NOW, ()), Ok(4));
    assert_eq!((members(&pool).len(), pool.used()), (4, 4));
}

#[test]
fn without_a_total_nothing_is_admitted() {
    assert_eq!(pool(0, 9, &[]).admit('a', NOW, ()), Err(Full));
    assert_eq!(pool(0, 9, &[]).admit_fairly('a', NOW, ()), Err(Full));
    assert_eq!(pool(9, 0, &[]).admit('a', NOW, ()), Err(Full));
}

#[test]
fn a_fair_newcomer_evicts_only_of_a_source_that_still_has_as_many() {
    let mut full = pool(6, 6, &['a'; 6]);
    assert_eq!(full.admit_fairly('a', NOW, ()), Err(Full), "one source may have all, but no more");
    for _ in 0..3 {
        assert!(full.admit_fairly('b', NOW, ()).is_ok());
    }
    assert_eq!(full.admit_fairly('b', NOW, ()), Err(Full));
    assert_eq!(members(&full), [3, 4, 5, 6, 7, 8], "the oldest were evicted");
    assert!(full.admit_fairly('c', NOW, ()).is_ok() && full.admit_fairly('c', NOW, ()).is_ok());
    assert_eq!(members(&full), [4, 5, 7, 8, 9, 10]);
    for source in ['a', 'b', 'c'] {
        assert_eq!(full.admit_fairly(source, NOW, ()), Err(Full));
    }
    let mut other = pool(3, 3, &['a', 'b', 'c']);
    assert_eq!(other.admit_fairly('d', NOW, ()), Err(Full), "each has one");
    assert_eq!(other.remove(0), Some(()));
    assert!(other.admit_fairly('b', NOW, ()).is_ok(), "one is free");
}

#[test]
fn a_source_with_one_member_keeps_it_when_others_are_admitted_fairly() {
    let mut pool = pool(24, 24, &['a'; 24]);
    for source in ['b', 'c', 'd', 'e'] {
        while pool.admit_fairly(source, NOW, ()).is_ok() {}
    }
    let honest = pool.admit_fairly('z', NOW, ()).expect("a place");
    for source in ('a'..='e').chain('A'..='Z') {
        while pool.admit_fairly(source, NOW, ()).is_ok() {}
    }
    assert!(members(&pool).contains(&honest) && pool.used() == 24);
}

#[test]
fn the_source_that_has_grown_most_loses_its_oldest_member() {
    let mut pool = FairPool::new(100, 0);
    let [first, second, third, empty] = ['a', 'a', 'b', 'a'].map(|source| pool.open(source, ()));
    assert_eq!((pool.grow(first, 40, NOW), pool.grow(second, 30, NOW)), (Ok(()), Ok(())));
    assert_eq!((pool.grow(third, 30, NOW), pool.used()), (Ok(()), 100));
    assert_eq!((pool.grow(third, 10, NOW), pool.used()), (Ok(()), 70));
    assert_eq!(members(&pool), [second, third, empty]);
    assert_eq!((pool.grow(first, 1, NOW), pool.remove(first)), (Err(Full), None));
    assert_eq!(pool.grow(third, 31, NOW), Err(Full), "its own source has the most");
    assert_eq!((members(&pool), pool.used()), (vec![second, empty], 30));
}

#[test]
fn growing_evicts_as_many_as_needed_and_none_that_is_busy() {
    let mut pool = FairPool::new(100, 0);
    let [busy, first, second, large] = ['a', 'b', 'b', 'c'].map(|source| pool.open(source, ()));
    assert_eq!((pool.grow(busy, 50, NOW), pool.set_idle(busy, None)), (Ok(()), true));
    assert_eq!((pool.grow(first, 20, NOW), pool.grow(second, 20, NOW)), (Ok(()), Ok(())));
    assert_eq!(pool.grow(large, 30, NOW), Ok(()));
    assert_eq!((members(&pool), pool.used()), (vec![busy, second, large], 100));
    assert_eq!(pool.grow(second, 60, NOW), Err(Full));
    assert_eq!((members(&pool), pool.used()), (vec![busy, large], 80));
    assert!(pool.set_idle(large, None));
    assert_eq!(pool.grow(large, 21, NOW), Err(Full), "no other can be evicted");
    assert_eq!((members(&pool), pool.used()), (vec![busy], 50));
}

#[derive(Clone, Debug)]
enum Action {
    Admit(char),
    AdmitFairly(char),
    Open(char),
    Grow(usize, usize),
    SetIdle(usize, Option<u64>),
    Remove(usize),
}

fn action() -> impl Strategy<Value = Action> {
    let source = || (0_u8..4).prop_map(|source| char::from(b'a' + source));
    prop_oneof![
        source().prop_map(Action::Admit),
        source().prop_map(Action::AdmitFairly),
        source().prop_map(Action::Open),
        (any::<usize>(), 1_usize..8).prop_map(|(member, amount)| Action::Grow(member, amount)),
        (any::<usize>(), proptest::option::of(0_u64..100))
            .prop_map(|(member, idle)| Action::SetIdle(member, idle)),
        any::<usize>().prop_map(Action::Remove),
    ]
}

/// The source of a member, its amount, and since when it is idle.
type Known = (char, usize, Option<Duration>);

fn known(pool: &FairPool<char, ()>) -> BTreeMap<u64, Known> {
    let known = |member: &Member<char, ()>| (member.source, member.amount, member.idle);
    pool.members.iter().map(|(number, member)| (*number, known(member))).collect()
}

fn amount(members: &BTreeMap<u64, Known>, source: char) -> usize {
    members.values().filter(|member| member.0 == source).map(|member| member.1).sum()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_total_is_kept_and_no_source_loses_to_one_that_has_more(
        total in 0_usize..12,
        share in 0_usize..8,
        actions in vec(action(), 1..120),
    ) {
        let mut pool = FairPool::new(total, share);
        for (second, action) in actions.into_iter().enumerate() {
            let (now, before) = (seconds(second as u64), known(&pool));
            let nth = |member: usize| {
                before.keys().nth(member % before.len().max(1)).copied().unwrap_or(u64::MAX)
            };
            let is_idle = |member: &Known| member.1 > 0 && member.2.is_some_and(|idle| idle <= now);
            let mut is_refused = false;
            match action {
                Action::Admit(source) => is_refused = pool.admit(source, now, ()).is_err(),
                Action::AdmitFairly(source) => is_refused = pool.admit_fairly(source, now, ()).is_err(),
                Action::Open(source) => { pool.open(source, ()); }
                Action::Grow(member, by) => { let _ = pool.grow(nth(member), by, now); }
                Action::SetIdle(member, idle) => { pool.set_idle(nth(member), idle.map(seconds)); }
                Action::Remove(member) => { pool.remove(nth(member)); }
            }
            let after = known(&pool);
            prop_assert_eq!(pool.used(), after.values().map(|member| member.1).sum::<usize>());
            prop_assert!(pool.used() <= total);
            prop_assert_eq!(pool.amounts.values().sum::<usize>(), pool.used());
            prop_assert!(pool.amounts.keys().all(|source| after.values().any(|member| member.0 == *source)));
            prop_assert!(!is_refused || before == after);
            let most = before.values().map(|member| amount(&before, member.0)).max().unwrap_or_default();
            if let Action::Admit(source) | Action::AdmitFairly(source) = action {
                let own = amount(&before, source);
                let is_within_share = own < share || matches!(action, Action::AdmitFairly(_));
                prop_assert!(!is_refused || !is_within_share || most < own + 2);
            }
            let evicted = before.iter().filter(|(number, _)| !after.contains_key(number));
            for (number, member) in evicted {
                match action {
                    Action::Admit(source) if amount(&before, source) >= share => {
                        prop_assert!(is_idle(member) && member.0 == source);
                    }
                    Action::Admit(source) | Action::AdmitFairly(source) => {
                        let (own, theirs) = (amount(&before, source), amount(&before, member.0));
                        let is_fair = theirs >= own + 2 && theirs == most;
                        let is_admit = matches!(action, Action::Admit(_));
                        let may_swap = is_admit && (theirs > own || member.0 == source);
                        prop_assert!(is_fair || (may_swap && most < own + 2 && is_idle(member)));
                    }
                    Action::Grow(grown, _) if nth(grown) != *number => {
                        prop_assert!(is_idle(member));
                        let (source, _, idle) = before[&nth(grown)];
                        // The source of a busy member may have none to lose.
                        let is_exempt = member.0 == source || idle.is_none_or(|idle| idle > now);
                        prop_assert!(is_exempt || amount(&before, member.0) >= amount(&after, source));
                    }
                    Action::Grow(..) => {}
                    Action::Remove(removed) => prop_assert_eq!(nth(removed), *number),
                    Action::Open(_) | Action::SetIdle(..) => prop_assert!(false),
                }
            }
            if let Action::Admit(source) = action {
                prop_assert!(amount(&after, source) <= share.max(amount(&before, source)));
            }
        }
    }
}
