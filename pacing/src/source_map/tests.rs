use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

/// When the state expires; `None` while it is in use.
type State = Option<Duration>;

fn insert(map: &mut SourceMap<u32, State>, source: u32, now: u64, expires: Option<u64>) {
    let expires = expires.map(Duration::from_millis);
    *map.get_or_insert(source, Duration::from_millis(now), |state| *state, expires) = expires;
}

fn sources(map: &SourceMap<u32, State>) -> Vec<u32> {
    map.states.keys().copied().collect()
}

#[test]
fn a_state_is_kept_until_there_are_many() {
    let mut map = SourceMap::default();
    for source in 0..1024 {
        insert(&mut map, source, 5000, Some(0));
    }
    insert(&mut map, 7, 5000, Some(6000));
    assert_eq!(map.states.len(), 1024);
    assert_eq!(map.get_mut(&7), Some(&mut Some(Duration::from_secs(6))));
    assert_eq!(map.get_mut(&1024), None);
    insert(&mut map, 1024, 5000, Some(0));
    assert_eq!(sources(&map), [7, 1024], "all others had expired");
}

#[test]
fn states_that_expire_first_are_removed() {
    let mut map = SourceMap::default();
    for source in 0..2050 {
        insert(&mut map, source, 0, Some(u64::from(source) + 1));
    }
    assert_eq!(sources(&map), (1024..2050).collect::<Vec<u32>>());
}

#[test]
fn states_in_use_are_kept() {
    let mut map = SourceMap::default();
    for source in 0..5000 {
        insert(&mut map, source, u64::from(source), None);
    }
    assert_eq!(map.states.len(), 5000);
    assert!(map.prune_at > 5000, "the next source costs no pass over all");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn the_size_is_bounded(steps in vec((0_u32..20_000, 0_u64..3, 0_u64..5000, any::<bool>()), 1..8000)) {
        let (mut map, mut now, mut used) = (SourceMap::default(), 0, std::collections::BTreeSet::new());
        for (source, passes, expires, is_used) in steps {
            now += passes;
            let is_used = is_used && used.len() < 50 || used.contains(&source);
            insert(&mut map, source, now, (!is_used).then_some(now + expires));
            if is_used {
                used.insert(source);
            }
            prop_assert!(map.states.len() <= 50 + 2 * MAX_SOURCES, "{}", map.states.len());
        }
        prop_assert!(used.iter().all(|source| map.get_mut(source) == Some(&mut None)));
    }
}
