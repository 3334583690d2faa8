//! The state after readiness: what unsets it, what counts as another Envoy, and what is ignored.

use super::*;

#[test]
fn observations_that_unset_readiness() {
    let timeout = Observation::DataPath(Err(RequestFailure::Timeout));
    let again = Observation::DataPath(Ok(PROBED));
    let refused = Observation::DataPath(Err(RequestFailure::Refused));
    let cases: Vec<(&str, Vec<Observation>, &str)> = vec![
        ("nothing", vec![], "ready\n"),
        ("hung admin", vec![Observation::Admin(Err(RequestFailure::Timeout)); 9], "ready\n"),
        ("refusing admin", vec![Observation::Admin(Err(RequestFailure::Refused)); 9], "ready\n"),
        ("rejected later", vec![stats(Some((0, 1)), Some((0, 1)), Some(0))], "ready\n"),
        ("initializing later", vec![server_info(ServerState::Initializing, 9)], "ready\n"),
        ("draining", vec![server_info(ServerState::Draining, 9)], "envoy draining\n"),
        ("live again", vec![server_info(ServerState::Draining, 9), ready(ServerState::Live)], "ready\n"),
        ("two failures", vec![timeout.clone(); 2], "ready\n"),
        ("three", vec![timeout.clone(); 3], "probe listener not answering\n"),
        (
            "with one success between",
            vec![timeout.clone(), timeout.clone(), again.clone(), timeout.clone()],
            "ready\n",
        ),
        ("and back", vec![timeout.clone(), timeout.clone(), timeout.clone(), again.clone()], "ready\n"),
        ("a trapped filter", vec![data_path(503, false); 3], "probe listener answers 503\n"),
        ("a flood", vec![data_path(429, false); 9], "ready\n"),
        ("refused once", vec![refused.clone()], "ready\n"),
        ("refused twice", vec![refused.clone(); 2], "envoy exited\n"),
        (
            "accepted in between",
            vec![refused.clone(), Observation::Accepted(Channel::DataPath), refused.clone()],
            "ready\n",
        ),
        ("drain", vec![Observation::Draining], "draining\n"),
        ("a reversed drain", vec![Observation::Draining, Observation::Undrained], "ready\n"),
        (
            "the end of a drain",
            vec![Observation::Draining, Observation::Terminating],
            "draining\nterminating\n",
        ),
    ];
    for (what, later, body) in cases {
        check(what, POLICY, &[to_ready(), later].concat(), body);
    }
}

#[test]
fn phases() {
    let refused = vec![Observation::DataPath(Err(RequestFailure::Refused)); 2];
    let cases = [
        (vec![], Phase::Starting, 1),
        (to_ready(), Phase::Ready, 1),
        ([to_ready(), vec![data_path(500, false); 3]].concat(), Phase::NotReady, 1),
        ([to_ready(), refused.clone()].concat(), Phase::NotReady, 1),
        (
            [to_ready(), refused.clone(), vec![Observation::Accepted(Channel::Admin)]].concat(),
            Phase::Starting,
            2,
        ),
        ([to_ready(), refused, to_ready()].concat(), Phase::Ready, 2),
        ([to_ready(), vec![Observation::Draining]].concat(), Phase::Draining, 1),
        ([to_ready(), vec![Observation::Draining, Observation::Terminating]].concat(), Phase::Terminating, 1),
    ];
    for (observations, phase, epoch) in cases {
        let model = after(POLICY, &observations);
        assert_eq!((model.snapshot().phase, model.snapshot().epoch), (phase, epoch), "{observations:?}");
    }
}

#[test]
fn two_refusals_close_together_are_not_an_exit() {
    let mut model = after(POLICY, &to_ready());
    let refused = Observation::DataPath(Err(RequestFailure::Refused));
    for (millis, exited) in [(10_000, false), (10_020, false), (10_100, true)] {
        model.observe(model.generation(), refused.clone(), Duration::from_millis(millis));
        assert_eq!(model.snapshot().phase == Phase::NotReady, exited, "{millis}");
    }
}

#[test]
fn a_probe_listener_that_never_accepted_does_not_detect_exits() {
    let refused = Observation::DataPath(Err(RequestFailure::Refused));
    let started =
        vec![Observation::Accepted(Channel::Admin), ready(ServerState::Live), refused.clone(), refused];
    check(
        "listener not there yet",
        POLICY,
        &started,
        "clusters not received\nlisteners not received\nprobe listener not answering\nworkers not started\n",
    );
    let gone = [started, vec![Observation::Admin(Err(RequestFailure::Refused)); 2]].concat();
    check("admin gone too", POLICY, &gone, "envoy exited\n");
}

#[test]
fn results_of_older_generations_are_ignored() {
    let mut model =
        after(POLICY, &[to_ready(), vec![Observation::DataPath(Err(RequestFailure::Refused)); 2]].concat());
    let old = model.generation() - 1;
    for observation in to_ready() {
        model.observe(old, observation, Duration::from_secs(60));
    }
    assert_eq!(model.snapshot().body, "envoy exited\n");
}

#[test]
fn a_decreased_uptime_is_a_restart() {
    // (uptime before, seconds between the responses, uptime after, epoch)
    for (before, between, now, epoch) in [
        (100, 15, 115, 1),
        (100, 15, 100, 1),
        (100, 15, 3, 2),
        (3, 15, 10, 1),
        // The wall clock went back by an hour, and the uptime is still far above 15 s.
        (7200, 15, 3615, 1),
        (5, 15, -3585, 2),
    ] {
        let mut model = after(POLICY, &to_ready());
        let at = Duration::from_secs(100);
        model.observe(model.generation(), server_info(ServerState::Live, before), at);
        model.observe(
            model.generation(),
            server_info(ServerState::Live, now),
            at + Duration::from_secs(between),
        );
        assert_eq!(model.snapshot().epoch, epoch, "{before}s, after {between}s {now}s");
        assert_eq!(model.snapshot().is_ready(), epoch == 1);
    }
}
