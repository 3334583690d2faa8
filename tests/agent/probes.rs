//! Tests of probes that the agent answers itself, and that all forms answer alike.

use std::net::{IpAddr, SocketAddr};
use std::process::Stdio;

use kit::app::{App, Step, answer};
use kit::caller::{self, Answer};
use kit::envoy::{self, Version};
use kit::load::{ask, kubelet_request};
use kit::net;
use kit::oracle::{self, Oracle, ProbeResult, Question};
use kit::pod::{self, Pod, with_long_timeouts};
use kit::reserved_port::ReservedPort;
use kit::sidecar::{Builder, Sidecar};
use kit::wait;
use nix::sys::signal::{Signal, kill};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use envoy_bootstrap::bootstrap::{Bootstrap, FilterCode};

const AGENT: [&str; 2] = ["--probes", "agent"];

fn ok() -> Vec<Step> {
    answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
}

async fn probe_from(source: IpAddr, listener: SocketAddr, path: &'static str) -> Answer {
    ask(Some(source), listener, &kubelet_request(listener, path)).await
}

/// Starts an agent that answers these probes, without an Envoy.
async fn alone(builder: Builder, table: &Value) -> Sidecar {
    let admin = SocketAddr::new(builder.ip, 15000);
    let builder = builder.args(&AGENT).env("ISTIO_KUBE_APP_PROBERS", &table.to_string());
    let sidecar = builder.watching(admin).start_plain();
    sidecar.until(503, "envoy not started").await;
    sidecar
}

/// A TLS server of Go, which may be restricted to what only Go's client accepts.
struct TlsServer {
    address: SocketAddr,
    _child: Child,
}

impl TlsServer {
    async fn start(ip: IpAddr, [version, suite, curve, key]: [&str; 4]) -> Self {
        let reserved = ReservedPort::new(ip);
        let address = reserved.address;
        let mut command = Command::new(oracle::binary());
        command.args(["tls-server", &address.to_string(), version, suite, curve, key]);
        let mut child = command.stdout(Stdio::null()).kill_on_drop(true).spawn().expect("the server starts");
        wait::until("the server listens", async || {
            assert_eq!(child.try_wait().expect("a child"), None, "the server exits");
            TcpStream::connect(address).await.is_ok()
        })
        .await;
        Self { address, _child: child }
    }
}

/// The differences in TLS that docs/answers.md names, and servers at their limits that both accept.
#[tokio::test]
async fn tls_servers_that_only_gos_client_accepts() {
    let builder = Builder::bare("probes-tls");
    let oracle = Oracle::start();
    let (mut servers, mut table) = (Vec::new(), serde_json::Map::new());
    let rows = [
        (["1.2", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "any", "RSA"], 200),
        (["1.2", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "P-256", "P-256"], 200),
        (["1.2", "any", "X25519", "Ed25519"], 200),
        (["1.3", "any", "P-256", "P-521"], 200),
        (["1.2", "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "any", "RSA"], 525),
        (["1.2", "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA", "any", "P-256"], 525),
        (["1.3", "any", "P-521", "RSA"], 525),
        (["1.2", "any", "P-521", "RSA"], 525),
    ];
    for (number, (restrictions, _)) in rows.iter().enumerate() {
        let server = TlsServer::start(builder.ip, *restrictions).await;
        let get = json!({"port": server.address.port(), "scheme": "HTTPS"});
        table.insert(format!("/app-health/s{number}/readyz"), json!({"httpGet": get, "timeoutSeconds": 60}));
        servers.push(server);
    }
    let sidecar = alone(builder, &table.into()).await;
    let listener = envoy::probe_listener(sidecar.ip);
    for (number, (restrictions, status)) in rows.iter().enumerate() {
        let get = json!({"httpGet": {"port": servers[number].address.port(), "scheme": "HTTPS"}});
        let direct = oracle.ask(Question::once(sidecar.ip, wait::timeout(), get)).await.expect("an answer");
        assert_eq!(direct.result, ProbeResult::Success, "{restrictions:?}: {}", direct.output);
        let answer = caller::probe(listener, &format!("/app-health/s{number}/readyz")).await;
        assert_eq!(answer.status, *status, "{restrictions:?}: {}", answer.text());
    }
}

/// A liveness probe must not restart an application because of its Envoy.
#[tokio::test]
async fn an_envoy_that_hangs_fails_no_probe() {
    let builder = Builder::new("probes-hang");
    let app = App::start(builder.ip, ok()).await;
    let table = json!({"/app-health/app/livez": {"httpGet": {"port": app.port()}, "timeoutSeconds": 60}});
    let sidecar = builder.args(&AGENT).env("ISTIO_KUBE_APP_PROBERS", &table.to_string()).start();
    sidecar.until(200, "ready").await;
    let shown = sidecar.local("GET /debug/bootstrap", "Host: localhost\r\n").await.text();
    assert!(!shown.contains("app-health/app/livez") && !shown.contains("app_health_http"), "{shown}");
    let listener = envoy::probe_listener(sidecar.ip);
    let envoy = sidecar.envoy_pid();
    kill(envoy, Signal::SIGSTOP).expect("Envoy runs");
    for _ in 0..60 {
        assert_eq!(caller::probe(listener, "/app-health/app/livez").await.status, 200);
    }
    kill(envoy, Signal::SIGCONT).expect("Envoy runs");
    sidecar.until(200, "ready").await;
}

#[tokio::test]
async fn the_status_port_serves_probes_metrics_and_readiness_only() {
    let builder = Builder::bare("probes-port");
    let app = App::start(builder.ip, ok()).await;
    let sidecar =
        alone(builder, &json!({"/app-health/app/readyz": {"tcpSocket": {"port": app.port()}}})).await;
    let listener = envoy::probe_listener(sidecar.ip);
    for (path, status, text) in [
        ("/app-health/app/readyz", 200, ""),
        ("/app-health/app/readyz?x", 200, ""),
        ("/app-health/app/readyz/", 404, "unknown_probe: "),
        ("/app-health/app/livez", 404, "unknown_probe: "),
        ("/app-lifecycle/app/readyz", 404, "unknown_probe: "),
        ("/healthz/ready", 503, "envoy not started"),
        ("/stats/prometheus", 200, "# "),
        ("/quitquitquit", 404, "not found"),
        ("/metrics", 404, "not found"),
        ("/", 404, "not found"),
    ] {
        let answer = caller::probe(listener, path).await;
        assert_eq!(answer.status, status, "{path}");
        assert!(
            answer.text().starts_with(text) && (text.is_empty() == answer.body.is_empty()),
            "{path} {answer:?}"
        );
    }
    assert_eq!(sidecar.metric("app_health_unknown_probes_total").await, 3.0);
}

#[tokio::test]
async fn clients_and_their_requests() {
    let builder = Builder::bare("probes-clients");
    let app = App::start(builder.ip, ok()).await;
    let hanging = App::start(builder.ip, vec![Step::Hang]).await;
    let get = |app: &App| json!({"httpGet": {"port": app.port()}, "timeoutSeconds": 60});
    let table = json!({
        "/app-health/app/readyz": get(&app),
        "/app-health/hanging/readyz": get(&hanging),
        "/app-lifecycle/app/prestopz": get(&app),
    });
    let (node, stranger) = (net::loopback(), net::loopback());
    let sidecar = alone(builder.args(&["--node-ip", &node.to_string()]), &table).await;
    let listener = envoy::probe_listener(sidecar.ip);
    let send = async |request: &str| caller::send(listener, request.as_bytes()).await;
    for (request, status) in [
        ("POST /app-health/app/readyz HTTP/1.1\r\nHost: a\r\n\r\n", 405),
        ("GET /app-health/app/readyz HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx", 400),
        ("GET /app-health/app/readyz HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", 200),
        ("GET /app-health/app/readyz HTTP/1.1\r\nHost: a\r\nContent-Type: application/GRPC+x\r\n\r\n", 0),
        ("GET /app-health/none/readyz HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc\r\n\r\n", 0),
        ("nonsense\r\n\r\n", 400),
    ] {
        assert_eq!(send(request).await.status, status, "{request}");
    }
    // A hook is for the node and for loopback.
    let from = async |ip: IpAddr| probe_from(ip, listener, "/app-lifecycle/app/prestopz").await.status;
    assert_eq!((from(node).await, from(stranger).await), (200, 0));
    let refused = format!("hook app/prestopz: forbidden to {stranger}, see --allow-from");
    wait::until_or(|| format!("{refused}\n{}", sidecar.log()), async || sidecar.log().contains(&refused))
        .await;

    // Eight probes of strangers, and two more of each; the node has its own.
    let probe = |ip| probe_from(ip, listener, "/app-health/hanging/readyz");
    let mut waiting: Vec<_> = Vec::new();
    for _ in 0..10 {
        waiting.push(tokio::spawn(probe(stranger)));
    }
    hanging.seen_at_least(10).await;
    let busy = probe(stranger).await;
    assert_eq!((busy.status, busy.word().as_str()), (429, "busy"));
    waiting.push(tokio::spawn(probe(node)));
    hanging.seen_at_least(11).await;
    waiting.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn only_allowed_clients_connect() {
    let builder = Builder::bare("probes-allowed");
    let app = App::start(builder.ip, ok()).await;
    let (allowed, stranger) = (net::loopback(), net::loopback());
    let builder = builder.args(&["--allow-from", &allowed.to_string()]);
    let sidecar =
        alone(builder, &json!({"/app-health/app/readyz": {"tcpSocket": {"port": app.port()}}})).await;
    let listener = envoy::probe_listener(sidecar.ip);
    let from = async |ip: IpAddr| probe_from(ip, listener, "/app-health/app/readyz").await.status;
    assert_eq!((from(allowed).await, from(stranger).await), (200, 0));
    let closed = "app_health_agent_connections_closed_total{server=\"probes\",reason=\"forbidden\"}";
    assert_eq!(sidecar.metric(closed).await, 1.0);
}

#[tokio::test]
async fn flags_that_exclude_each_other() {
    for (flags, text) in [
        (&["--filter", "native"][..], "--probes = agent and --filter are mutually exclusive"),
        (&["--reuse-connections"], "--probes = agent and --reuse-connections are mutually exclusive"),
        (&["--probe-address", "127.0.0.1:15021"], "overlaps with"),
    ] {
        let all = [&["run", "--no-envoy", "--probes", "agent"][..], flags].concat();
        let outcome = kit::agent::run(&all, &[]).await;
        assert_eq!(outcome.code, Some(64), "{outcome:?}");
        assert!(outcome.stderr.contains(text), "{outcome:?}");
    }
    let table = ("ISTIO_KUBE_APP_PROBERS", r#"{"/app-health/a/livez": {"tcpSocket": {"port": 0}}}"#);
    let outcome = kit::agent::run(&["run", "--no-envoy", "--probes", "agent"], &[table]).await;
    assert!(
        outcome.stderr.contains(r#"probers["/app-health/a/livez"].tcpSocket.port = 0: must be 1 to 65535"#),
        "{outcome:?}"
    );
}

/// The lines about probes in Prometheus' format, sorted.
fn about_probes(metrics: &str) -> Vec<String> {
    let is_probe = |line: &&str| {
        ["app_health_probe", "app_health_unknown", "app_health_config"]
            .iter()
            .any(|name| line.starts_with(name))
    };
    let mut lines: Vec<String> = metrics.lines().filter(is_probe).map(sorted_labels).collect();
    lines.sort_unstable();
    lines
}

/// Returns the sample with its labels in alphabetical order.
fn sorted_labels(line: &str) -> String {
    let Some((name, rest)) = line.split_once('{') else { return line.to_owned() };
    let (labels, value) = rest.rsplit_once('}').expect("labels end");
    let mut labels: Vec<&str> = labels.split(',').filter(|label| !label.is_empty()).collect();
    labels.sort_unstable();
    if labels.is_empty() {
        format!("{name}{value}")
    } else {
        format!("{name}{{{}}}{value}", labels.join(","))
    }
}

/// The answers to the same probes, and the metrics after them, are equal in all forms.
#[tokio::test]
async fn all_forms_answer_alike() {
    let ip = net::loopback();
    let serve = async |text: &str| App::start(ip, answer(text)).await;
    let good = serve("HTTP/1.1 204 No\r\n\r\n").await;
    let bad = serve("HTTP/1.1 503 No\r\nContent-Length: 6\r\n\r\nsecret").await;
    let moved = serve("HTTP/1.1 302 No\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n").await;
    let odd = serve("SSH-2.0-OpenSSH\r\n\r\n").await;
    let closed = App::start(ip, vec![Step::Read]).await;
    let slow = App::start(ip, vec![Step::Hang]).await;
    let get = |port: u16| json!({"httpGet": {"port": port}});
    let mut late = get(slow.port());
    late["timeoutSeconds"] = 1.into();
    let plaintext = App::start(ip, vec![Step::Write(b"HTTP/1.1 400 No\r\n\r\n".to_vec())]).await;
    let mut secure = get(plaintext.port());
    secure["httpGet"]["scheme"] = "HTTPS".into();
    let table = with_long_timeouts(json!({
        "/app-health/good/readyz": get(good.port()),
        "/app-health/good/livez": {"tcpSocket": {"port": good.port()}},
        "/app-health/bad/readyz": get(bad.port()),
        "/app-health/moved/readyz": get(moved.port()),
        "/app-health/odd/readyz": get(odd.port()),
        "/app-health/secure/readyz": secure,
        "/app-health/closed/readyz": get(closed.port()),
        "/app-health/refused/readyz": get(1),
        "/app-health/refused/livez": {"tcpSocket": {"port": 1}},
        "/app-health/late/readyz": late,
        "/app-lifecycle/good/prestopz": get(good.port()),
        "/app-lifecycle/refused/poststartz": get(1),
    }));
    let paths: Vec<String> = table.as_object().expect("a table").keys().cloned().collect();
    let ask = async |listener: SocketAddr| {
        let mut answers = Vec::new();
        for path in paths.iter().map(String::as_str).chain(["/app-health/none/readyz"]) {
            let answer = caller::probe(listener, path).await;
            answers.push(format!("{path}: {} {}", answer.status, answer.text()));
        }
        answers
    };
    let mut forms = Vec::new();
    for (name, filter) in
        [("wasm", FilterCode::File(pod::wasm())), ("native", FilterCode::Module(pod::module()))]
    {
        let name = format!("forms-{name}");
        let bootstrap = Bootstrap { filter: Some(filter), ..Pod::bootstrap(&name, ip, &table) };
        let pod = Pod::with(&name, Version::Newest, &bootstrap).await;
        let answers = ask(pod.listener).await;
        let metrics = pod.envoy.admin("/stats/prometheus?filter=app_health_").await.expect("an answer");
        forms.push((answers, about_probes(&metrics)));
        pod.envoy.stop().await;
    }
    let builder = Builder::bare_at("forms-agent", ip);
    let sidecar = alone(builder, &table).await;
    let answers = ask(envoy::probe_listener(ip)).await;
    let metrics = sidecar.local("GET /metrics", "Host: localhost\r\n").await.text();
    let agent = (answers, about_probes(&metrics));
    let (wasm, native) = (&forms[0], &forms[1]);
    assert_eq!(wasm.0, native.0);
    assert_eq!(native.0, agent.0);
    assert_eq!(native.1, agent.1);
    // The wasm form has no series for rejected configurations before the first one.
    let without_rejected: Vec<_> = native.1.iter().filter(|line| !line.contains("config_rejected")).collect();
    assert_eq!(
        wasm.1.iter().filter(|line| !line.contains("config_rejected")).collect::<Vec<_>>(),
        without_rejected
    );
}
