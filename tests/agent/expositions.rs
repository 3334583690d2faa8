//! Tests of the merged metrics with the parsers of Prometheus, for every combination of parts,
//! formats and failures, and of scrapers that do not read.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use futures_util::future::join_all;
use kit::admin::{Mood, ScriptedAdmin};
use kit::app::counted::{CountedApp, Habit};
use kit::app::{App, Step, answer};
use kit::caller::{self, Answer};
use kit::envoy;
use kit::net;
use kit::promtool::Promtool;
use kit::sidecar::{Builder, Sidecar};
use kit::wait;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const OPEN: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Envoy's metrics; one application exposes a family with the same name.
const ENVOY: &str = "# TYPE envoy_shared gauge\nenvoy_shared{} 1\n# TYPE envoy_time histogram\n\
    envoy_time_bucket{le=\"0.5\"} 0\nenvoy_time_bucket{le=\"+Inf\"} 1\nenvoy_time_sum{} 3\nenvoy_time_count{} 1\n";

/// Name, content type, body, and whether the body is complete. If it is not, `Content-Length` is
/// larger than the body.
const APPLICATIONS: [(&str, &str, &str, bool); 8] = [
    (
        "text",
        "text/plain; version=0.0.4",
        "# HELP a_total A.\n# TYPE a_total counter\na_total{x=\"1\"} 3\n",
        true,
    ),
    (
        "open",
        OPEN,
        "# TYPE a counter\n# UNIT b_seconds seconds\n# TYPE b_seconds gauge\nb_seconds 1.5 12.5\n\
         # TYPE c counter\n# HELP c C.\nc_total{x=\"1\"} 3 12.5 # {trace=\"1\"} 1 12.5\n# TYPE d info\nd_info{v=\"1\"} 1 12.5\n# EOF\n",
        true,
    ),
    ("shared", "text/plain", "# TYPE envoy_shared gauge\nenvoy_shared{mine=\"1\"} 2\n", true),
    (
        "own",
        "text/plain",
        "# HELP app_health_agent_ready Not theirs.\n# TYPE app_health_agent_ready counter\n",
        true,
    ),
    ("cut in mid-line", "text/plain", "# TYPE e gauge\ne{x=\"1\"} 1\ne{x=\"2", false),
    ("cut in mid-type", "text/plain", "# TYPE f gauge\nf 1\n# TYPE g hist", false),
    ("page", "text/html", "<html>not metrics</html>\n", true),
    ("garbage", "text/plain", "\u{1}\u{2}{{{{ not metrics\n", true),
];

async fn application(row: (&str, &str, &str, bool)) -> App {
    let (_, content_type, body, is_whole) = row;
    let length = body.len() + if is_whole { 0 } else { 1000 };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\n\r\n");
    App::start(LOCALHOST, answer(head + body)).await
}

async fn watching(name: &str, admin: &ScriptedAdmin, targets: &[String], with_envoy: bool) -> Sidecar {
    let mut builder = Builder::bare(name)
        .watching(admin.address)
        .args(&["--metrics-envoy", if with_envoy { "true" } else { "false" }]);
    for target in targets {
        builder = builder.args(&["--metrics-target", target]);
    }
    let sidecar = builder.start_plain();
    sidecar.until(200, "ready").await;
    sidecar
}

async fn scrape(sidecar: &Sidecar, accept: &str) -> Answer {
    sidecar.local("GET /stats/prometheus", &format!("Host: localhost\r\nAccept: {accept}\r\n")).await
}

/// Asserts that the response is in the text format and that the parsers of Prometheus accept it.
fn check(promtool: Option<&Promtool>, name: &str, answer: &Answer) {
    let text = answer.text();
    assert_eq!((answer.status, answer.complete), (200, true), "{name}: {text}");
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"), "{name}");
    assert!(!text.contains("# EOF"), "{name}: {text}");
    let Some(promtool) = promtool else { return };
    let lint = promtool.text(&text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
    assert!(!lint.contains("app_health_agent_"), "{name}: {lint}");
}

#[tokio::test]
async fn prometheus_parses_every_combination() {
    let promtool = Promtool::find();
    let admin = ScriptedAdmin::start(Mood::Serves, ENVOY.to_owned()).await;
    let mut targets = Vec::new();
    let mut running = Vec::new();
    for row in APPLICATIONS {
        let app = application(row).await;
        let target = app.port().to_string();
        for with_envoy in [true, false] {
            let sidecar = watching("expositions", &admin, std::slice::from_ref(&target), with_envoy).await;
            for accept in ["text/plain", OPEN] {
                let name = format!("{}, envoy {with_envoy}, {accept}", row.0);
                let answer = scrape(&sidecar, accept).await;
                check(promtool.as_ref(), &name, &answer);
                let is_up = row.3 && !["page", "garbage"].contains(&row.0);
                let up =
                    format!("scrape_up{{source=\"application\",target=\"{target}\"}} {}\n", u8::from(is_up));
                assert!(answer.text().contains(&up), "{name}: {up}: {}", answer.text());
            }
        }
        targets.push(target);
        running.push(app);
    }
    // With all applications in one scrape, a broken exposition affects only its own part.
    let sidecar = watching("expositions", &admin, &targets, true).await;
    let answer = scrape(&sidecar, OPEN).await;
    check(promtool.as_ref(), "all", &answer);
    let text = answer.text();
    for (target, name, labels, value) in [
        (0, "a_total", ",x=\"1\"", "3"),
        (1, "c_total", ",x=\"1\"", "3 12500"),
        (2, "envoy_shared", ",mine=\"1\"", "2"),
        (4, "e", ",x=\"1\"", "1"),
        (5, "f", "", "1"),
    ] {
        let line = format!("{name}{{metrics_target=\"{}\"{labels}}} {value}", targets[target]);
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    assert_eq!(text.matches("# TYPE envoy_shared ").count(), 1, "{text}");
    assert!(!text.contains(",x=\"2") && !text.contains("# TYPE g"), "{text}");
}

#[tokio::test]
async fn prometheus_parses_the_metrics_of_a_real_envoy() {
    let promtool = Promtool::find();
    let app = application(APPLICATIONS[1]).await;
    let sidecar = Builder::new("exp-envoy").args(&["--metrics-target", &app.port().to_string()]).start();
    sidecar.until(200, "ready").await;
    let answer =
        caller::get(envoy::probe_listener(sidecar.ip), "/stats/prometheus", &[("Accept", OPEN)]).await;
    check(promtool.as_ref(), "a real Envoy", &answer);
    assert!(answer.text().contains("\nenvoy_server_live{} 1\n"), "{}", answer.text());
}

/// Connects with a small receive buffer. In large ones a busy machine would not have written enough
/// by the timeout for the agent to wait for the reader.
async fn small_window(source: IpAddr, address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(SocketAddr::new(source, 0)).expect("a loopback address");
    socket.set_recv_buffer_size(4096).expect("the option exists");
    socket.connect(address).await.expect("the port is open")
}

/// Two scrapers that do not read lose their turn at Envoy to a third.
#[tokio::test]
async fn scrapers_that_do_not_read_do_not_block_a_third() {
    // The body is far larger than the socket buffers, in lines that are fast to parse.
    let line = format!("some_series{{some_label=\"{}\"}} 1\n", "x".repeat(4000));
    let admin = ScriptedAdmin::start(Mood::Serves, line.repeat(750)).await;
    let sidecar = watching("exp-slow", &admin, &[], true).await;
    let request =
        "GET /stats/prometheus HTTP/1.1\r\nHost: localhost\r\nX-Prometheus-Scrape-Timeout-Seconds: 3\r\n\r\n";
    let mut slow = Vec::new();
    for _ in 0..2 {
        let mut scraper = small_window(LOCALHOST, sidecar.local_address()).await;
        scraper.write_all(request.as_bytes()).await.expect("a connection");
        // After the first byte the scrape is in progress.
        assert_eq!(scraper.read(&mut [0]).await.ok(), Some(1));
        slow.push(scraper);
    }
    let mut third = TcpStream::connect(sidecar.local_address()).await.expect("the port is open");
    let request = "GET /stats/prometheus HTTP/1.1\r\nHost: localhost\r\n\r\n";
    third.write_all(request.as_bytes()).await.expect("a connection");
    let mut text = Vec::new();
    third.read_to_end(&mut text).await.expect("a response");
    let text = String::from_utf8(text).expect("text");
    assert!(text.starts_with("HTTP/1.1 200"), "{}", text.lines().next().unwrap_or_default());
    assert!(text.contains("scrape_up{source=\"envoy\",target=\"\"} 1\n"), "no turn at Envoy");
    drop(slow);
}

/// Slow readers take all places for scrapes, and more. They cannot refuse those of other addresses,
/// also if they claim to be many addresses.
#[tokio::test]
async fn slow_readers_cannot_refuse_the_scrape_of_another_address() {
    const PLACES: usize = 24;
    let line = format!("some_series{{some_label=\"{}\"}} 1\n", "x".repeat(4000));
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n";
    let app = CountedApp::start(LOCALHOST, Habit::Answer((head.to_owned() + &line.repeat(750)).into_bytes()));
    let sidecar = Builder::new("exp-places").args(&["--metrics-target", &app.port().to_string()]).start();
    sidecar.until(200, "ready").await;
    let (listener, hostile) = (envoy::probe_listener(sidecar.ip), net::loopback());
    let scrape = async |number: usize| {
        let mut scraper = small_window(hostile, listener).await;
        let request = format!(
            "GET /stats/prometheus HTTP/1.1\r\nHost: {listener}\r\nx-app-health-client: 192.0.2.{number}\r\n\r\n"
        );
        scraper.write_all(request.as_bytes()).await.expect("a connection");
        let mut status = [0; "HTTP/1.1 200".len()];
        scraper.read_exact(&mut status).await.expect("a response");
        (scraper, String::from_utf8_lossy(&status).into_owned())
    };
    // All at once, because the first one's place is free again when its deadline has passed.
    let slow = join_all((0..PLACES).map(scrape)).await;
    for (number, (_, status)) in slow.iter().enumerate() {
        assert_eq!(status, "HTTP/1.1 200", "scrape {number}");
    }
    assert_eq!(scrape(PLACES).await.1, "HTTP/1.1 503", "all places are taken");

    // A busy machine may need longer than a scrape lasts, so the first answers may lack a source. None is
    // refused.
    let is_up = |text: &str, source: &str| {
        let ups = text.lines().filter(|line| line.starts_with("app_health_agent_scrape_up{"));
        ups.filter(|line| line.contains(source)).any(|line| line.ends_with(" 1"))
    };
    let target = format!("target=\"{}\"", app.port());
    wait::until("a scrape has all sources", async || {
        let mut honest = TcpStream::connect(listener).await.expect("the port is open");
        let request = format!("GET /stats/prometheus HTTP/1.1\r\nHost: {listener}\r\n\r\n");
        honest.write_all(request.as_bytes()).await.expect("a connection");
        let mut response = Vec::new();
        honest.read_to_end(&mut response).await.expect("a response");
        let answer = caller::parse(&response);
        let text = answer.text();
        assert_eq!(answer.status, 200, "{}", text.lines().next().unwrap_or_default());
        answer.complete && is_up(&text, "source=\"envoy\",target=\"\"") && is_up(&text, &target)
    })
    .await;
    drop(slow);
}

/// An endless response of an application is cut off at its limit, and only that part is missing.
#[tokio::test]
async fn an_endless_response_is_truncated_at_the_limit() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n".to_vec();
    let app = App::start(LOCALHOST, vec![Step::Read, Step::Write(head), Step::WriteForEver]).await;
    let admin = ScriptedAdmin::start(Mood::Serves, ENVOY.to_owned()).await;
    let target = app.port().to_string();
    let sidecar = watching("exp-endless", &admin, std::slice::from_ref(&target), true).await;
    let answer = scrape(&sidecar, "text/plain").await;
    check(Promtool::find().as_ref(), "endless", &answer);
    let up = format!("scrape_up{{source=\"application\",target=\"{target}\"}} 0\n");
    assert!(answer.text().contains(&up), "{}", answer.text());
}
