use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;

use super::*;
use address::Endpoint;
use readiness::Dynamic;
use readiness::Policy;

/// Responses of a scripted Envoy by path prefix; a path without an entry never gets a response.
type Script = Arc<Mutex<Vec<(&'static str, u16, &'static str)>>>;

struct Scripted {
    script: Script,
    url: HttpUrl,
    /// Maximum number of requests that were in flight at the same time.
    most: Arc<AtomicUsize>,
    server: tokio::task::JoinHandle<()>,
}

async fn scripted(script: &[(&'static str, u16, &'static str)]) -> Scripted {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = HttpUrl {
        endpoint: Endpoint::Ip(listener.local_addr().unwrap()),
        authority: "localhost".into(),
        path: "/app-health/~/readyz".into(),
    };
    let script: Script = Arc::new(Mutex::new(script.to_vec()));
    let (most, now) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let server = tokio::spawn(serve(listener, script.clone(), most.clone(), now));
    Scripted { script, url, most, server }
}

async fn serve(listener: TcpListener, script: Script, most: Arc<AtomicUsize>, now: Arc<AtomicUsize>) {
    let mut connections = tokio::task::JoinSet::new();
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        let (script, most, now) = (script.clone(), most.clone(), now.clone());
        connections.spawn(async move {
            let mut request = [0; 2048];
            let Ok(length) = stream.read(&mut request).await else { return };
            let head = String::from_utf8_lossy(&request[..length]).into_owned();
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let path = head.split(' ').nth(1).unwrap_or_default();
            let answer = script.lock().unwrap().iter().find(|(start, ..)| path.starts_with(start)).copied();
            if let Some((_, status, body)) = answer {
                let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}", body.len());
                now.fetch_sub(1, Ordering::SeqCst);
                let _ = stream.write_all(answer.as_bytes()).await;
            } else {
                // No response until the client closes the connection.
                let _ = stream.read(&mut request).await;
                now.fetch_sub(1, Ordering::SeqCst);
            }
        });
    }
}

const LIVE: [(&str, u16, &str); 4] = [
    ("/ready", 200, "LIVE\n"),
    ("/stats", 200, "listener_manager.workers_started: 1\n"),
    ("/server_info", 200, r#"{"version": "a/1.40.0/b", "state": "LIVE", "uptime_current_epoch": "5s"}"#),
    ("/app-health/~/readyz", 404, "unknown_probe: no such probe is declared"),
];

const EXTERNAL: Policy =
    Policy { dynamic: Dynamic::Auto, data_path: true, child: false, drain_keeps_ready: false };

fn watch_envoy(admin: &HttpUrl, data_path: &HttpUrl) -> (Arc<AgentState>, tokio::task::JoinHandle<()>) {
    watch(EXTERNAL, admin, data_path)
}

fn watch(
    policy: Policy,
    admin: &HttpUrl,
    data_path: &HttpUrl,
) -> (Arc<AgentState>, tokio::task::JoinHandle<()>) {
    let state = Arc::new(AgentState::new(policy, Arc::default()));
    let targets = PollTargets {
        admin: admin.clone(),
        admin_timeout: Duration::from_millis(200),
        data_path: Some(data_path.clone()),
        child: policy.child,
    };
    let polled = state.clone();
    (state, tokio::spawn(async move { run(&polled, targets).await }))
}

/// Waits up to 20 s until port 15021 would return the body `expected`.
async fn body(state: &AgentState, expected: &str) {
    let mut snapshots = state.subscribe();
    let found =
        timeout(Duration::from_secs(20), snapshots.wait_for(|snapshot| snapshot.body == expected)).await;
    assert!(found.is_ok(), "{expected:?} never appeared, last body {:?}", state.subscribe().borrow().body);
}

#[tokio::test]
async fn readiness_and_version_after_all_stages() {
    let envoy = scripted(&LIVE).await;
    let (state, _task) = watch_envoy(&envoy.url, &envoy.url);
    body(&state, "ready\n").await;
    let mut snapshots = state.subscribe();
    let version = snapshots.wait_for(|snapshot| snapshot.envoy.as_deref() == Some("1.40.0"));
    assert!(timeout(Duration::from_secs(20), version).await.is_ok());
}

#[tokio::test]
async fn the_drain_of_a_child_is_noticed_without_another_server_info() {
    let (admin, listener) = (scripted(&LIVE).await, scripted(&LIVE).await);
    let policy = Policy { data_path: false, child: true, ..EXTERNAL };
    let (state, _task) = watch(policy, &admin.url, &listener.url);
    state.apply(Observation::Started);
    let mut snapshots = state.subscribe();
    let version = snapshots.wait_for(|snapshot| snapshot.envoy.as_deref() == Some("1.40.0"));
    assert!(timeout(Duration::from_secs(20), version).await.is_ok());
    *admin.script.lock().unwrap() = vec![("/ready", 503, "DRAINING\n")];
    // In silence, the admin interface is asked more often.
    listener.script.lock().unwrap().clear();
    body(&state, "envoy draining\n").await;
}

#[tokio::test]
async fn one_admin_request_at_a_time() {
    let (admin, listener) = (scripted(&[]).await, scripted(&LIVE).await);
    let (state, _task) = watch_envoy(&admin.url, &listener.url);
    body(&state, "envoy admin not answering\n").await;
    // Two timeouts of 200 and 400 ms expire.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(admin.most.load(Ordering::SeqCst), 1);
    *admin.script.lock().unwrap() = LIVE.to_vec();
    body(&state, "ready\n").await;
    admin.script.lock().unwrap().clear();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(
        state.subscribe().borrow().body,
        "ready\n",
        "a hanging admin interface has no effect after readiness"
    );
}

#[tokio::test]
async fn the_data_path_determines_readiness_after_startup() {
    let (admin, listener) = (scripted(&LIVE).await, scripted(&LIVE).await);
    let (state, _task) = watch_envoy(&admin.url, &listener.url);
    body(&state, "ready\n").await;
    *listener.script.lock().unwrap() = vec![("/app-health", 404, "")];
    body(&state, "probe filter not answering\n").await;
    *listener.script.lock().unwrap() = LIVE.to_vec();
    body(&state, "ready\n").await;
}

#[tokio::test]
async fn exit_and_restart_of_envoy() {
    let envoy = scripted(&LIVE).await;
    let (state, _task) = watch_envoy(&envoy.url, &envoy.url);
    body(&state, "ready\n").await;
    envoy.server.abort();
    body(&state, "envoy exited\n").await;
    assert_eq!(state.subscribe().borrow().epoch, 1);

    let Endpoint::Ip(address) = envoy.url.endpoint else { panic!("an address") };
    let listener = TcpListener::bind(address).await.unwrap();
    tokio::spawn(serve(listener, envoy.script.clone(), envoy.most.clone(), Arc::default()));
    body(&state, "ready\n").await;
    assert_eq!(state.subscribe().borrow().epoch, 2);
}

/// Fault of an admin interface, which affects every connection.
#[derive(Debug, Clone, Copy)]
enum Trouble {
    /// It answers correctly after this time.
    Late(Duration),
    /// It sends a response without end.
    Endless,
    /// It sends an invalid response.
    Garbage,
    /// It answers with status 404.
    Status,
    /// It closes the connection.
    Closes,
}

/// Starts an admin interface with a fault. Returns its URL and the maximum number of bytes that it
/// could write for one response.
async fn troubled(trouble: Trouble) -> (HttpUrl, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = HttpUrl {
        endpoint: Endpoint::Ip(listener.local_addr().unwrap()),
        authority: "localhost".into(),
        path: "/".into(),
    };
    let written = Arc::new(AtomicUsize::new(0));
    let most = written.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let most = most.clone();
            tokio::spawn(async move {
                let mut request = [0; 2048];
                let Ok(length) = stream.read(&mut request).await else { return };
                let head = String::from_utf8_lossy(&request[..length]).into_owned();
                let path = head.split(' ').nth(1).unwrap_or_default();
                let good =
                    LIVE.iter().find(|(start, ..)| path.starts_with(start)).map_or("", |(.., body)| body);
                let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{good}", good.len());
                match trouble {
                    Trouble::Late(time) => {
                        tokio::time::sleep(time).await;
                        let _ = stream.write_all(answer.as_bytes()).await;
                    }
                    Trouble::Endless => {
                        let mut bytes = 0;
                        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
                        while stream.write_all(&[b'x'; 64 * 1024]).await.is_ok() {
                            bytes += 64 * 1024;
                            most.fetch_max(bytes, Ordering::SeqCst);
                        }
                    }
                    Trouble::Garbage => drop(stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n\xff<html>").await),
                    Trouble::Status => {
                        drop(stream.write_all(b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n").await)
                    }
                    Trouble::Closes => {}
                }
            });
        }
    });
    (url, written)
}

#[tokio::test]
async fn admin_failures_are_reported_and_counted() {
    for (trouble, outcome) in [
        (Trouble::Endless, "too_large"),
        (Trouble::Garbage, "bad_body"),
        (Trouble::Status, "bad_status"),
        (Trouble::Closes, "bad_body"),
        (Trouble::Late(Duration::from_secs(60)), "timeout"),
    ] {
        let (listener, (admin, written)) = (scripted(&LIVE).await, troubled(trouble).await);
        let (state, task) = watch_envoy(&admin, &listener.url);
        body(&state, "envoy admin not answering\n").await;
        let series = format!("admin_requests_total{{outcome=\"{outcome}\"}}");
        for round in 0.. {
            if state.metrics().encode().contains(&series) {
                break;
            }
            assert!(round < 200, "{trouble:?}: {}", state.metrics().encode());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        task.abort();
        // The buffers of the kernel add to the 4 KiB that are read.
        assert!(written.load(Ordering::SeqCst) < 16 << 20, "{trouble:?}: {written:?}");
    }
}

#[tokio::test]
async fn a_slow_admin_interface_answers_within_the_doubled_timeout() {
    let (listener, (admin, _)) =
        (scripted(&LIVE).await, troubled(Trouble::Late(Duration::from_millis(300))).await);
    let (state, _task) = watch_envoy(&admin, &listener.url);
    body(&state, "ready\n").await;
    assert!(state.metrics().encode().contains("admin_requests_total{outcome=\"timeout\"}"));
}
