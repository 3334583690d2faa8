//! Tests of the agent's HTTP and HTTPS probes. Each row has an application and the expected
//! verdict.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use kit::app::grpc::{GrpcAnswer, GrpcApp};
use kit::app::tls::{self, ClientCertificate, Tls, Versions};
use kit::app::{App, Step, answer};
use kit::net;
use kit::wait;
use serde_json::json;

use crate::prober_support::{AgentConfig, OK, accepted, single_failure_probe, verdict_and_connections};

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
    const BROKEN: &str = "BadResponse: the connection closed before the response was complete";
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
        (told("garbage", "hello there\r\n\r\n"), "BadResponse: not a valid HTTP response"),
        (steps("closed", vec![Step::Read]), BROKEN),
        (steps("reset", vec![Step::Read, Step::Reset]), BROKEN),
        (steps("cut", answer("HTTP/1.1 200 OK\r\nX-A")), BROKEN),
        (steps("hangs", vec![Step::Read, Step::Hang]), "Timeout: no response within 1 s"),
        (
            steps("drips", vec![Step::Read, Step::Drip(OK.into(), Duration::from_millis(200))]),
            "Timeout: no response within 1 s",
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
        (steps("large-head", answer(head(9 << 20))), "Healthy"),
        (steps("too-large-head", answer(head(11 << 20))), "BadResponse: not a valid HTTP response"),
    ];
    let checks = rows.into_iter().map(async |((name, steps), expected)| {
        let found = verdict_and_connections(&format!("vm-http-{name}"), "httpGet", steps, expected).await;
        assert_eq!(found, (expected.to_owned(), 1), "{name}");
    });
    join_all(checks).await;
}

#[tokio::test]
async fn requests_and_redirects() {
    let plan = AgentConfig::new("vm-redirects");
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
        ("/loop", "BadResponse: redirect loop, more than 10 requests", 10),
        ("/to-end", "HttpStatus: HTTP status 500", 2),
    ] {
        let mut probe = single_failure_probe(
            "httpGet",
            json!({"port": app.port(), "path": path, "host": ip, "httpHeaders": [
            {"name": "X-Api", "value": "secret"}, {"name": "hOST", "value": "payments.local"}]}),
        );
        probe["periodSeconds"] = 60.into();
        let vm = AgentConfig::new(&format!("vm-redirect-{}", &path[1..])).start(&probe);
        assert_eq!(vm.verdict().await, expected, "{path}");
        let seen = app.seen();
        assert_eq!(seen.len() - connections, requests, "{path}");
        for seen in &seen[connections..] {
            let agent = format!("User-Agent: app-health-agent/{}", env!("CARGO_PKG_VERSION"));
            let lines = ["Host: payments.local", &agent, "Accept: */*", "X-Api: secret", "Connection: close"];
            assert_eq!(seen.headers(), lines, "{path}");
        }
        connections = seen.len();
        wait::until("the probe in the log", async || vm.sidecar.log().contains("\"failureThreshold\":1"))
            .await;
        let log = vm.sidecar.log();
        assert!(!log.contains("secret"), "{log}");
        assert!(!vm.view().await.to_string().contains("secret"));
    }
    assert_eq!(accepted(&elsewhere).await, [], "a redirect to another origin must not be followed");
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
            "Tls: the application requires a client certificate, and probes do not send one",
        ),
        (
            Tls { client_certificate: ClientCertificate::Needed, versions: Versions::Only12, ..tls() },
            "Tls: the application requires a client certificate, and probes do not send one",
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
    let checks = rows.into_iter().map(async |(port, expected)| {
        let fields = json!({"port": port, "scheme": "HTTPS", "host": ip});
        let vm =
            AgentConfig::new(&format!("vm-https-{port}")).start(&single_failure_probe("httpGet", fields));
        assert_eq!(vm.verdict().await, expected);
    });
    join_all(checks).await;
}
