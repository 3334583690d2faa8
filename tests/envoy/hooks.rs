//! Tests of lifecycle hooks through a real Envoy. The kubelet counts any HTTP response to a hook as
//! success, so a hook that fails must get no response.

use std::time::Duration;

use envoy_bootstrap::bootstrap::Bootstrap;
use kit::app::{App, Step, answer};
use kit::caller;
use kit::envoy::Version;
use kit::load::{ask, kubelet_request};
use kit::net;
use kit::pod::{Pod, with_long_timeouts};
use kit::wait;
use serde_json::json;

#[tokio::test]
async fn hooks_get_a_response_only_from_the_application() {
    let ip = net::loopback();
    let good = App::start(ip, answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")).await;
    let bad = App::start(ip, answer("HTTP/1.1 500 No\r\nContent-Length: 6\r\n\r\nsecret")).await;
    let closed = App::start(ip, vec![Step::Read]).await;
    let slow = vec![
        Step::Read,
        Step::Wait(Duration::from_millis(2500)),
        Step::Write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()),
    ];
    let slow = App::start(ip, slow).await;
    let silent = App::start(ip, vec![Step::Hang]).await;
    let hook = |port: u16| json!({"httpGet": {"port": port, "path": "/bye"}});
    let mut hurried = hook(silent.port());
    hurried["timeoutSeconds"] = 1.into();
    // The kubelet would repeat such a hook in plaintext.
    let unread = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n".to_vec();
    let plaintext = App::start(ip, vec![Step::Write(unread)]).await;
    let mut secure = hook(plaintext.port());
    secure["httpGet"]["scheme"] = "HTTPS".into();
    let table = json!({
        "/app-lifecycle/good/prestopz": hook(good.port()),
        "/app-lifecycle/bad/poststartz": hook(bad.port()),
        "/app-lifecycle/closed/prestopz": hook(closed.port()),
        "/app-lifecycle/refused/poststartz": hook(1),
        "/app-lifecycle/plaintext/prestopz": secure,
        // Probes have a timeout of one second by default; hooks have none.
        "/app-lifecycle/slow/prestopz": hook(slow.port()),
        "/app-lifecycle/hurried/prestopz": hurried,
    });
    let pod = Pod::start("hooks", ip, &table).await;
    for (path, status) in [
        ("/app-lifecycle/good/prestopz", 200),
        ("/app-lifecycle/bad/poststartz", 500),
        ("/app-lifecycle/closed/prestopz", 0),
        ("/app-lifecycle/refused/poststartz", 0),
        ("/app-lifecycle/slow/prestopz", 200),
        ("/app-lifecycle/hurried/prestopz", 0),
        ("/app-lifecycle/plaintext/prestopz", 0),
        ("/app-lifecycle/none/prestopz", 404),
        ("/app-health/good/prestopz", 404),
    ] {
        let answer = caller::probe(pod.listener, path).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
    }
    caller::get(plaintext.address, "/", &[]).await;
    assert_eq!(
        plaintext.seen_at_least(2).await.len(),
        2,
        "one of Envoy, no second try, and that of the test"
    );
    pod.envoy.stop().await;
}

#[tokio::test]
async fn hooks_answer_only_the_node() {
    let ip = net::loopback();
    let app = App::start(ip, answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")).await;
    let prober = json!({"httpGet": {"port": app.port()}});
    let table = json!({"/app-lifecycle/app/prestopz": prober, "/app-health/app/readyz": prober});
    let table = with_long_timeouts(table);
    let node = net::loopback();
    let bootstrap = Bootstrap { hook_callers: Some(vec![node]), ..Pod::bootstrap("hooks-node", ip, &table) };
    let pod = Pod::with("hooks-node", Version::Newest, &bootstrap).await;
    let hook = "/app-lifecycle/app/prestopz";
    let stranger = net::loopback();
    for (client, path, status) in [
        (node, hook, 200),
        ("127.0.0.1".parse().expect("an address"), hook, 200),
        (stranger, hook, 0),
        (stranger, "/app-health/app/readyz", 200),
    ] {
        let answer = ask(Some(client), pod.listener, &kubelet_request(pod.listener, path)).await;
        assert_eq!(answer.status, status, "{client} {path}: {answer:?}");
    }
    assert_eq!(app.seen().len(), 3, "the hook of the stranger did not reach the application");
    let metrics = pod.envoy.admin("/stats/prometheus").await.expect("metrics");
    let refused = metrics.lines().find(|line| line.contains("forbidden")).unwrap_or_default();
    assert!(refused.ends_with(" 1"), "{refused}");
    let line = format!("hook app/prestopz: forbidden to {stranger}:");
    wait::until_or(|| pod.envoy.log(), async || pod.envoy.log().contains(&line)).await;
    pod.envoy.stop().await;
}
