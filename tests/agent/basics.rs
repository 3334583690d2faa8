//! Tests of the agent's binary next to a real Envoy that it does not start itself.

use std::cell::Cell;
use std::net::SocketAddr;
use std::path::Path;

use kit::agent;
use kit::app::{App, answer};
use kit::caller::{self, Answer};
use kit::envoy::{self, Version};
use kit::net;
use kit::pod::Pod;
use kit::wait;
use serde_json::{Value, json};
use tokio::process::Child;

const TABLE: &str = r#"{"/app-health/app/readyz": {"tcpSocket": {"port": 8080}}}"#;

async fn ready(address: SocketAddr, query: &str) -> Answer {
    caller::get(address, &format!("/healthz/ready{query}"), &[]).await
}

/// Starts the agent with its readiness port at `address`, for the Envoy on the same IP address
/// whose admin socket is in `folder`.
fn start(address: SocketAddr, folder: &Path) -> Child {
    let admin = format!("unix:{}", folder.join("admin.sock").display());
    let data_path = format!("http://{}", envoy::probe_listener(address.ip()));
    let local = SocketAddr::new(address.ip(), 15004).to_string();
    let (address, watch) = (address.to_string(), ["run", "--no-envoy", "--ready-address"]);
    let mut command = agent::command(&watch);
    command.args([&address, "--admin", &admin, "--data-path", &data_path, "--local-address", &local]);
    command.spawn().expect("the agent starts")
}

/// Requests the readiness until the response has this status and this body.
async fn until(address: SocketAddr, status: u16, body: &str) {
    let last = Cell::new(Answer::default());
    let what = || format!("the agent answers {status} {body:?}, not {:?}", last.take());
    wait::until_or(what, async || {
        let answer = ready(address, "").await;
        let is_expected = answer.status == status && answer.text().trim() == body;
        last.set(answer);
        is_expected
    })
    .await;
}

#[tokio::test]
async fn readiness_follows_start_and_exit_of_envoy() {
    let ip = net::loopback();
    let address = SocketAddr::new(ip, 15021);
    let folder = envoy::folder("agent-life");
    let listener = envoy::probe_listener(ip);
    let running = start(address, &folder);
    until(address, 503, "envoy not started").await;

    let table: Value = serde_json::from_str(TABLE).expect("JSON");
    let pod = Pod::start("agent-life", ip, &table).await;
    until(address, 200, "ready").await;
    let verbose: Value = serde_json::from_str(&ready(address, "?verbose").await.text()).expect("JSON");
    assert_eq!(
        (&verbose["ready"], &verbose["phase"], &verbose["epoch"]),
        (&json!(true), &json!("ready"), &json!(1))
    );
    for path in ["/", "/healthz/ready/", "//healthz/ready", "/healthz/%72eady", "/stats/prometheus"] {
        assert_eq!(caller::get(address, path, &[]).await.status, 404, "{path}");
    }
    let metrics = caller::probe(listener, "/stats/prometheus").await;
    assert!(metrics.text().contains("\napp_health_agent_ready 1\n"), "{metrics:?}");

    pod.envoy.stop().await;
    until(address, 503, "envoy exited").await;
    let pod = Pod::start("agent-life", ip, &table).await;
    until(address, 200, "ready").await;
    let verbose: Value = serde_json::from_str(&ready(address, "?verbose").await.text()).expect("JSON");
    assert_eq!(verbose["epoch"], 2);

    let pid = nix::unistd::Pid::from_raw(i32::try_from(running.id().expect("a pid")).expect("a pid"));
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("the agent runs");
    let outcome = agent::finish(running).await;
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    pod.envoy.stop().await;
}

/// The agent reports an Envoy as not ready if it is LIVE but its listener lacks the filter.
#[tokio::test]
async fn a_listener_without_the_filter_is_not_ready() {
    let ip = net::loopback();
    let address = SocketAddr::new(ip, 15021);
    let bootstrap = Pod::bootstrap("agent-bare", ip, &json!({}));
    let mut rendered: Value = serde_json::from_str(&bootstrap.render()).expect("JSON");
    let filters = "/static_resources/listeners/0/filter_chains/0/filters/1/typed_config/http_filters";
    let filters = rendered.pointer_mut(filters).and_then(Value::as_array_mut).expect("the filters");
    filters.retain(|filter| filter["name"] != "envoy.filters.http.wasm");
    let routes = "/static_resources/listeners/0/filter_chains/0/filters/1/typed_config/route_config/virtual_hosts/0/routes/0";
    rendered
        .pointer_mut(routes)
        .and_then(Value::as_object_mut)
        .expect("a route")
        .remove("typed_per_filter_config");
    let envoy = envoy::Envoy::start(Version::Newest, envoy::folder("agent-bare"), &rendered, 1).await;
    let _running = start(address, &envoy.folder);
    until(address, 503, "probe filter not answering").await;
    envoy.stop().await;
}

#[tokio::test]
async fn wait_executes_the_command_once_envoy_is_ready() {
    let ip = net::loopback();
    let address = SocketAddr::new(ip, 15021);
    let url = format!("http://{address}/healthz/ready");
    let folder = envoy::folder("agent-wait");
    let wait = ["wait", "--timeoutSeconds", "120", "--url", &url, "--", "sh", "-c", "echo $$"];
    let waiting = agent::command(&wait).spawn().expect("the agent starts");
    let pid = waiting.id().expect("a pid");
    let _running = start(address, &folder);
    let once =
        agent::run(&["wait", "--timeoutSeconds", "0", "--url", &url, "--", "echo", "never"], &[]).await;
    assert_eq!((once.code, once.stdout.as_str()), (Some(69), ""), "{once:?}");

    let pod = Pod::start("agent-wait", ip, &json!({})).await;
    let outcome = agent::finish(waiting).await;
    assert_eq!((outcome.code, outcome.stdout.trim()), (Some(0), pid.to_string().as_str()), "{outcome:?}");
    assert!(outcome.stderr.contains("ready after"), "{outcome:?}");
    pod.envoy.stop().await;
}

/// An Envoy that runs the printed bootstrap, with the filter in a file or inline, answers probes.
#[tokio::test]
async fn the_printed_bootstrap_answers_probes() {
    let ip = net::loopback();
    let app = App::start(ip, answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")).await;
    let table = json!({"/app-health/app/readyz": {"httpGet": {"port": app.port()}, "timeoutSeconds": 60}});
    let table = table.to_string();
    let folder = envoy::folder("agent-bootstrap");
    let (ip_text, listener) = (ip.to_string(), envoy::probe_listener(ip));
    for inline in [false, true] {
        let (probe_address, state_dir) = (listener.to_string(), folder.to_str().expect("a path").to_owned());
        let mut arguments = vec!["bootstrap", "--instance-ip", &ip_text, "--stats-address", "off"];
        arguments.extend(["--probe-address", &probe_address, "--state-dir", &state_dir]);
        arguments.extend(inline.then_some("--inline-filter"));
        let outcome = agent::run(&arguments, &[("ISTIO_KUBE_APP_PROBERS", &table)]).await;
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let again = agent::run(&arguments, &[("ISTIO_KUBE_APP_PROBERS", &table)]).await;
        assert_eq!(outcome.stdout, again.stdout);
        let bootstrap = serde_json::from_str(&outcome.stdout).expect("JSON");
        let envoy = envoy::Envoy::start(Version::Newest, folder.clone(), &bootstrap, 1).await;
        assert_eq!(caller::probe(listener, "/app-health/app/readyz").await.status, 200);
        envoy.stop().await;
    }
}

#[tokio::test]
async fn invalid_values_are_named() {
    let folder = envoy::folder("agent-wrong");
    let untouched = folder.join("never");
    let state_dir = untouched.to_str().expect("a path");
    let taken = std::net::TcpListener::bind((net::loopback(), 0)).expect("a free port");
    let taken = taken.local_addr().map(|address| (taken, address.to_string())).expect("bound");
    let bad_table = r#"{"/app-health/app/livez": {"httpGet": {"port": "http"}}}"#;
    let rows: [(&[&str], Option<&str>, i32, &str); 6] = [
        (
            &["bootstrap", "--state-dir", state_dir, "--instance-ip", "10.0.0.5"],
            Some(bad_table),
            64,
            r#"probers["/app-health/app/livez"].httpGet.port = "http": must be an integer"#,
        ),
        (&["bootstrap", "--state-dir", state_dir, "--admin", "10.0.0.5:15000"], None, 64, "--admin"),
        (&["bootstrap", "--state-dir", state_dir, "--envoy-version", "1.35"], None, 64, "1.36"),
        (&["run"], None, 64, "--no-envoy"),
        (&["run", "--no-envoy", "--ready-address", &taken.1], None, 71, &taken.1),
        (&["wait", "--url", "https://localhost/"], None, 64, "https"),
    ];
    for (arguments, table, code, words) in rows {
        let environment: Vec<_> = table.map(|table| ("ISTIO_KUBE_APP_PROBERS", table)).into_iter().collect();
        let outcome = agent::run(arguments, &environment).await;
        assert_eq!(outcome.code, Some(code), "{arguments:?}: {outcome:?}");
        assert!(outcome.stderr.contains(words), "{arguments:?}: {outcome:?}");
        assert!(!untouched.exists(), "{arguments:?} wrote something");
    }
}
