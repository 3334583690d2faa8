//! Tests startup checks, shutdown, and connection limits of the process.

use std::fs;
use std::process::{Command, Output};

use kit::wait;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::Code;

use crate::discovery_frames::Frames;
use crate::discovery_support::{
    CLIENT, Discovery, EDS, GATEWAY, PAY, Peer, SHORT, binary, client, files, has_machine, health, reporter,
    request,
};
use crate::webhook_support::{self, Ca};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_with_open_streams_keeps_reports() {
    let flags = ["--plaintext-listen", "127.0.0.1:0", "--restart-grace", "300s"];
    let mut discovery = Discovery::start("ends", &flags);
    let (mut client, mut reporter) = (client(&discovery).await, reporter(&discovery).await);
    client.assignment(|_| true).await;
    // One client reads nothing, one sends nothing, and one does not start the TLS handshake.
    let deaf = Frames::open(discovery.plaintext(), 0, &request(EDS, &[PAY], &CLIENT)).await;
    let silent = TcpStream::connect(discovery.plaintext()).await.expect("a connection");
    let mute = TcpStream::connect(discovery.secure).await.expect("a connection");
    reporter.send(health("")).await;
    client.assignment(has_machine).await;
    discovery.terminate();
    for peer in [&mut client, &mut reporter] {
        let status = loop {
            if let Err(status) = peer.next().await {
                break status;
            }
        };
        assert_eq!((status.code(), status.message()), (Code::Unavailable, "server is shutting down"));
    }
    assert_eq!(tokio::task::block_in_place(|| discovery.wait()), Some(0));
    drop((deaf, silent, mute));
    discovery.start_again(&flags);
    let mut again = crate::discovery_support::client(&discovery).await;
    assert!(
        has_machine(&again.assignment(|_| true).await),
        "served immediately, although no agent has reported yet"
    );
}

fn check_configuration(folder: &std::path::Path) -> Output {
    let mut command = Command::new(binary());
    command.args(["discovery", "--check"]).args(files(folder)).output().expect("the process runs")
}

#[test]
fn check_prints_every_error() {
    let folder = std::env::temp_dir().join(format!("app-health-discovery-{}-check", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("mesh")).expect("a folder");
    let group = |probe: &str| {
        format!(
            "apiVersion: networking.istio.io/v1\nkind: WorkloadGroup\nmetadata: {{ name: pay, namespace: shop }}\nspec:\n  probe: {probe}\n"
        )
    };
    let wrong = group("{ periodSeconds: -1, grpc: { port: 0 } }");
    fs::write(folder.join("mesh/a.yaml"), &wrong).expect("a file");
    fs::write(folder.join("mesh/b.yaml"), "kind: Deployment\n").expect("a file");
    fs::write(folder.join("tls.crt"), "no PEM").expect("a file");
    let output = check_configuration(&folder);
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    let expected = [
        "--tls-key = ",
        "--client-ca = ",
        "a.yaml:1: document 1: spec.probe.periodSeconds: must be 0 or more, got -1",
        "a.yaml:1: document 1: spec.probe.grpc.port: must be between 1 and 65535, got 0",
        "b.yaml:1: document 1: kind: expected ",
    ];
    for expected in expected {
        let lines = text.lines().filter(|line| line.contains(expected)).count();
        assert_eq!(lines, 1, "{expected}: {text}");
    }
    assert_eq!(output.status.code(), Some(65), "{text}");

    let ca = Ca::new("mesh CA");
    webhook_support::write_pair(&folder, &ca.sign("discovery", &["discovery.test"]));
    fs::write(folder.join("ca.crt"), &ca.pem).expect("a file");
    fs::write(folder.join("mesh/a.yaml"), group("{ grpc: { port: 9000 } }")).expect("a file");
    fs::remove_file(folder.join("mesh/b.yaml")).expect("a file");
    let output = check_configuration(&folder);
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
    // An unknown field is a warning, not an error.
    fs::write(folder.join("mesh/a.yaml"), group("{ strange: 1, grpc: { port: 9000 } }")).expect("a file");
    let output = check_configuration(&folder);
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    let is_warning = text.starts_with("app-health: warning: a.yaml:1: document 1: spec.probe.strange: ");
    assert!(is_warning && text.lines().count() == 1 && output.status.success(), "{text}");
    assert!(!folder.join("store.redb").exists(), "no file is created");
    fs::remove_dir_all(&folder).expect("the folder");
}

#[tokio::test]
async fn connections_over_the_limit_wait() {
    let discovery = Discovery::start("places", &["--max-streams", "2"]);
    let tls = discovery.identity(GATEWAY);
    let open = || Peer::open(discovery.secure, tls.clone(), request(EDS, &[PAY], &CLIENT));
    let mut first = open().await.expect("a permit");
    first.assignment(|_| true).await;
    let second = open().await.expect("a permit");
    let third = open();
    tokio::pin!(third);
    assert!(timeout(SHORT, &mut third).await.is_err(), "the connection waits");
    drop(second);
    let mut third = timeout(wait::timeout(), third).await.expect("in time").expect("a permit");
    third.assignment(|_| true).await;
    assert!(first.is_quiet().await);
}

/// Opens three times as many idle connections as there are handshake permits, and more, from 40
/// addresses: an idle connection is closed after one second if permits are scarce, else after five.
#[tokio::test]
async fn idle_handshakes_do_not_block_other_clients() {
    let discovery = Discovery::start("greet", &["--accept-rate", "2000"]);
    let mut idle = Vec::new();
    for number in 0..800_u32 {
        let source = [127, 0, 9, u8::try_from(number % 40).expect("few")];
        idle.push(webhook_support::connect_from(source, discovery.secure).expect("a connection"));
    }
    let mut client = timeout(wait::timeout(), client(&discovery)).await.expect("in time");
    client.assignment(|_| true).await;
    let metrics = discovery.page("/metrics");
    assert!(metrics.contains("refused_total{reason=\"handshake\"}"), "{metrics}");
    drop(idle);
}

#[test]
fn the_descriptor_limit_is_raised_to_the_hard_limit() {
    let under = |limits| Discovery::start_with_descriptors(limits, &["--max-streams", "2000"]);
    let discovery = under("100:3000");
    assert_eq!(discovery.descriptors(), ["3000", "3000"]);
    let log = discovery.log();
    assert!(log.contains("file descriptor limit set limit=3000") && !log.contains("WARN"), "{log}");
    let log = under("100:1000").log();
    assert!(log.contains("file descriptor limit is lower than --max-streams = 2000"), "{log}");
}

/// Five descriptors are needed before anything can be printed; with three, shared libraries cannot
/// be loaded.
#[test]
fn too_few_descriptors_are_reported() {
    for limit in 5..=8 {
        for arguments in
            [&["discovery", "--plaintext-listen", "127.0.0.1:0", "--config-dir", "/"][..], &["workloads"]]
        {
            let mut command = Command::new("prlimit");
            command.arg(format!("--nofile={limit}:{limit}")).arg(binary()).args(arguments);
            let output = command.output().expect("prlimit of util-linux");
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!((output.status.code(), text.lines().count()), (Some(71), 1), "{limit}: {text}");
            assert!(text.contains("cannot start: Too many open files"), "{limit}: {text}");
        }
    }
}
