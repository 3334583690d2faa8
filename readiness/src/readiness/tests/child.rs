//! An Envoy that runs as a child process of the agent.

use super::*;

fn child_to_ready() -> Vec<Observation> {
    [vec![Observation::Started], to_ready()].concat()
}

#[test]
fn only_the_supervisor_reports_start_and_exit_of_a_child() {
    let refused = vec![Observation::DataPath(Err(RequestFailure::Refused)); 2];
    let restarting = vec![Observation::Exited, Observation::Restarting];
    for (what, observations, body, epoch) in [
        ("not started", vec![], "envoy not started\n", 1),
        ("another process answers", to_ready(), "envoy not started\n", 1),
        (
            "started",
            vec![Observation::Started],
            "envoy admin not answering\nprobe listener not answering\n",
            1,
        ),
        ("ready", child_to_ready(), "ready\n", 1),
        ("refused connections are not an exit", [child_to_ready(), refused].concat(), "ready\n", 1),
        ("exited", [child_to_ready(), vec![Observation::Exited]].concat(), "envoy exited\n", 1),
        ("restarting", [child_to_ready(), restarting.clone()].concat(), "envoy restarting\n", 1),
        (
            "started again without state of the previous process",
            [child_to_ready(), restarting.clone(), vec![Observation::Started]].concat(),
            "envoy admin not answering\nprobe listener not answering\n",
            2,
        ),
        ("ready again", [child_to_ready(), restarting, child_to_ready()].concat(), "ready\n", 2),
    ] {
        check(what, CHILD, &observations, body);
        assert_eq!(after(CHILD, &observations).snapshot().epoch, epoch, "{what}");
    }
}

#[test]
fn ten_restarts_in_a_row_are_eleven_epochs() {
    let life = [child_to_ready(), vec![Observation::Exited, Observation::Restarting]].concat();
    let lives = vec![life; 10].concat();
    let model = after(CHILD, &[lives, child_to_ready()].concat());
    assert_eq!((model.snapshot().epoch, model.snapshot().phase), (11, Phase::Ready));
}

#[test]
fn results_of_the_previous_epoch_are_ignored() {
    let mut model = after(CHILD, &[child_to_ready(), vec![Observation::Exited]].concat());
    let old = model.generation();
    model.observe(old, Observation::Started, Duration::from_secs(60));
    for observation in to_ready() {
        model.observe(old, observation, Duration::from_secs(61));
    }
    assert!(!model.snapshot().is_ready());
}

#[test]
fn a_drain_can_keep_readiness() {
    let keeps = Policy { drain_keeps_ready: true, ..CHILD };
    let draining = [child_to_ready(), vec![Observation::Draining]].concat();
    check("keeps", keeps, &draining, "ready\n");
    assert_eq!(after(keeps, &draining).snapshot().phase, Phase::Draining);
    check("does not", CHILD, &draining, "draining\n");
}

#[test]
fn was_ready_and_was_live() {
    let exited = [child_to_ready(), vec![Observation::Exited]].concat();
    for (observations, live, ready, ever_ready) in [
        (vec![], false, false, false),
        (vec![Observation::Started, ready(ServerState::Initializing)], false, false, false),
        (vec![Observation::Started, ready(ServerState::Live)], true, false, false),
        (child_to_ready(), true, true, true),
        (exited.clone(), true, false, true),
        ([exited, vec![Observation::Restarting, Observation::Started]].concat(), true, false, true),
    ] {
        let model = after(CHILD, &observations);
        let found = (model.was_live(), model.was_ready(), model.was_ever_ready());
        assert_eq!(found, (live, ready, ever_ready), "{observations:?}");
    }
}

#[test]
fn liveness() {
    let silent = vec![Observation::Admin(Err(RequestFailure::Timeout))];
    let gone = vec![Observation::DataPath(Err(RequestFailure::Timeout)); 3];
    let nine = Some(Duration::from_secs(9));
    for (what, observations, admin, seconds, alive) in [
        ("nothing yet", vec![], nine, 1000, Ok(())),
        ("ready", child_to_ready(), nine, 1000, Ok(())),
        ("exited", vec![Observation::Started, Observation::Exited], None, 3, Err("envoy exited")),
        (
            "restarting",
            vec![Observation::Started, Observation::Exited, Observation::Restarting],
            None,
            3,
            Ok(()),
        ),
        ("silent, which does not count", [child_to_ready(), silent.clone()].concat(), None, 1000, Ok(())),
        ("silent for a while", [child_to_ready(), silent.clone()].concat(), nine, 15, Ok(())),
        ("silent for long", [child_to_ready(), silent.clone()].concat(), nine, 16, Err("envoy admin stuck")),
        ("and back", [child_to_ready(), silent, child_to_ready()].concat(), nine, 1000, Ok(())),
        ("listener gone", [child_to_ready(), gone.clone()].concat(), None, 66, Ok(())),
        (
            "for long",
            [child_to_ready(), gone.clone()].concat(),
            None,
            67,
            Err("probe listener not answering"),
        ),
        ("never there", [vec![Observation::Started], gone].concat(), None, 1000, Ok(())),
    ] {
        assert_eq!(after(CHILD, &observations).alive(admin, Duration::from_secs(seconds)), alive, "{what}");
    }
}
