use super::*;

#[test]
fn ready() {
    let cases = [
        (200, "LIVE\n", Some(ServerState::Live)),
        (503, "PRE_INITIALIZING\n", Some(ServerState::PreInitializing)),
        (503, "INITIALIZING\n", Some(ServerState::Initializing)),
        (503, "DRAINING\n", Some(ServerState::Draining)),
        (404, "LIVE\n", None),
        (200, "live", None),
        (200, "<html>", None),
        (200, "", None),
    ];
    for (status, body, state) in cases {
        for request in [AdminRequest::Ready, AdminRequest::State] {
            let found = request.parse(status, body.as_bytes()).ok();
            assert_eq!(found, state.map(AdminResponse::State), "{request:?} {status} {body}");
        }
    }
    assert_eq!(AdminRequest::Ready.parse(200, b"\xff"), Err(RequestFailure::BadBody));
}

#[test]
fn statistics() {
    let updates = |success, rejected| UpdateCounters { success, rejected };
    let dynamic = "cluster_manager.cds.update_rejected: 2\ncluster_manager.cds.update_success: 1\n\
                   listener_manager.lds.update_rejected: 0\nlistener_manager.lds.update_success: 0\n\
                   listener_manager.workers_started: 1\n";
    let cases = [
        (
            dynamic,
            Some(ReadinessStats {
                clusters: updates(Some(1), Some(2)),
                listeners: updates(Some(0), Some(0)),
                workers_started: Some(1),
            }),
        ),
        (
            "listener_manager.workers_started: 0\n",
            Some(ReadinessStats { workers_started: Some(0), ..ReadinessStats::default() }),
        ),
        ("", Some(ReadinessStats::default())),
        ("other.name: 7\n", Some(ReadinessStats::default())),
        ("garbage", None),
        ("listener_manager.workers_started: yes\n", None),
    ];
    for (body, stats) in cases {
        assert_eq!(
            AdminRequest::Stats.parse(200, body.as_bytes()).ok(),
            stats.map(AdminResponse::Stats),
            "{body}"
        );
    }
    assert_eq!(AdminRequest::Stats.parse(503, b""), Err(RequestFailure::BadStatus));
}

#[test]
fn server_information() {
    let body = |version: &str, state: &str, uptime: &str| {
        serde_json::json!({"version": version, "state": state, "uptime_current_epoch": uptime, "node": {}})
            .to_string()
    };
    let info = |version: Option<&str>| ServerInfo {
        version: version.map(str::to_owned),
        state: ServerState::Live,
        uptime: 12,
    };
    let cases = [
        (body("abc/1.40.0/Clean/RELEASE/BoringSSL", "LIVE", "12s"), Some(info(Some("1.40.0")))),
        (body("abc/1.41.0-dev/Clean", "LIVE", "12s"), Some(info(Some("1.41.0-dev")))),
        (body("abc/<b>/Clean", "LIVE", "12s"), Some(info(None))),
        (body("abc", "LIVE", "12s"), Some(info(None))),
        (body("a/1/b", "SLEEPING", "12s"), None),
        (body("a/1/b", "LIVE", "12"), None),
        ("{}".to_owned(), None),
        ("[".to_owned(), None),
    ];
    for (body, info) in cases {
        let found = AdminRequest::ServerInfo.parse(200, body.as_bytes()).ok();
        assert_eq!(found, info.map(AdminResponse::ServerInfo), "{body}");
    }
}
