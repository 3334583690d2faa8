use std::num::NonZeroU32;

use proptest::prelude::*;

use super::{HealthReason, HealthState, Outcome, Shutdown, State, Transition, Unhealthy, Verdict};
use crate::workload_probe::Thresholds;

fn thresholds(success: u32, failure: u32) -> Thresholds {
    let count = |count| NonZeroU32::new(count).expect("1 or more");
    Thresholds { success: count(success), failure: count(failure) }
}

fn failure(text: &str) -> Outcome {
    Outcome::unhealthy(HealthReason::HttpStatus, text)
}

/// Records `+` as a success and `-` as a failure. Returns the state after each outcome: `u`, `h` or
/// `b` (unhealthy), in upper case if the state has changed.
fn run(state: &mut HealthState, outcomes: &str) -> String {
    let outcome = |char| if char == '+' { Outcome::Healthy } else { failure("bad") };
    let letter = |state: &HealthState| match state.verdict().state {
        State::Unknown => 'u',
        State::Healthy => 'h',
        State::Unhealthy => 'b',
    };
    let step = |char| {
        let flipped = state.observe(outcome(char)).is_some();
        if flipped { letter(state).to_ascii_uppercase() } else { letter(state) }
    };
    outcomes.chars().map(step).collect()
}

#[test]
fn thresholds_determine_the_state() {
    for (success, failure, outcomes, expected) in [
        (1, 1, "+-+-", "HBHB"),
        (1, 3, "+--+---+", "HhhhhhBH"),
        (2, 2, "+-+-+-+-", "uuuuuuuu"),
        (2, 2, "++--+-++", "uHhBbbbH"),
        (3, 1, "++-+++", "uuBbbH"),
        (1, 3, "---", "uuB"),
        (u32::MAX, u32::MAX, "+++---", "uuuuuu"),
    ] {
        let mut state = HealthState::new(Some(thresholds(success, failure)));
        assert_eq!(run(&mut state, outcomes), expected, "{success}/{failure} {outcomes}");
    }
}

#[test]
fn reasons_and_messages_of_each_state() {
    let told = |state: &HealthState| {
        let Verdict { state, reason, message, generation } = state.verdict().clone();
        (state, reason, message, generation)
    };
    let mut state = HealthState::new(Some(thresholds(1, 2)));
    assert_eq!(told(&state), (State::Unknown, HealthReason::AwaitingVerdict, "no verdict yet".into(), 0));
    state.observe(failure("first"));
    assert_eq!(told(&state), (State::Unknown, HealthReason::AwaitingVerdict, "no verdict yet".into(), 0));
    let flip = state.observe(failure("second"));
    assert_eq!(flip, Some(Transition { from: State::Unknown, to: State::Unhealthy, generation: 1 }));
    assert_eq!(told(&state), (State::Unhealthy, HealthReason::HttpStatus, "second".into(), 1));
    assert_eq!(state.observe(Outcome::unhealthy(HealthReason::Timeout, "third")), None);
    assert_eq!(told(&state), (State::Unhealthy, HealthReason::Timeout, "third".into(), 1));
    state.observe(Outcome::Healthy);
    assert_eq!(told(&state), (State::Healthy, HealthReason::ProbeSucceeded, "the probe succeeded".into(), 2));
    state.observe(failure("once"));
    assert_eq!(told(&state), (State::Healthy, HealthReason::ProbeSucceeded, "the probe succeeded".into(), 2));
}

#[test]
fn a_changed_probe_keeps_the_state_and_resets_the_counters() {
    let mut state = HealthState::new(Some(thresholds(1, 2)));
    assert_eq!(run(&mut state, "+-"), "Hh");
    assert_eq!(state.set_probe(Some(thresholds(2, 2))), None);
    assert_eq!(run(&mut state, "-"), "h");
    assert_eq!(run(&mut state, "-+"), "Bb");
    assert_eq!(state.set_probe(Some(thresholds(2, 2))), None);
    assert_eq!(run(&mut state, "++"), "bH");
}

#[test]
fn without_a_probe_the_state_is_unknown() {
    let mut state = HealthState::new(None);
    assert_eq!(
        (state.verdict().state, state.verdict().reason, state.verdict().generation),
        (State::Unknown, HealthReason::NoProbe, 0)
    );
    assert_eq!(run(&mut state, "+-"), "uu");
    assert_eq!(state.set_probe(None), None);
    assert_eq!(state.set_probe(Some(thresholds(1, 1))), None);
    assert_eq!(state.verdict().reason, HealthReason::AwaitingVerdict);
    assert_eq!(run(&mut state, "+"), "H");
    let removed = Transition { from: State::Healthy, to: State::Unknown, generation: 2 };
    assert_eq!(state.set_probe(None), Some(removed));
    assert_eq!(
        (state.verdict().reason, &*state.verdict().message),
        (HealthReason::NoProbe, "no probe is configured")
    );
    assert_eq!(run(&mut state, "-"), "u");
}

#[test]
fn shutdown_is_final() {
    for before in ["", "+", "-"] {
        let mut state = HealthState::new(Some(thresholds(1, 1)));
        run(&mut state, before);
        let from = state.verdict().state;
        let generation = state.verdict().generation;
        let flip =
            |from, more| Some(Transition { from, to: State::Unhealthy, generation: generation + more });
        assert_eq!(state.shut_down(Shutdown::Draining), flip(from, 1));
        assert_eq!(state.shut_down(Shutdown::Draining), None);
        assert_eq!(run(&mut state, "++--"), "bbbb");
        assert_eq!(state.set_probe(None), None);
        assert_eq!(state.verdict().reason, HealthReason::Draining);
        assert_eq!(state.shut_down(Shutdown::Terminating), flip(State::Unhealthy, 2));
        assert_eq!(state.shut_down(Shutdown::Terminating), None);
        assert_eq!(state.shut_down(Shutdown::Draining), None);
        assert_eq!((state.verdict().reason, state.is_final()), (HealthReason::Terminating, true));
    }
}

#[test]
fn a_failure_always_has_a_text() {
    for reason in HealthReason::ALL {
        let unhealthy = Unhealthy::new(reason, "");
        assert!(!unhealthy.text().is_empty(), "{reason}");
        assert_eq!(reason.word().parse(), Ok(reason));
    }
    let long = Unhealthy::new(HealthReason::ExecExit, &"\n".repeat(100));
    assert_eq!(long.text(), "\\x0a".repeat(64));
    assert!("Sick".parse::<HealthReason>().is_err() && "healthy".parse::<State>().is_err());
}

/// An input of the state machine.
#[derive(Clone, Debug)]
enum Input {
    Success,
    Failure,
    Probe(u32, u32),
}

/// A reference implementation: the state changes after a run of equal outcomes since the last
/// change of the probe that is as long as the threshold.
fn model(history: &[Input]) -> State {
    let mut state = State::Unknown;
    for end in 1..=history.len() {
        let seen = &history[..end];
        let edit = seen.iter().rposition(|input| matches!(input, Input::Probe(..))).expect("the first input");
        let Input::Probe(success, failure) = seen[edit] else { unreachable!("found as one") };
        let since = &seen[edit + 1..];
        let good = since.iter().rev().take_while(|input| matches!(input, Input::Success)).count();
        let bad = since.iter().rev().take_while(|input| matches!(input, Input::Failure)).count();
        if good >= success as usize {
            state = State::Healthy;
        } else if bad >= failure as usize {
            state = State::Unhealthy;
        }
    }
    state
}

fn input() -> impl Strategy<Value = Input> {
    prop_oneof![
        10 => Just(Input::Success),
        10 => Just(Input::Failure),
        1 => (1..5u32, 1..5u32).prop_map(|(success, failure)| Input::Probe(success, failure)),
    ]
}

proptest! {
    #[test]
    fn transitions_equal_the_model(first in (1..5u32, 1..5u32), inputs in prop::collection::vec(input(), 0..60)) {
        let mut state = HealthState::new(Some(thresholds(first.0, first.1)));
        let mut history = vec![Input::Probe(first.0, first.1)];
        for input in inputs {
            let (before, generation) = (state.verdict().state, state.verdict().generation);
            let flip = match &input {
                Input::Success => state.observe(Outcome::Healthy),
                Input::Failure => state.observe(failure("bad")),
                Input::Probe(success, failure) => state.set_probe(Some(thresholds(*success, *failure))),
            };
            history.push(input);
            let after = model(&history);
            prop_assert_eq!(state.verdict().state, after, "{:?}", history);
            let expected = (before != after).then_some(Transition { from: before, to: after, generation: generation + 1 });
            prop_assert_eq!(flip, expected);
            prop_assert!(!state.verdict().message.is_empty());
        }
    }

    #[test]
    fn alternation_never_leaves_unknown(success in 2..9u32, failure in 2..9u32, steps in 0..200usize) {
        let mut state = HealthState::new(Some(thresholds(success, failure)));
        prop_assert_eq!(run(&mut state, &"+-".repeat(steps)), "uu".repeat(steps));
        prop_assert_eq!(state.verdict().generation, 0);
    }
}

#[test]
fn a_drain_can_be_reversed_and_a_termination_cannot() {
    let mut state = HealthState::new(Some(thresholds(1, 2)));
    assert_eq!((run(&mut state, "+-"), state.counters(), state.resume()), ("Hh".into(), (0, 1), None));
    assert!(!state.is_final());
    state.shut_down(Shutdown::Draining).expect("a transition");
    assert!(state.is_final());
    let resumed = state.resume().expect("a transition");
    assert_eq!((resumed.from, resumed.to), (State::Unhealthy, State::Unknown));
    assert_eq!(state.verdict().reason, HealthReason::AwaitingVerdict);
    assert_eq!((state.is_final(), run(&mut state, "--"), state.resume()), (false, "uB".into(), None));
    state.shut_down(Shutdown::Terminating).expect("a transition");
    assert_eq!((state.resume(), state.is_final()), (None, true));
}

#[test]
fn a_partial_series_counts_towards_its_threshold() {
    let mut state = HealthState::new(Some(thresholds(3, 3)));
    for (outcomes, counters) in [("++", (2, 0)), ("-", (0, 1)), ("-", (0, 2)), ("-", (0, 0)), ("+", (1, 0))] {
        run(&mut state, outcomes);
        assert_eq!(state.counters(), counters, "after {outcomes}");
    }
}

#[test]
fn states_are_shown_as_words() {
    assert_eq!(State::ALL.map(|state| state.to_string()), ["Unknown", "Healthy", "Unhealthy"]);
}
