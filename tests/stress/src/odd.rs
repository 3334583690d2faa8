//! Malformed and unexpected requests to the agent: no client can create metric series, fill the
//! log, or make memory grow.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::float;
use kit::admin::{Mood, ScriptedAdmin};
use kit::load::{Load, ask};
use kit::process::Process;
use kit::report::Row;
use kit::sidecar::{Builder, Sidecar};

/// Part of each request; it must not occur in the log or the metrics.
const MARK: &str = "odd-0";
/// Number of kinds of requests.
const KINDS: u64 = 16;
/// Bound for the growth of the agent's memory, in bytes.
const FLAT: u64 = 4 << 20;
/// Maximum number of log lines per minute.
const LINES: u64 = 10;

/// Sends `total` requests to the readiness port and the local admin port in turn.
///
/// # Panics
/// If there is a new series, too many log lines, text of a client in either, or the agent is no
/// longer ready.
pub async fn run(name: &str, total: u64) -> Vec<Row> {
    let admin = ScriptedAdmin::start(Mood::Serves, String::new()).await;
    let sidecar = Builder::bare(name).watching(admin.address).start_plain();
    sidecar.until(200, "ready").await;
    // Every kind is sent to each port first, so that one-time allocations have happened.
    send(&sidecar, 0..KINDS * 2 * 20).await;
    series(&sidecar).await;
    let process = Process::new(sidecar.pid().as_raw().unsigned_abs());
    let (before, lines, rss) = (series(&sidecar).await, sidecar.log().lines().count(), process.rss());
    let seconds = send(&sidecar, 0..total).await;

    let (log, after) = (sidecar.log(), series(&sidecar).await);
    assert_eq!(after.difference(&before).collect::<Vec<_>>(), Vec::<&String>::new(), "new series");
    let told = u64::try_from(log.lines().count() - lines).expect("a count of lines");
    assert!(told <= LINES * (1 + seconds / 60), "{told} log lines: {log}");
    assert!(!log.contains(MARK), "{log}");
    assert!(!after.iter().any(|series| series.contains(MARK)), "{after:?}");
    let growth = process.rss().saturating_sub(rss);
    assert!(growth < FLAT, "memory grew by {growth} bytes from {rss}");
    assert_eq!(sidecar.ready("").await.status, 200);
    vec![
        Row::new("unexpected requests", float(total), "requests"),
        Row::new("lines of the log", float(told), "lines"),
        Row::new("growth of the agent's resident memory", float(growth >> 10), "KiB"),
    ]
}

/// Sends the requests and returns the duration in seconds.
async fn send(sidecar: &Sidecar, numbers: std::ops::Range<u64>) -> u64 {
    let load = Load { total: numbers.end - numbers.start, at_once: 16, per_second: None };
    let tally = load.run(async |number| {
        let address = if (number / KINDS).is_multiple_of(2) {
            sidecar.ready_address()
        } else {
            sidecar.local_address()
        };
        // The local admin port accepts 127.0.0.1 and rejects the others.
        let source = IpAddr::V4(Ipv4Addr::new(127, 0, 0, if number.is_multiple_of(3) { 1 } else { 9 }));
        ask(Some(source), address, &odd(number, address)).await
    });
    tally.await.took.as_secs()
}

/// Returns an unexpected request, a different one for each number.
fn odd(number: u64, address: SocketAddr) -> Vec<u8> {
    let word = format!("{MARK}{number}");
    let get = |target: &str, lines: &str| format!("GET {target} HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n");
    let text = match number % KINDS {
        0 => get(&format!("/{word}"), ""),
        1 => get(&format!("//healthz/ready?{word}"), ""),
        2 => get(&format!("/healthz/%72eady?{word}"), ""),
        3 => get(&format!("http://{address}/healthz/ready?{word}"), ""),
        4 => get("/healthz/ready", &format!("{word}: x\r\n")),
        5 => get("/healthz/ready", &format!("x: {}\r\n", word.repeat(2000))),
        6 => get("/healthz/ready", &format!("x: {word}\r\n").repeat(80)),
        7 => get("/metrics", &format!("X-Forwarded-For: {word}\r\n")),
        8 => format!("{} /healthz/ready HTTP/1.1\r\nHost: localhost\r\n\r\n", word.to_uppercase()),
        9 => format!("POST /drain HTTP/1.1\r\nHost: {word}.example\r\n\r\n"),
        10 => format!("POST /quitquitquit HTTP/1.1\r\nHost: localhost\r\nOrigin: http://{word}\r\n\r\n"),
        11 => format!("PUT /debug/log?level={word} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
        12 => format!("POST /{word} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n123456789"),
        13 => format!("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n{word}"),
        14 => format!("\u{0}\u{7f}{word} \r\n\r\n"),
        _ => get(&format!("/healthz/ready?wait={word}&verbose={word}&wait=99999999999"), ""),
    };
    text.into_bytes()
}

/// Returns names and labels of all series of the agent.
async fn series(sidecar: &Sidecar) -> BTreeSet<String> {
    let text = sidecar.local("GET /metrics", "Host: localhost\r\n").await.text();
    let samples = text.lines().filter(|line| !line.starts_with('#'));
    samples.filter_map(|line| line.rsplit_once(' ')).map(|(series, _)| series.to_owned()).collect()
}
