use super::*;
use crate::Dynamic;
use crate::{Observation, Policy, Readiness};

fn readiness(child: bool) -> Readiness {
    let policy = Policy { dynamic: Dynamic::Off, data_path: false, child, drain_keeps_ready: false };
    Readiness::new(policy, Duration::ZERO)
}

/// Applies observations at successive seconds, and returns what the history recorded.
fn history(observations: Vec<Observation>) -> ProcessHistory {
    let mut ready = readiness(true);
    let mut history = ProcessHistory::default();
    for (second, observation) in (1..).zip(observations) {
        let (before, now) = (ready.snapshot().clone(), Duration::from_secs(second));
        ready.observe(ready.generation(), observation, now);
        history.observe(&before, ready.snapshot(), now);
    }
    history
}

#[test]
fn starts_and_exits() {
    let observations = vec![
        Observation::Started,
        Observation::Draining,
        Observation::Exited,
        Observation::Restarting,
        Observation::Started,
    ];
    let events = history(observations).events();
    let shown: Vec<_> = events.iter().map(|event| (event.at.as_secs(), event.epoch, event.kind)).collect();
    assert_eq!(
        shown,
        [
            (1, 1, ProcessEventKind::Started),
            (3, 1, ProcessEventKind::Exited),
            (5, 2, ProcessEventKind::Started),
        ]
    );
}

#[test]
fn only_an_exit_has_a_reason() {
    let mut running = history(vec![Observation::Started]);
    running.explain_exit("with code 1".to_owned());
    assert_eq!(running.events()[0].reason, "");
    let mut exited = history(vec![Observation::Started, Observation::Exited]);
    exited.explain_exit("with code 1".to_owned());
    assert_eq!(exited.events()[1].reason, "with code 1");
}

#[test]
fn the_number_of_events_is_limited() {
    let cycle = || [Observation::Started, Observation::Exited];
    let events = history((0..50).flat_map(|_| cycle()).collect()).events();
    assert_eq!(events.len(), CAPACITY);
    assert_eq!(events[CAPACITY - 1].epoch, 50);
}

#[test]
fn a_fast_restart_of_an_external_envoy() {
    let (before, mut after) = {
        let mut ready = readiness(false);
        ready.observe(ready.generation(), Observation::Accepted(crate::Channel::Admin), Duration::ZERO);
        (ready.snapshot().clone(), ready.snapshot().clone())
    };
    after.epoch = 2;
    let mut history = ProcessHistory::default();
    history.observe(&before, &after, Duration::from_secs(1));
    assert_eq!(history.events()[0].kind, ProcessEventKind::Restarted);
}
