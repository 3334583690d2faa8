//! Feeds arbitrary bytes to the probes of a virtual machine's workload, as the answers of an application.

use std::net::{IpAddr, Ipv4Addr};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use workload_health::{Outcome, WorkloadProbe};
use workload_prober::{TargetRules, probe_once};

/// Separates the answers to several connections.
const SEPARATOR: &[u8] = b"\n====\n";

/// Probes an application. The first byte selects the kind, and the rest are its answers, one for each
/// connection. A healthy verdict needs a fitting answer, and no text of a failure contains a control
/// character or is long.
///
/// # Panics
/// Panics if one of these does not hold.
pub fn probe_answers(bytes: &[u8]) {
    thread_local!(static RUNTIME: Runtime =
        Builder::new_current_thread().enable_all().build().expect("a runtime"));
    let Some((first, rest)) = bytes.split_first() else { return };
    let (kind, handler) = match first % 3 {
        0 => ("httpGet", "httpGet"),
        1 => ("grpc", "grpc"),
        _ => ("tcpSocket", "tcpSocket"),
    };
    let answers = split(rest);
    let outcome = RUNTIME.with(|runtime| {
        runtime.block_on(async {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
            let port = listener.local_addr().expect("an address").port();
            let probe = WorkloadProbe::parse(&json!({ "timeoutSeconds": 60, handler: { "port": port } }));
            let probe = probe.expect("a probe").value;
            let rules = TargetRules {
                instance_ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
                capture: false,
                allow_remote: false,
            };
            tokio::select! {
                outcome = probe_once(rules, &probe) => outcome,
                () = serve(listener, &answers) => unreachable!("the application never ends"),
            }
        })
    });
    match outcome {
        Outcome::Healthy => {
            let fits = |answer: &&[u8]| match kind {
                "httpGet" => answer.starts_with(b"HTTP/1."),
                "grpc" => answer.len() > 9,
                _ => true,
            };
            assert!(answers.iter().any(|answer| fits(&&**answer)), "{kind} is healthy by {rest:?}");
        }
        Outcome::Unhealthy(unhealthy) => {
            let text = format!("{unhealthy:?}");
            assert!(text.len() < 1024 && !text.contains(char::is_control), "{text:?}");
            assert_ne!(kind, "tcpSocket", "an accepted connection is healthy");
        }
    }
}

fn split(mut rest: &[u8]) -> Vec<Vec<u8>> {
    let mut answers = Vec::new();
    while let Some(at) = rest.windows(SEPARATOR.len()).position(|window| window == SEPARATOR) {
        answers.push(rest[..at].to_vec());
        rest = &rest[at + SEPARATOR.len()..];
    }
    answers.push(rest.to_vec());
    answers
}

/// Answers each connection; the last answer is that of all further ones.
async fn serve(listener: TcpListener, answers: &[Vec<u8>]) {
    for number in 0.. {
        let Ok((mut stream, _)) = listener.accept().await else { continue };
        let answer = answers.get(number).or(answers.last()).cloned().unwrap_or_default();
        tokio::spawn(async move {
            let _ = stream.write_all(&answer).await;
            let _ = stream.shutdown().await;
            // A connection that is closed with unread bytes would be reset, and its answer lost.
            let _ = stream.read_to_end(&mut Vec::new()).await;
        });
    }
}
