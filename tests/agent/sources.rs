//! Tests of the merged metrics with sources that differ from what a scraper expects: what Prometheus
//! keeps from each of them is on the merged page.

use std::net::SocketAddr;
use std::time::Duration;

use kit::admin::{Mood, ScriptedAdmin};
use kit::caller::Answer;
use kit::promtool::Promtool;
use kit::sidecar::{Builder, Sidecar};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

const TEXT: &str = "Content-Type: text/plain; version=0.0.4\r\n";
const OPEN: &str = "Content-Type: application/openmetrics-text; version=1.0.0\r\n";
const COUNTER: &[u8] = b"# TYPE a_total counter\na_total{x=\"1\"} 5\n";
/// [`COUNTER`], compressed with gzip.
const COUNTER_GZIP: &[u8] =
    b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x53\x56\x08\x89\x0c\x70\x55\x48\x8c\x2f\xc9\x2f\x49\xcc\x51\x48\xce\x2f\xcd\
      \x2b\x49\x2d\xe2\x82\xf2\xab\x2b\x6c\x95\x0c\x95\x6a\x15\x4c\xb9\x00\xac\x75\x4f\x4a\x28\x00\x00\x00";

/// Application with a response for each path. The others get 404.
struct Pages {
    address: SocketAddr,
    serving: JoinHandle<()>,
}

enum Page {
    Response(Vec<u8>),
    /// No response at all.
    Silence,
    /// This start of a response, then a byte of a comment from time to time.
    Drip(Vec<u8>),
}

fn ok(headers: &str, body: impl AsRef<[u8]>) -> Page {
    Page::Response([format!("HTTP/1.1 200 OK\r\n{headers}\r\n").as_bytes(), body.as_ref()].concat())
}

fn redirect(status: u16, location: &str) -> Page {
    let head = format!("HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 6\r\n\r\nmoved\n");
    Page::Response(head.into_bytes())
}

impl Pages {
    async fn start(pages: Vec<(&'static str, Page)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let serving = tokio::spawn(async move {
            let pages: &'static [_] = pages.leak();
            while let Ok((mut stream, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut request = [0; 4096];
                    let length = stream.read(&mut request).await.unwrap_or(0);
                    let request = String::from_utf8_lossy(&request[..length]);
                    let path = request.split(' ').nth(1).unwrap_or_default();
                    let page = pages.iter().find(|(name, _)| *name == path).map(|(_, page)| page);
                    let _ = match page {
                        Some(Page::Response(bytes)) => stream.write_all(bytes).await,
                        Some(Page::Silence) => stream.read(&mut [0]).await.map(|_| ()),
                        Some(Page::Drip(start)) => {
                            let _ = stream.write_all(start).await;
                            while stream.write_all(b"#\n").await.is_ok() {
                                tokio::time::sleep(Duration::from_millis(10)).await;
                            }
                            Ok(())
                        }
                        None => {
                            stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").await
                        }
                    };
                });
            }
        });
        Self { address, serving }
    }

    fn target(&self, path: &str) -> String {
        format!("{}{path}", self.address.port())
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn sidecar(name: &str, envoy: Option<&ScriptedAdmin>, targets: &[String], args: &[&str]) -> Sidecar {
    let admin = ScriptedAdmin::start(Mood::Serves, String::new()).await;
    let (watched, with_envoy) = envoy.map_or((&admin, "false"), |envoy| (envoy, "true"));
    let mut builder =
        Builder::bare(name).watching(watched.address).args(&["--metrics-envoy", with_envoy]).args(args);
    for target in targets {
        builder = builder.args(&["--metrics-target", target]);
    }
    let sidecar = builder.start_plain();
    sidecar.until(200, "ready").await;
    sidecar
}

/// Scrapes with this timeout in seconds, and checks the page with Prometheus' parser.
async fn scrape(sidecar: &Sidecar, timeout: u32) -> String {
    let headers = format!("Host: localhost\r\nX-Prometheus-Scrape-Timeout-Seconds: {timeout}\r\n");
    let Answer { status, complete, body, .. } = sidecar.local("GET /stats/prometheus", &headers).await;
    let text = String::from_utf8(body).expect("metrics are UTF-8");
    assert_eq!((status, complete), (200, true), "{text}");
    if let Some(promtool) = Promtool::find() {
        promtool.text(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    }
    text
}

/// Stops the agent, which writes its last lines before it exits, and returns its log.
async fn whole_log(sidecar: Sidecar) -> String {
    assert_eq!(sidecar.local("POST /quitquitquit", "").await.status, 200);
    sidecar.end().await.1
}

fn has(text: &str, line: &str) -> bool {
    text.lines().any(|found| found == line)
}

fn of_target(metric: &str, target: &str, value: u64) -> String {
    format!("app_health_agent_{metric}{{source=\"application\",target=\"{target}\"}} {value}")
}

/// A target that is silent, one that sends a comment from time to time, and a stopped Envoy cost the
/// healthy target behind them no sample.
#[tokio::test]
async fn silent_sources_do_not_truncate_healthy_ones() {
    let big: String = (0..7500).map(|number| format!("big{{series=\"{number:021}\"}} 1\n")).collect();
    let pages = Pages::start(vec![
        ("/silent", Page::Silence),
        ("/drip", Page::Drip(b"HTTP/1.1 200 OK\r\n\r\nslow 1\n".to_vec())),
        ("/big", ok(TEXT, "# TYPE big gauge\n".to_owned() + &big)),
    ])
    .await;
    let targets = ["/silent", "/drip", "/big"].map(|path| pages.target(path));
    let envoy = ScriptedAdmin::start(Mood::Serves, String::new()).await;
    let sidecar = sidecar("src-silent", Some(&envoy), &targets, &[]).await;
    envoy.set(Mood::Hangs);
    let text = scrape(&sidecar, 9).await;
    let port = pages.address.port();
    let count = text.lines().filter(|line| line.starts_with("big{")).count();
    assert_eq!(count, 7500);
    assert!(has(&text, "app_health_agent_scrape_up{source=\"envoy\",target=\"\"} 0"));
    assert!(has(&text, &of_target("scrape_up", &port.to_string(), 0)), "silent");
    assert!(has(&text, &of_target("scrape_up", &format!("{port}/drip"), 0)));
    assert!(has(&text, &of_target("scrape_up", &format!("{port}/big"), 1)));
    assert!(has(&text, &format!("slow{{metrics_target=\"{port}/drip\"}} 1")));
}

#[tokio::test]
async fn redirects_on_the_same_port_are_followed() {
    let other = Pages::start(vec![("/metrics", ok(TEXT, "other 1\n"))]).await;
    let elsewhere = format!("http://localhost:{}/metrics", other.address.port());
    let mut pages = vec![
        ("/metrics", ok(TEXT, COUNTER)),
        ("/307", redirect(307, "/metrics")),
        ("/loop", redirect(302, "/loop")),
        ("/elsewhere", redirect(302, &elsewhere)),
        ("/https", redirect(301, "https://localhost/metrics")),
        ("/none", Page::Response(b"HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n".to_vec())),
    ];
    // Nine redirects are followed, ten are not.
    let chain = ["/0", "/1", "/2", "/3", "/4", "/5", "/6", "/7", "/8", "/9"];
    for pair in chain.windows(2) {
        pages.push((pair[0], redirect(308, &pair[1][1..])));
    }
    pages.push(("/9", redirect(303, "metrics")));
    let pages = Pages::start(pages).await;
    for (path, is_up) in [
        ("/307", true),
        ("/1", true),
        ("/0", false),
        ("/loop", false),
        ("/elsewhere", false),
        ("/https", false),
        ("/none", false),
    ] {
        let sidecar = sidecar("src-redirect", None, &[pages.target(path)], &[]).await;
        let text = scrape(&sidecar, 9).await;
        let up = of_target("scrape_up", &pages.address.port().to_string(), is_up.into());
        assert!(has(&text, &up), "{path}: {text}");
        assert_eq!(has(&text, "a_total{x=\"1\"} 5"), is_up, "{path}: {text}");
        assert!(!text.contains("other"), "{path}");
        let outcome = "app_health_agent_scrapes_total{source=\"application\",outcome=\"bad_redirect\"}";
        assert_eq!(sidecar.metric(outcome).await > 0.0, !is_up, "{path}");
    }
}

#[tokio::test]
async fn unusual_responses_are_read_as_prometheus_reads_them() {
    let many: String = (0..300).map(|number| format!("X-{number}: {number}\r\n")).collect();
    let long = format!("Content-Security-Policy: {}\r\n", "x".repeat(12_000));
    for (name, page) in [
        ("html", ok("Content-Type: text/html; charset=utf-8\r\n", COUNTER)),
        ("json", ok("Content-Type: application/json\r\n", COUNTER)),
        ("an empty type", ok("Content-Type: \r\n", COUNTER)),
        ("an invalid type", ok("Content-Type: metrics\r\n", COUNTER)),
        ("no type", ok("", COUNTER)),
        ("gzip", ok("Content-Encoding: gzip\r\n", COUNTER_GZIP)),
        ("GZIP of html", ok("Content-Type: text/html\r\nContent-Encoding: GZIP\r\n", COUNTER_GZIP)),
        ("a character set as encoding", ok("Content-Encoding: utf-8\r\n", COUNTER)),
        ("300 headers", ok(&many, COUNTER)),
        ("a long header", ok(&long, COUNTER)),
        ("no line break at the end", ok(TEXT, COUNTER.trim_ascii_end())),
        ("a header of two lines", ok("X-Policy: one;\r\n two\r\n", COUNTER)),
        ("CRLF", ok(TEXT, "# TYPE a_total counter\r\na_total{x=\"1\"} 5\r\n")),
        ("OpenMetrics", ok(OPEN, "# TYPE a counter\na_total{x=\"1\"} 5 # {id=\"1\"} 1\n# EOF\n")),
    ] {
        let pages = Pages::start(vec![("/metrics", page)]).await;
        let sidecar = sidecar("src-unusual", None, &[pages.target("/metrics")], &[]).await;
        let text = scrape(&sidecar, 9).await;
        let port = pages.address.port().to_string();
        assert!(
            has(&text, "a_total{x=\"1\"} 5") && has(&text, &of_target("scrape_up", &port, 1)),
            "{name}: {text}"
        );
        assert!(has(&text, &of_target("scrape_lines_dropped", &port, 0)), "{name}: {text}");
    }
}

/// Lines that Prometheus keeps, with their form on the page.
const KEPT: [(&str, &str); 12] = [
    (r#"file{path="C:\dir\x"} 1"#, r#"file{path="C:\\dir\\x"} 1"#),
    (r#"escapes{a="\\\"\n\t"} 1"#, r#"escapes{a="\\\"\n\\t"} 1"#),
    ("nul{a=\"b\0c\"} 1", "nul{a=\"b\0c\"} 1"),
    ("commas{a=\"1\" b=\"2\"} 1", "commas{a=\"1\",b=\"2\"} 1"),
    ("\ttabs\t{a=\"1\"}\t1\t7\t", "tabs\t{a=\"1\"} 1 7"),
    ("{\"quoted\",\"a\"=\"1\"} 1", "quoted{a=\"1\"} 1"),
    ("# TYPE twice gauge", "# TYPE twice gauge"),
    ("# TYPE twice counter", "# TYPE twice gauge"),
    ("# EOF", "before 1"),
    ("infinite -infinity", "infinite -infinity"),
    ("crlf 1\r", "crlf 1"),
    ("counter_created 1.5e9", "counter_created 1.5e9"),
];

/// Lines that no scraper of the text format can get, with the reason.
const DROPPED: [(&str, &str); 17] = [
    ("x{le=\"abc\"} 1", "invalid_bound"),
    ("x{a=\"1\",a=\"2\"} 1", "duplicate_label"),
    ("x{a=\"1} 1", "invalid_labels"),
    ("x{a='1'} 1", "invalid_labels"),
    ("x 1 -5", "invalid_timestamp"),
    ("x 1 1.5", "invalid_timestamp"),
    ("x 1 # {id=\"1\"} 1", "invalid_timestamp"),
    ("x 0x10", "invalid_value"),
    ("x 1_000", "invalid_value"),
    ("x -NaN", "invalid_value"),
    ("\0", "invalid_name"),
    ("x.y 1", "invalid_name"),
    ("\u{feff}x 1", "invalid_name"),
    ("<html>", "invalid_name"),
    ("{\"x.y\"} 1", "quoted_name"),
    ("# TYPE y stateset", "invalid_type"),
    ("x{a=\"LONG\"} 1", "too_long"),
];

#[tokio::test]
async fn one_line_costs_one_line() {
    let mut body = b"before 1\n# TYPE x histogram\n".to_vec();
    for (line, _) in KEPT.iter().chain(&DROPPED) {
        body.extend_from_slice(line.replace("LONG", &"x".repeat(1 << 16)).as_bytes());
        body.push(b'\n');
    }
    body.extend_from_slice(b"x{a=\"\xff\"} 1\nafter 1\n");
    let pages = Pages::start(vec![("/metrics", ok(TEXT, body))]).await;
    let sidecar = sidecar("src-lines", None, &[pages.target("/metrics")], &[]).await;
    let text = scrape(&sidecar, 9).await;
    let port = pages.address.port().to_string();
    for line in ["before 1", "after 1"].into_iter().chain(KEPT.iter().map(|(_, line)| *line)) {
        assert!(has(&text, line), "{line}: {text}");
    }
    assert!(!text.lines().any(|line| line.starts_with('x')), "{text}");
    assert!(has(&text, &of_target("scrape_up", &port, 1)), "{text}");
    assert!(has(&text, &of_target("scrape_lines_dropped", &port, DROPPED.len() as u64 + 1)), "{text}");
    for (line, reason) in DROPPED {
        let series = format!(
            "app_health_agent_scrape_dropped_lines_total{{source=\"application\",reason=\"{reason}\"}}"
        );
        assert!(sidecar.metric(&series).await > 0.0, "{line}");
    }
    let log = whole_log(sidecar).await;
    for (number, (_, reason)) in DROPPED.iter().enumerate() {
        let first = DROPPED.iter().position(|(_, other)| other == reason) == Some(number);
        let message = format!("target=\"{port}\" reason=\"{reason}\" line={}", KEPT.len() + 3 + number);
        assert_eq!(
            log.lines().filter(|line| line.contains(&message)).count(),
            usize::from(first),
            "{message}: {log}"
        );
    }
}

/// Prometheus accepts line breaks in a label value, other parsers accept them only escaped.
#[tokio::test]
async fn a_label_value_has_line_breaks() {
    let body = "before 1\nfailure{stack=\"at main\n# TYPE x gauge\n  at init\"} 1\nx{a=\"1} 1\nafter 1\n";
    let pages = Pages::start(vec![("/metrics", ok(TEXT, body))]).await;
    let sidecar = sidecar("src-breaks", None, &[pages.target("/metrics")], &[]).await;
    let text = scrape(&sidecar, 9).await;
    let port = pages.address.port().to_string();
    for line in ["before 1", r#"failure{stack="at main\n# TYPE x gauge\n  at init"} 1"#, "after 1"] {
        assert!(has(&text, line), "{line}: {text}");
    }
    assert!(has(&text, &of_target("scrape_lines_dropped", &port, 1)), "{text}");
    assert!(whole_log(sidecar).await.contains("reason=\"invalid_labels\" line=5"));
}

#[tokio::test]
async fn equal_series_of_two_targets() {
    let pages = Pages::start(vec![
        ("/one", ok(TEXT, "# TYPE go_goroutines gauge\ngo_goroutines 111\n")),
        ("/two", ok(TEXT, "# TYPE go_goroutines gauge\ngo_goroutines 222\n")),
    ])
    .await;
    let targets = ["/one", "/two"].map(|path| pages.target(path));
    let port = pages.address.port();
    let labelled = [(format!("{port}"), 111), (format!("{port}/two"), 222)];
    let labelled =
        labelled.map(|(target, value)| format!("go_goroutines{{metrics_target=\"{target}\"}} {value}"));
    let plain = ["go_goroutines 111".to_owned(), "go_goroutines 222".to_owned()];
    for (flag, count, expected, shared) in [
        ("auto", 2, &labelled[..], 0),
        ("never", 2, &plain[..], 1),
        ("auto", 1, &plain[..1], 0),
        ("always", 1, &labelled[..1], 0),
    ] {
        let sidecar = sidecar("src-equal", None, &targets[..count], &["--metrics-target-label", flag]).await;
        let text = scrape(&sidecar, 9).await;
        let mut samples: Vec<_> = text.lines().filter(|line| line.starts_with("go_")).collect();
        samples.sort_unstable();
        assert_eq!(samples, expected, "{flag} {count}");
        assert!(has(&text, &format!("app_health_agent_shared_families {shared}")), "{flag} {count}: {text}");
        let warning = "metrics sources share families";
        assert_eq!(whole_log(sidecar).await.contains(warning), shared > 0, "{flag} {count}");
    }
}
