//! The agent without a kubelet: it probes by itself. Each row is an application, a probe, and what the agent says of it.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tests::app::grpc::{GrpcAnswer, GrpcApp};
use tests::app::tls::{self, ClientCertificate, Tls, Versions};
use tests::app::{App, Step, answer};
use tests::sidecar::{Builder, Sidecar};
use tests::{caller, net};
use tokio::task::JoinSet;

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
/// Nothing takes longer than this.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(20);

/// An agent that probes.
pub(crate) struct Vm {
    pub(crate) sidecar: Sidecar,
    pub(crate) file: PathBuf,
}

/// An agent to be started, and where its application has to be.
pub(crate) struct Plan {
    builder: Builder,
    pub(crate) ip: IpAddr,
}

impl Plan {
    /// Without an Envoy. `name` is the test's.
    pub(crate) fn new(name: &str) -> Self {
        let builder = Builder::bare(name);
        let ip = builder.ip;
        // A port of its own, on which there is nobody.
        let builder = builder.watching(SocketAddr::new(net::loopback(), 15000));
        Self { builder: builder.args(&["--envoy-readiness", "off"]), ip }
    }

    /// More flags.
    pub(crate) fn args(mut self, args: &[&str]) -> Self {
        self.builder = self.builder.args(args);
        self
    }

    /// With this address of the machine.
    pub(crate) fn targeting(mut self, ip: IpAddr) -> Self {
        self.builder = self.builder.instance_ip(ip);
        self
    }

    /// Starts it with this `spec.probe`.
    pub(crate) fn start(self, probe: &Value) -> Vm {
        let file = self.builder.folder.join("group.yaml");
        write(&file, probe);
        let flag = file.to_str().expect("a path").to_owned();
        Vm { sidecar: self.builder.args(&["--workload-group", &flag]).start_plain(), file }
    }
}

/// Writes a WorkloadGroup as its user would: a new file in the place of the old one.
pub(crate) fn write(file: &PathBuf, probe: &Value) {
    let document = json!({
        "apiVersion": "networking.istio.io/v1", "kind": "WorkloadGroup", "metadata": {"name": "payments"}, "spec": {"probe": probe},
    });
    let new = file.with_extension("new");
    std::fs::write(&new, document.to_string()).expect("a writable folder");
    std::fs::rename(&new, file).expect("a writable folder");
}

impl Vm {
    /// `GET /debug/vm-health`.
    pub(crate) async fn view(&self) -> Value {
        let answer = caller::get(self.sidecar.local_address(), "/debug/vm-health", &[]).await;
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }

    /// Asks until `is_there`.
    pub(crate) async fn until(&self, what: &str, is_there: impl Fn(&Value) -> bool) -> Value {
        let mut view = Value::Null;
        for _ in 0..PATIENCE.as_millis() / PAUSE.as_millis() {
            view = self.view().await;
            if is_there(&view) {
                return view;
            }
            tokio::time::sleep(PAUSE).await;
        }
        panic!("{what}: {view:#}\n{}", self.sidecar.log());
    }

    /// The first verdict: reason and message, or `Healthy`.
    pub(crate) async fn verdict(&self) -> String {
        let view =
            self.until("no verdict", |view| !matches!(view["state"].as_str(), None | Some("Unknown"))).await;
        let word = |name: &str| view[name].as_str().unwrap_or_default().to_owned();
        if word("state") == "Healthy" {
            "Healthy".to_owned()
        } else {
            format!("{}: {}", word("reason"), word("message"))
        }
    }
}

/// A probe whose first outcome decides, and which a busy machine may keep waiting.
pub(crate) fn quick(handler: &str, fields: Value) -> Value {
    json!({ handler: fields, "periodSeconds": 1, "timeoutSeconds": 15, "failureThreshold": 1 })
}

/// What an agent says of an application that does this with each connection, and how often it was asked.
/// `expected` says whether a timeout is waited for.
async fn asked(name: &str, handler: &str, steps: Vec<Step>, expected: &str) -> (String, usize) {
    let plan = Plan::new(name);
    let app = App::start(plan.ip, steps).await;
    let mut probe = quick(handler, json!({ "port": app.port() }));
    probe["periodSeconds"] = 60.into();
    if expected.starts_with("Timeout") {
        probe["timeoutSeconds"] = 1.into();
    }
    let verdict = plan.start(&probe).verdict().await;
    (verdict, app.seen().len())
}

fn head(bytes: usize) -> Vec<u8> {
    let mut head = b"HTTP/1.1 200 OK\r\n".to_vec();
    while head.len() + 102 < bytes {
        head.extend_from_slice(format!("X-A: {}\r\n", "a".repeat(90)).as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    head
}

#[tokio::test]
async fn http() {
    let status = |status: u16| {
        (format!("status-{status}"), answer(format!("HTTP/1.1 {status} X\r\nContent-Length: 9\r\n\r\n")))
    };
    let told = |name: &str, bytes: &str| (name.to_owned(), answer(bytes));
    let steps = |name: &str, steps: Vec<Step>| (name.to_owned(), steps);
    const BROKEN: &str = "BadResponse: the connection ended without a whole answer";
    let rows = [
        (status(200), "Healthy"),
        (status(204), "Healthy"),
        (status(304), "Healthy"),
        (status(399), "Healthy"),
        (status(400), "HttpStatus: HTTP status 400"),
        (status(503), "HttpStatus: HTTP status 503"),
        (status(101), "HttpStatus: HTTP status 101"),
        (
            told(
                "interim",
                "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
            ),
            "Healthy",
        ),
        (
            told("interim-bad", "HTTP/1.1 103 Hints\r\n\r\nHTTP/1.1 500 X\r\n\r\n"),
            "HttpStatus: HTTP status 500",
        ),
        (told("no-location", "HTTP/1.1 302 Found\r\n\r\n"), "Healthy"),
        (told("garbage", "hello there\r\n\r\n"), "BadResponse: not a valid HTTP answer"),
        (steps("closed", vec![Step::Read]), BROKEN),
        (steps("reset", vec![Step::Read, Step::Reset]), BROKEN),
        (steps("cut", answer("HTTP/1.1 200 OK\r\nX-A")), BROKEN),
        (steps("hangs", vec![Step::Read, Step::Hang]), "Timeout: no answer within 1 s"),
        (
            steps("drips", vec![Step::Read, Step::Drip(OK.into(), Duration::from_millis(200))]),
            "Timeout: no answer within 1 s",
        ),
        (
            steps(
                "endless",
                vec![Step::Read, Step::Write(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()), Step::WriteForEver],
            ),
            "Healthy",
        ),
        (
            steps(
                "no-body",
                vec![
                    Step::Read,
                    Step::Write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n".to_vec()),
                    Step::Hang,
                ],
            ),
            "Healthy",
        ),
        (steps("large-head", answer(head(60 << 10))), "Healthy"),
        (steps("too-large-head", answer(head(70 << 10))), "BadResponse: headers of more than 64 KiB"),
    ];
    let mut all = JoinSet::new();
    for ((name, steps), expected) in rows {
        all.spawn(async move {
            let found = asked(&format!("vm-http-{name}"), "httpGet", steps, expected).await;
            assert_eq!(found, (expected.to_owned(), 1), "{name}");
        });
    }
    all.join_all().await;
}

#[tokio::test]
async fn requests_and_redirects() {
    let plan = Plan::new("vm-redirects");
    let elsewhere = App::start(net::loopback(), answer(OK)).await;
    let other = elsewhere.address;
    let ip = plan.ip;
    let app = App::routes(SocketAddr::new(ip, 0), None, move |path| {
        let to = |location: String| answer(format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\n\r\n"));
        match path.strip_prefix('/').unwrap_or_default() {
            "elsewhere" => to(format!("http://{other}/")),
            "https" => to(format!("https://{ip}/")),
            "loop" => to("/loop".to_owned()),
            "9" => answer(OK),
            "end" => answer("HTTP/1.1 500 X\r\n\r\n"),
            "to-end" => to("/end".to_owned()),
            hop => to(format!("/{}", hop.parse::<u32>().map_or(0, |hop| hop + 1))),
        }
    })
    .await;
    let mut connections = 0;
    for (path, expected, requests) in [
        ("/elsewhere", "Healthy", 1),
        ("/https", "Healthy", 1),
        ("/0", "Healthy", 10),
        ("/loop", "BadResponse: more than 10 requests, redirects in a circle", 10),
        ("/to-end", "HttpStatus: HTTP status 500", 2),
    ] {
        let mut probe = quick(
            "httpGet",
            json!({"port": app.port(), "path": path, "host": ip, "httpHeaders": [
            {"name": "X-Api", "value": "secret"}, {"name": "hOST", "value": "payments.local"}]}),
        );
        probe["periodSeconds"] = 60.into();
        let vm = Plan::new(&format!("vm-redirect-{}", &path[1..])).start(&probe);
        assert_eq!(vm.verdict().await, expected, "{path}");
        let seen = app.seen();
        assert_eq!(seen.len() - connections, requests, "{path}");
        for seen in &seen[connections..] {
            let agent = format!("user-agent: app-health-agent/{}", env!("CARGO_PKG_VERSION"));
            let lines = ["host: payments.local", "x-api: secret", &agent, "accept: */*", "connection: close"];
            assert_eq!(seen.headers(), lines, "{path}");
        }
        connections = seen.len();
        let log = vm.sidecar.log();
        assert!(log.contains("\"failureThreshold\":1") && !log.contains("secret"), "{log}");
        assert!(!vm.view().await.to_string().contains("secret"));
    }
    assert_eq!(elsewhere.seen().len(), 0, "another origin is not dialled");
}

#[tokio::test]
async fn https() {
    tls::install_provider();
    let ip = net::loopback();
    let tls = Tls::default;
    let refusal = Step::Write(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec());
    let plain = App::start(ip, vec![refusal, Step::Hang]).await;
    let mut rows = vec![(plain.port(), "Tls: the application does not speak TLS".to_owned())];
    let mut apps = vec![plain];
    for (look, expected) in [
        (tls(), "Healthy"),
        (Tls { expired: true, ..tls() }, "Healthy"),
        (Tls { name: "other.example".into(), ..tls() }, "Healthy"),
        (Tls { versions: Versions::Only12, ..tls() }, "Healthy"),
        (Tls { versions: Versions::Only13, ..tls() }, "Healthy"),
        (Tls::with_alpn(&["http/1.1"]), "Healthy"),
        (Tls { client_certificate: ClientCertificate::Asked, ..tls() }, "Healthy"),
        (
            Tls { client_certificate: ClientCertificate::Needed, versions: Versions::Only13, ..tls() },
            "Tls: the application wants a client certificate, and a probe has none",
        ),
        (
            Tls { client_certificate: ClientCertificate::Needed, versions: Versions::Only12, ..tls() },
            "Tls: the application wants a client certificate, and a probe has none",
        ),
        (
            Tls::with_alpn(&["other"]),
            "Tls: TLS handshake failed: the application sent the alert NoApplicationProtocol",
        ),
    ] {
        let app = App::start_tls(ip, look.acceptor(), answer(OK)).await;
        rows.push((app.port(), expected.to_owned()));
        apps.push(app);
    }
    let mut h2 = Vec::new();
    for (status, expected) in [(200, "Healthy"), (503, "HttpStatus: HTTP status 503")] {
        let answer = GrpcAnswer { status, headers: Vec::new(), body: Vec::new(), trailers: Vec::new() };
        let app = GrpcApp::scripted(ip, Some(Tls::with_alpn(&["h2"]).acceptor()), answer).await;
        rows.push((app.port(), expected.to_owned()));
        h2.push(app);
    }
    let mut all = JoinSet::new();
    for (port, expected) in rows {
        all.spawn(async move {
            let fields = json!({"port": port, "scheme": "HTTPS", "host": ip});
            let found =
                Plan::new(&format!("vm-https-{port}")).start(&quick("httpGet", fields)).verdict().await;
            assert_eq!(found, expected);
        });
    }
    all.join_all().await;
}

#[tokio::test]
async fn tcp_and_grpc() {
    const BROKEN: &str = "BadResponse: no health message, or a broken one";
    let ip = net::loopback();
    let answers = [
        (GrpcAnswer::serving(1), "Healthy"),
        (GrpcAnswer::serving(2), "GrpcNotServing: gRPC health status NOT_SERVING"),
        (GrpcAnswer::serving(0), "GrpcNotServing: gRPC health status UNKNOWN"),
        (GrpcAnswer::serving(3), "GrpcNotServing: gRPC health status SERVICE_UNKNOWN"),
        (GrpcAnswer::trailers_only("12"), "GrpcStatus: gRPC status 12 UNIMPLEMENTED"),
        (GrpcAnswer::trailers_only("14"), "GrpcStatus: gRPC status 14 UNAVAILABLE"),
        (GrpcAnswer::trailers_only("0"), BROKEN),
        (GrpcAnswer { trailers: Vec::new(), ..GrpcAnswer::serving(1) }, BROKEN),
        (
            GrpcAnswer { headers: vec![("content-type", "text/html")], ..GrpcAnswer::serving(1) },
            "BadResponse: not an answer of gRPC",
        ),
    ];
    let mut all = JoinSet::new();
    for (index, (answer, expected)) in answers.into_iter().enumerate() {
        all.spawn(async move {
            let plan = Plan::new(&format!("vm-grpc-{index}"));
            let app = GrpcApp::scripted(plan.ip, None, answer).await;
            let vm = plan.start(&quick("grpc", json!({"port": app.port(), "service": "payments"})));
            assert_eq!(vm.verdict().await, expected);
        });
    }
    all.join_all().await;
    let closed = App::start(ip, Vec::new()).await.address;
    for (name, handler, steps, expected) in [
        ("tcp", "tcpSocket", Vec::new(), "Healthy"),
        ("tcp-reset", "tcpSocket", vec![Step::Reset], "Healthy"),
        (
            "http-reset",
            "httpGet",
            vec![Step::Reset],
            "BadResponse: the connection ended without a whole answer",
        ),
        ("grpc-hangs", "grpc", vec![Step::Hang], "Timeout: no answer within 1 s"),
        (
            "grpc-http1",
            "grpc",
            answer("HTTP/1.1 400 Bad Request\r\n\r\n"),
            "BadResponse: the connection ended without a whole answer",
        ),
        ("grpc-closes", "grpc", Vec::new(), "BadResponse: the connection ended without a whole answer"),
    ] {
        assert_eq!(asked(&format!("vm-{name}"), handler, steps, expected).await.0, expected, "{name}");
    }
    for handler in ["tcpSocket", "httpGet", "grpc"] {
        let plan = Plan::new(&format!("vm-closed-{handler}"));
        let address = SocketAddr::new(plan.ip, closed.port());
        let vm = plan.start(&quick(handler, json!({"port": closed.port()})));
        assert_eq!(
            vm.verdict().await,
            format!("ConnectionRefused: {address}: connection refused"),
            "{handler}"
        );
    }
}

#[tokio::test]
async fn only_this_machine() {
    for (fields, flags, expected) in [
        (
            json!({"port": 80, "host": "192.0.2.1"}),
            vec![],
            "TargetNotLocal: 192.0.2.1, which is no address of this machine; --allow-remote-probes lets it be",
        ),
        (
            json!({"port": 80, "host": "no.such.name.invalid"}),
            vec!["--allow-remote-probes"],
            "CannotRun: cannot look up no.such.name.invalid: ",
        ),
    ] {
        let vm = Plan::new("vm-target").args(&flags).start(&quick("tcpSocket", fields.clone()));
        let found = vm.verdict().await;
        // A machine without a resolver takes its time.
        let is_slow = found == "Timeout: no answer within 15 s" && fields["host"] != "192.0.2.1";
        assert!(found.starts_with(expected) || is_slow, "{found}");
    }
}
