use proptest::prelude::*;

use super::*;
use crate::envoy::{ServerState, Stats, Updates};

const POLICY: Policy =
    Policy { dynamic: Dynamic::Auto, data_path: true, child: false, drain_keeps_ready: false };
const CHILD: Policy = Policy { child: true, ..POLICY };
const PROBED: DataPathAnswer = DataPathAnswer { status: 404, unknown_probe: true };

fn ready(state: ServerState) -> Observation {
    Observation::Admin(Ok(AdminAnswer::Ready(state)))
}

fn stats(
    clusters: Option<(u64, u64)>,
    listeners: Option<(u64, u64)>,
    workers_started: Option<u64>,
) -> Observation {
    let updates = |pair: Option<(u64, u64)>| Updates {
        success: pair.map(|(success, _)| success),
        rejected: pair.map(|(_, rejected)| rejected),
    };
    let stats = Stats { clusters: updates(clusters), listeners: updates(listeners), workers_started };
    Observation::Admin(Ok(AdminAnswer::Stats(stats)))
}

fn server_info(state: ServerState, uptime: i64) -> Observation {
    let info = ServerInfo { version: Some("1.40.0".to_owned()), state, uptime };
    Observation::Admin(Ok(AdminAnswer::ServerInfo(info)))
}

fn data_path(status: u16, unknown_probe: bool) -> Observation {
    Observation::DataPath(Ok(DataPathAnswer { status, unknown_probe }))
}

/// Observations a second apart, of whatever Envoy is there.
fn after(policy: Policy, observations: &[Observation]) -> Ready {
    let mut model = Ready::new(policy, Duration::ZERO);
    for (second, observation) in (1..).zip(observations) {
        model.observe(model.generation(), observation.clone(), Duration::from_secs(second));
    }
    model
}

fn to_ready() -> Vec<Observation> {
    vec![
        Observation::Accepted(Channel::Admin),
        ready(ServerState::Live),
        stats(None, None, Some(1)),
        Observation::Accepted(Channel::DataPath),
        Observation::DataPath(Ok(PROBED)),
    ]
}

fn check(what: &str, policy: Policy, observations: &[Observation], body: &str) {
    let model = after(policy, observations);
    assert_eq!(String::from_utf8_lossy(&model.snapshot().body), body, "{what}");
}

#[test]
fn each_stage_names_what_is_waited_for() {
    let accepted = Observation::Accepted(Channel::Admin);
    let silent = "probe listener not answering\n";
    let live = |last: Observation| {
        vec![accepted.clone(), ready(ServerState::Live), Observation::DataPath(Ok(PROBED)), last]
    };
    let cases: Vec<(&str, Vec<Observation>, String)> = vec![
        ("nothing", vec![], "envoy not started\n".into()),
        ("refused", vec![Observation::Admin(Err(Failure::Refused)); 3], "envoy not started\n".into()),
        ("accepted", vec![accepted.clone()], format!("envoy admin not answering\n{silent}")),
        (
            "hung",
            vec![accepted.clone(), Observation::Admin(Err(Failure::Timeout))],
            format!("envoy admin not answering\n{silent}"),
        ),
        (
            "pre-initializing",
            vec![accepted.clone(), ready(ServerState::PreInitializing)],
            format!("envoy pre-initializing\n{silent}"),
        ),
        (
            "initializing",
            vec![accepted.clone(), ready(ServerState::Initializing)],
            format!("envoy initializing\n{silent}"),
        ),
        (
            "draining",
            vec![accepted.clone(), ready(ServerState::Draining)],
            format!("envoy draining\n{silent}"),
        ),
        (
            "not received",
            live(stats(Some((0, 0)), Some((0, 0)), Some(0))),
            "clusters not received\nlisteners not received\nworkers not started\n".into(),
        ),
        (
            "rejected",
            live(stats(Some((0, 2)), Some((0, 1)), Some(1))),
            "clusters rejected\nlisteners rejected\n".into(),
        ),
        ("received", live(stats(Some((1, 9)), Some((1, 0)), Some(1))), "ready\n".into()),
        ("static", live(stats(None, None, Some(1))), "ready\n".into()),
        ("workers hidden", live(stats(None, None, None)), "ready\n".into()),
        (
            "unknown listener",
            vec![Observation::Accepted(Channel::DataPath), data_path(200, false)],
            "envoy admin not answering\nprobe listener answers 200\n".into(),
        ),
        (
            "no filter",
            vec![Observation::Accepted(Channel::DataPath), data_path(404, false)],
            "envoy admin not answering\nprobe filter not answering\n".into(),
        ),
        (
            "a flood before readiness",
            vec![Observation::Accepted(Channel::DataPath), data_path(429, false)],
            "envoy admin not answering\nprobe listener answers 429\n".into(),
        ),
    ];
    for (what, observations, body) in cases {
        check(what, POLICY, &observations, &body);
    }
}

#[test]
fn policies() {
    let live = |last| vec![Observation::Accepted(Channel::Admin), ready(ServerState::Live), last];
    let policy = |dynamic, data_path| Policy { dynamic, data_path, ..POLICY };
    let waiting = "clusters not received\nlisteners not received\n";
    check("on: absent is not static", policy(Dynamic::On, false), &live(stats(None, None, Some(1))), waiting);
    check(
        "off: zero is static",
        policy(Dynamic::Off, false),
        &live(stats(Some((0, 1)), None, Some(1))),
        "ready\n",
    );
    check("no data path", policy(Dynamic::Auto, false), &live(stats(None, None, None)), "ready\n");
    let hidden = live(stats(None, None, None));
    check("hidden", POLICY, &hidden, "probe listener not answering\nworkers not started\n");
}

#[test]
fn what_unsets_readiness_and_what_does_not() {
    let timeout = Observation::DataPath(Err(Failure::Timeout));
    let again = Observation::DataPath(Ok(PROBED));
    let refused = Observation::DataPath(Err(Failure::Refused));
    let cases: Vec<(&str, Vec<Observation>, &str)> = vec![
        ("nothing", vec![], "ready\n"),
        ("hung admin", vec![Observation::Admin(Err(Failure::Timeout)); 9], "ready\n"),
        ("refusing admin", vec![Observation::Admin(Err(Failure::Refused)); 9], "ready\n"),
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
            "and somebody else again",
            vec![refused.clone(), Observation::Accepted(Channel::DataPath), refused.clone()],
            "ready\n",
        ),
        ("drain", vec![Observation::Draining], "draining\n"),
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
    let refused = vec![Observation::DataPath(Err(Failure::Refused)); 2];
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
fn two_refusals_close_together_are_no_death() {
    let mut model = after(POLICY, &to_ready());
    let refused = Observation::DataPath(Err(Failure::Refused));
    for (millis, exited) in [(10_000, false), (10_020, false), (10_100, true)] {
        model.observe(model.generation(), refused.clone(), Duration::from_millis(millis));
        assert_eq!(model.snapshot().phase == Phase::NotReady, exited, "{millis}");
    }
}

#[test]
fn a_listener_that_never_answered_tells_of_no_death() {
    let refused = Observation::DataPath(Err(Failure::Refused));
    let started =
        vec![Observation::Accepted(Channel::Admin), ready(ServerState::Live), refused.clone(), refused];
    check(
        "listener not there yet",
        POLICY,
        &started,
        "clusters not received\nlisteners not received\nprobe listener not answering\nworkers not started\n",
    );
    let gone = [started, vec![Observation::Admin(Err(Failure::Refused)); 2]].concat();
    check("admin gone too", POLICY, &gone, "envoy exited\n");
}

#[test]
fn answers_to_older_questions_are_dropped() {
    let mut model =
        after(POLICY, &[to_ready(), vec![Observation::DataPath(Err(Failure::Refused)); 2]].concat());
    let old = model.generation() - 1;
    for observation in to_ready() {
        model.observe(old, observation, Duration::from_secs(60));
    }
    assert_eq!(model.snapshot().body, "envoy exited\n");
}

#[test]
fn uptime_that_went_back_is_another_envoy() {
    // (uptime before, seconds between the answers, uptime after, epoch)
    for (before, between, now, epoch) in [
        (100, 15, 115, 1),
        (100, 15, 100, 1),
        (100, 15, 3, 2),
        (3, 15, 10, 1),
        // The wall clock went back an hour: far more than 15 s are left.
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

#[test]
fn questions_follow_the_stages() {
    let live = vec![Observation::Accepted(Channel::Admin), ready(ServerState::Live)];
    let cases = [
        (vec![], AdminQuestion::Ready),
        (vec![ready(ServerState::Initializing)], AdminQuestion::Ready),
        (live.clone(), AdminQuestion::Stats),
        ([live.clone(), vec![stats(None, None, Some(0))]].concat(), AdminQuestion::Stats),
        ([live.clone(), vec![stats(None, None, None)]].concat(), AdminQuestion::ServerInfo),
        (to_ready(), AdminQuestion::ServerInfo),
        ([to_ready(), vec![server_info(ServerState::Draining, 9)]].concat(), AdminQuestion::Ready),
    ];
    for (observations, question) in cases {
        assert_eq!(after(POLICY, &observations).admin_question(), question, "{observations:?}");
    }
}

#[test]
fn the_detailed_answer() {
    let starting = after(POLICY, &[Observation::Accepted(Channel::Admin), Observation::DataPath(Ok(PROBED))]);
    let expected = serde_json::json!({
        "ready": false, "phase": "starting", "seconds": 4.31, "epoch": 1, "envoy": null,
        "pending": [{"condition": "admin", "reason": "envoy admin not answering", "seconds": 3.31}],
        "met": ["data-path", "drain", "process", "shutdown"],
    });
    let found = starting.snapshot().verbose(Duration::from_millis(4311));
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&found).unwrap(), expected);

    let ready = after(POLICY, &[to_ready(), vec![server_info(ServerState::Live, 9)]].concat());
    let expected = serde_json::json!({
        "ready": true, "phase": "ready", "seconds": 1.0, "epoch": 1, "envoy": "1.40.0", "pending": [],
        "met": ["admin", "clusters", "data-path", "drain", "listeners", "live", "process", "shutdown", "workers"],
    });
    let found = ready.snapshot().verbose(Duration::from_secs(6));
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&found).unwrap(), expected);
}

fn child_to_ready() -> Vec<Observation> {
    [vec![Observation::Started], to_ready()].concat()
}

#[test]
fn a_child_lives_and_dies_by_what_its_parent_says() {
    let refused = vec![Observation::DataPath(Err(Failure::Refused)); 2];
    let restarting = vec![Observation::Exited, Observation::Restarting];
    for (what, observations, body, epoch) in [
        ("not started", vec![], "envoy not started\n", 1),
        ("somebody else answers", to_ready(), "envoy not started\n", 1),
        (
            "started",
            vec![Observation::Started],
            "envoy admin not answering\nprobe listener not answering\n",
            1,
        ),
        ("ready", child_to_ready(), "ready\n", 1),
        ("refusals are no death", [child_to_ready(), refused].concat(), "ready\n", 1),
        ("exited", [child_to_ready(), vec![Observation::Exited]].concat(), "envoy exited\n", 1),
        ("restarting", [child_to_ready(), restarting.clone()].concat(), "envoy restarting\n", 1),
        (
            "started again, nothing is left of the life before",
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
fn answers_of_the_epoch_before_are_dropped() {
    let mut model = after(CHILD, &[child_to_ready(), vec![Observation::Exited]].concat());
    let old = model.generation();
    model.observe(old, Observation::Started, Duration::from_secs(60));
    for observation in to_ready() {
        model.observe(old, observation, Duration::from_secs(61));
    }
    assert!(!model.snapshot().is_ready());
}

#[test]
fn a_drain_may_leave_readiness_as_it_is() {
    let keeps = Policy { drain_keeps_ready: true, ..CHILD };
    let draining = [child_to_ready(), vec![Observation::Draining]].concat();
    check("keeps", keeps, &draining, "ready\n");
    assert_eq!(after(keeps, &draining).snapshot().phase, Phase::Draining);
    check("does not", CHILD, &draining, "draining\n");
}

#[test]
fn what_was() {
    for (observations, live, ready) in [
        (vec![], false, false),
        (vec![Observation::Started, ready(ServerState::Initializing)], false, false),
        (vec![Observation::Started, ready(ServerState::Live)], true, false),
        (child_to_ready(), true, true),
        ([child_to_ready(), vec![Observation::Exited]].concat(), true, false),
    ] {
        let model = after(CHILD, &observations);
        assert_eq!((model.was_live(), model.was_ready()), (live, ready), "{observations:?}");
    }
}

#[test]
fn liveness() {
    let silent = vec![Observation::Admin(Err(Failure::Timeout))];
    let gone = vec![Observation::DataPath(Err(Failure::Timeout)); 3];
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
        prop_oneof![Just(Failure::Refused), Just(Failure::Timeout)]
            .prop_map(|failure| Observation::DataPath(Err(failure))),
        Just(Observation::Admin(Err(Failure::Refused))),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_the_snapshot_is_of_one_piece(observations in proptest::collection::vec(observation(), 0..40)) {
        let mut model = Ready::new(POLICY, Duration::ZERO);
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
