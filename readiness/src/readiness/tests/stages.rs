//! The stages from the start to readiness: which conditions are pending, which request is next, and
//! how both are reported.

use super::*;

#[test]
fn each_stage_reports_its_pending_condition() {
    let accepted = Observation::Accepted(Channel::Admin);
    let silent = "probe listener not answering\n";
    let live = |last: Observation| {
        vec![accepted.clone(), ready(ServerState::Live), Observation::DataPath(Ok(PROBED)), last]
    };
    let cases: Vec<(&str, Vec<Observation>, String)> = vec![
        ("nothing", vec![], "envoy not started\n".into()),
        ("refused", vec![Observation::Admin(Err(RequestFailure::Refused)); 3], "envoy not started\n".into()),
        ("accepted", vec![accepted.clone()], format!("envoy admin not answering\n{silent}")),
        (
            "hung",
            vec![accepted.clone(), Observation::Admin(Err(RequestFailure::Timeout))],
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
fn admin_requests_follow_the_stages() {
    let live = vec![Observation::Accepted(Channel::Admin), ready(ServerState::Live)];
    let cases = [
        (vec![], AdminRequest::Ready),
        (vec![ready(ServerState::Initializing)], AdminRequest::Ready),
        (live.clone(), AdminRequest::Stats),
        ([live.clone(), vec![stats(None, None, Some(0))]].concat(), AdminRequest::Stats),
        ([live.clone(), vec![stats(None, None, None)]].concat(), AdminRequest::ServerInfo),
        (to_ready(), AdminRequest::ServerInfo),
        ([to_ready(), vec![server_info(ServerState::Draining, 9)]].concat(), AdminRequest::Ready),
    ];
    for (observations, question) in cases {
        assert_eq!(after(POLICY, &observations).next_admin_request(), question, "{observations:?}");
    }
}

#[test]
fn a_child_is_asked_for_its_state_once_its_version_is_known() {
    let policy = Policy { child: true, ..POLICY };
    let ready = [vec![Observation::Started], to_ready()].concat();
    let known = [ready.clone(), vec![server_info(ServerState::Live, 9)]].concat();
    let draining = [known.clone(), vec![super::ready(ServerState::Draining)]].concat();
    let restarted = [known.clone(), vec![Observation::Exited, Observation::Started]].concat();
    for (observations, request) in [
        (ready, AdminRequest::ServerInfo),
        (known, AdminRequest::State),
        (draining, AdminRequest::Ready),
        (restarted, AdminRequest::Ready),
    ] {
        assert_eq!(after(policy, &observations).next_admin_request(), request, "{observations:?}");
    }
}

#[test]
fn the_detailed_response() {
    let starting = after(POLICY, &[Observation::Accepted(Channel::Admin), Observation::DataPath(Ok(PROBED))]);
    let expected = serde_json::json!({
        "ready": false, "phase": "starting", "seconds": 4.31, "epoch": 1, "envoy": null,
        "pending": [{"condition": "admin", "reason": "envoy admin not answering", "seconds": 3.31}],
        "met": ["data-path", "drain", "process", "shutdown"],
    });
    let found = starting.snapshot().verbose(Duration::from_millis(4311), None, None);
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&found).unwrap(), expected);

    let ready = after(POLICY, &[to_ready(), vec![server_info(ServerState::Live, 9)]].concat());
    let expected = serde_json::json!({
        "ready": true, "phase": "ready", "seconds": 1.0, "epoch": 1, "envoy": "1.40.0", "pending": [],
        "met": ["admin", "clusters", "data-path", "drain", "listeners", "live", "process", "shutdown", "workers"],
    });
    let found = ready.snapshot().verbose(Duration::from_secs(6), None, None);
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&found).unwrap(), expected);
}
