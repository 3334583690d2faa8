//! Tests of the test application that runs in Pods, behind a real Envoy: its switches, and its
//! record of the requests that it received.

use std::net::{IpAddr, SocketAddr};
use std::process::{ExitStatus, Stdio};

use kit::agent;
use kit::caller;
use kit::net;
use kit::pod::Pod;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

const CONTROL: u16 = 9900;

/// The running program and the lines that it prints.
struct Program {
    ip: IpAddr,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start(arguments: &[&str]) -> Self {
        let ip = net::loopback();
        let mut command = Command::new(agent::binary_of("application"));
        command.args(["--ip", &ip.to_string()]).args(arguments).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("the program starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Self { ip, child, lines }
    }

    async fn line(&mut self) -> String {
        self.lines.next_line().await.expect("a pipe").expect("the program runs")
    }

    async fn control(&self, path: &str) -> caller::Answer {
        let request = format!("POST {path} HTTP/1.1\r\nHost: application\r\nContent-Length: 0\r\n\r\n");
        caller::send(SocketAddr::new(self.ip, CONTROL), request.as_bytes()).await
    }

    async fn terminate(mut self) -> ExitStatus {
        let id = i32::try_from(self.child.id().expect("the process exists")).expect("a process id");
        kill(Pid::from_raw(id), Signal::SIGTERM).expect("our child");
        self.child.wait().await.expect("our child")
    }
}

/// The status that the filter returns for each protocol while the application serves, fails and
/// hangs. A TCP application that hangs still accepts connections, so its probe succeeds.
const VERDICTS: [(&str, [u16; 3]); 4] = [
    ("http", [200, 503, 504]),
    ("https", [200, 503, 504]),
    ("tcp", [200, 502, 200]),
    ("grpc", [200, 521, 504]),
];

#[tokio::test]
async fn the_application_follows_its_switches() {
    let mut program = Program::start(&[]);
    assert_eq!(program.line().await, "application: started");
    assert_eq!(program.line().await, "application: listening");
    let mut table = json!({
        "/app-health/http/readyz": {"httpGet": {"port": 8080, "path": "/ready"}},
        "/app-health/https/readyz": {"httpGet": {"port": 8443, "scheme": "HTTPS"}},
        "/app-health/tcp/readyz": {"tcpSocket": {"port": 5432}},
        "/app-health/grpc/readyz": {"grpc": {"port": 9000}},
    });
    // Expected timeouts come soon, while nothing else times out on a busy machine.
    for protocol in ["http", "https", "grpc"] {
        let mut prober = table[format!("/app-health/{protocol}/readyz")].clone();
        prober["timeoutSeconds"] = 1.into();
        table[format!("/app-health/{protocol}-hanging/readyz")] = prober;
    }
    let pod = Pod::start("application", program.ip, &table).await;
    for (protocol, verdicts) in VERDICTS {
        for (behavior, verdict) in
            ["serving", "failing", "hanging", "serving"].iter().zip(verdicts.into_iter().chain([200]))
        {
            assert_eq!(program.control(&format!("/{protocol}/{behavior}")).await.status, 200);
            assert_eq!(program.line().await, format!("application: {protocol} is {behavior}"));
            let container = if verdict == 504 { format!("{protocol}-hanging") } else { protocol.to_owned() };
            assert_eq!(pod.probe(&container).await.status, verdict, "{protocol} {behavior}");
        }
    }
    pod.envoy.stop().await;
    for wrong in ["/", "/http", "/http/well", "/udp/serving"] {
        assert_eq!(program.control(wrong).await.status, 404, "{wrong}");
    }
    assert!(program.terminate().await.success());
}

#[tokio::test]
async fn the_application_starts_late_and_records_requests() {
    let mut program = Program::start(&["--start-after", "600s"]);
    assert_eq!(program.line().await, "application: started");
    let http = SocketAddr::new(program.ip, 8080);
    assert_eq!(caller::get(http, "/early", &[]).await.status, 0, "the port is closed");
    assert_eq!(program.control("/listen").await.status, 200);
    assert_eq!(program.line().await, "application: listening");
    for number in 0..110 {
        assert_eq!(caller::get(http, &format!("/{number}"), &[]).await.text(), "fine\n");
    }
    assert_eq!(caller::get(http, "/hook/stop", &[]).await.status, 200);
    assert_eq!(program.line().await, "application: received request for /hook/stop");
    let seen: Value = serde_json::from_slice(&program.control("/seen").await.body).expect("JSON");
    let heads = seen["http"].as_array().expect("a list");
    let lines: Vec<&str> = heads.iter().filter_map(|head| head.as_str()?.lines().next()).collect();
    assert_eq!(lines.len(), 100);
    assert_eq!(lines[98..], ["GET /109 HTTP/1.1", "GET /hook/stop HTTP/1.1"]);
    assert_eq!(seen["https"], json!([]));
    assert!(program.terminate().await.success());
}
