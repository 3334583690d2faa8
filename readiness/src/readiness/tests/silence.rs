//! When a silent Envoy counts as hung.

use super::*;

#[test]
fn without_a_condition_any_response_of_the_probe_listener_counts() {
    let policy = Policy { data_path: false, ..CHILD };
    let observed = |observation: Observation| {
        let model = after(policy, &[Observation::Started, observation]);
        (model.data_path_pending(), model.data_path_failing())
    };
    assert_eq!(observed(data_path(404, false)), (false, false));
    assert_eq!(observed(Observation::DataPath(Err(RequestFailure::Timeout))), (false, true));
}

/// Applies one observation each second after an Envoy became ready.
fn silence_after(observations: &[Observation]) -> Silence {
    after(CHILD, &[vec![Observation::Started], to_ready(), observations.to_vec()].concat()).silence()
}

fn unanswered(seconds: usize) -> Vec<Observation> {
    vec![Observation::DataPath(Err(RequestFailure::Timeout)); seconds]
}

#[test]
fn both_channels_must_be_silent() {
    let admin = vec![Observation::Admin(Err(RequestFailure::Timeout))];
    let status = vec![Observation::Admin(Err(RequestFailure::BadStatus))];
    let answered = vec![Observation::DataPath(Ok(PROBED))];
    let trapped = vec![data_path(503, false)];
    for (what, observations, hangs) in [
        ("ready", vec![], false),
        ("the probe listener alone", unanswered(99), false),
        ("the admin interface alone", vec![admin[0].clone(); 99], false),
        ("the admin interface, before the probe listener", [admin.clone(), unanswered(99)].concat(), false),
        ("both, for too short a time", [unanswered(10), admin.clone(), unanswered(49)].concat(), false),
        ("both", [unanswered(10), admin.clone(), unanswered(50)].concat(), true),
        (
            "refused connections",
            [unanswered(10), admin.clone(), vec![Observation::DataPath(Err(RequestFailure::Refused)); 50]]
                .concat(),
            true,
        ),
        (
            "an answer of the probe listener",
            [unanswered(40), answered, admin.clone(), unanswered(40)].concat(),
            false,
        ),
        ("an error of the filter", [unanswered(10), admin.clone(), unanswered(50), trapped].concat(), false),
        (
            "an answer of the admin interface",
            [unanswered(40), vec![ready(ServerState::Live)], admin.clone(), unanswered(40)].concat(),
            false,
        ),
        (
            "an error of the admin interface",
            [unanswered(10), admin.clone(), unanswered(50), status].concat(),
            false,
        ),
        (
            "the next process",
            [unanswered(10), admin.clone(), unanswered(50), vec![Observation::Exited, Observation::Started]]
                .concat(),
            false,
        ),
    ] {
        assert_eq!(silence_after(&observations).is_hang(Duration::from_secs(60)), hangs, "{what}");
    }
}

#[test]
fn an_envoy_that_was_never_ready_has_ten_minutes() {
    let admin = Observation::Admin(Err(RequestFailure::Timeout));
    for (seconds, hangs) in [(598, false), (599, true)] {
        let observations =
            [vec![Observation::Started], unanswered(1), vec![admin.clone()], unanswered(seconds)].concat();
        assert_eq!(
            after(CHILD, &observations).silence().is_hang(Duration::from_secs(10)),
            hangs,
            "{seconds}"
        );
    }
}

#[test]
fn a_time_in_which_the_agent_did_not_run_is_not_silence() {
    let mut model = after(CHILD, &[vec![Observation::Started], to_ready(), unanswered(1)].concat());
    for (seconds, observation) in
        [(1000, Observation::Admin(Err(RequestFailure::Timeout))), (5000, unanswered(1).remove(0))]
    {
        model.observe(model.generation(), observation, Duration::from_secs(seconds));
    }
    assert!(!model.silence().is_hang(Duration::from_secs(60)));
    assert!(model.silence().is_hang(Duration::from_secs(8)));
}
