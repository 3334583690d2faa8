//! Random observations in random order.

use proptest::prelude::*;

use super::*;

fn observation() -> impl Strategy<Value = Observation> {
    let state = prop_oneof![
        Just(ServerState::Live),
        Just(ServerState::Draining),
        Just(ServerState::Initializing),
        Just(ServerState::PreInitializing)
    ];
    let updates = || proptest::option::of((0..2u64, 0..2u64));
    prop_oneof![
        prop_oneof![Just(Channel::Admin), Just(Channel::DataPath)].prop_map(Observation::Accepted),
        state.clone().prop_map(ready),
        (updates(), updates(), proptest::option::of(0..2u64)).prop_map(|(c, l, w)| stats(c, l, w)),
        (state, 0..100i64).prop_map(|(state, uptime)| server_info(state, uptime)),
        (prop_oneof![Just(404), Just(429), Just(503)], any::<bool>())
            .prop_map(|(status, word)| data_path(status, word)),
        prop_oneof![Just(RequestFailure::Refused), Just(RequestFailure::Timeout)]
            .prop_map(|failure| Observation::DataPath(Err(failure))),
        Just(Observation::Admin(Err(RequestFailure::Refused))),
    ]
}

proptest! {
    #[test]
    fn random_observations_keep_the_snapshot_consistent(observations in proptest::collection::vec(observation(), 0..40)) {
        let mut model = Readiness::new(POLICY, Duration::ZERO);
        for (second, observation) in (1..).zip(observations) {
            let before = model.snapshot().clone();
            model.observe(model.generation(), observation, Duration::from_secs(second));
            let snapshot = model.snapshot();
            let pending: Vec<_> = snapshot.pending.iter().map(|pending| pending.condition).collect();
            let met: Vec<_> = snapshot.met.iter().map(|(condition, _)| *condition).collect();
            prop_assert!(snapshot.pending.is_sorted_by_key(|pending| pending.reason.clone()));
            prop_assert!(met.is_sorted());
            prop_assert!(pending.iter().all(|condition| !met.contains(condition)));
            prop_assert_eq!(snapshot.is_ready(), met.len() == 9);
            prop_assert_eq!(snapshot.is_ready(), snapshot.phase == Phase::Ready);
            let needs = |condition, need| !pending.contains(&condition) || met.contains(&need);
            prop_assert!(!pending.contains(&Condition::Process) || pending.len() == 1);
            prop_assert!(needs(Condition::Live, Condition::Admin) && needs(Condition::Clusters, Condition::Live));
            prop_assert!(needs(Condition::Listeners, Condition::Live) && needs(Condition::Workers, Condition::Live));
            prop_assert!(snapshot.epoch >= before.epoch && snapshot.epoch <= before.epoch + 1);
        }
    }
}
