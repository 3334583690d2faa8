use std::net::SocketAddr;

use http_body_util::BodyExt;
use serving::http_server::{self, HttpRequest, Limits, Plaintext, Server, Stages};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;

use super::places::SCRAPES;
use super::request::{CLIENT, SCRAPE_TIMEOUT};
use super::*;

/// Starts an application that answers each scrape with `answer`. Unless `closes` is set, the
/// connection stays open after that. Returns its port and the last request that it received.
async fn application(answer: &'static str, closes: bool) -> (u16, Arc<std::sync::Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let asked = Arc::new(std::sync::Mutex::new(String::new()));
    let told = asked.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let length = stream.read(&mut request).await.unwrap();
            *told.lock().unwrap() = String::from_utf8_lossy(&request[..length]).into_owned();
            tokio::spawn(async move {
                let _ = stream.write_all(answer.as_bytes()).await;
                if !closes {
                    let _ = stream.read(&mut request).await;
                }
            });
        }
    });
    (port, asked)
}

fn scraper(envoy: Option<u16>, targets: &[u16]) -> Scraper {
    let target = |port: &u16| Target { port: *port, path: "/metrics".to_owned() };
    let config = MetricsConfig {
        envoy: envoy.is_some(),
        targets: targets.iter().map(target).collect(),
        rejected: Vec::new(),
    };
    let admin = HttpUrl {
        endpoint: Endpoint::Localhost(envoy.unwrap_or(1)),
        authority: "localhost".to_owned(),
        path: String::new(),
    };
    Scraper::new(Arc::new(Metrics::new()), config, admin)
}

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    pairs.iter().map(|(name, value)| (name.parse().unwrap(), HeaderValue::from_static(value))).collect()
}

async fn scraped(scraper: &Scraper, headers: &HeaderMap, query: &str) -> (String, String) {
    let response = scraper.merged(headers, query, || ()).await;
    assert_eq!(response.status(), 200);
    let content_type = response.headers()[CONTENT_TYPE].to_str().unwrap().to_owned();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    (content_type, String::from_utf8(body.to_vec()).unwrap())
}

const ENVOY: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=UTF-8\r\n\r\n# TYPE envoy_x counter\nenvoy_x{} 1\n";
const OPEN: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/openmetrics-text; version=1.0.0\r\n\r\n\
                    # TYPE a counter\na_total 1 2.5 # {} 1\n# EOF\n";

#[tokio::test]
async fn sources_in_order_with_their_outcomes() {
    let (envoy, asked) = application(ENVOY, true).await;
    let (one, _) =
        application("HTTP/1.1 200 OK\r\n\r\n# TYPE envoy_x counter\nenvoy_x{a=\"1\"} 2\nb 3", true).await;
    let (other, target) = application(OPEN, true).await;
    let scraper = scraper(Some(envoy), &[one, other]);
    let (content_type, text) = scraped(&scraper, &headers(&[]), "usedonly&reset&filter=x").await;
    assert!(content_type.starts_with("text/plain; version=0.0.4"), "{content_type}");
    let places = [
        "app_health_agent_ready ",
        "envoy_x{} 1",
        "envoy_x{a=\"1\"} 2\nb 3\n",
        "a_total 1 2500\n",
        "scrape_up",
    ];
    let places: Vec<_> =
        places.iter().map(|place| text.find(place).unwrap_or_else(|| panic!("{place}: {text}"))).collect();
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(text.matches("# TYPE envoy_x counter").count(), 1);
    assert_eq!(text.matches("# EOF").count(), 0);
    assert!(text.contains("app_health_agent_duplicate_families 1\n"), "{text}");
    assert!(text.contains("app_health_agent_scrape_up{source=\"envoy\",target=\"\"} 1\n"), "{text}");
    assert!(asked.lock().unwrap().starts_with("GET /stats/prometheus?usedonly HTTP/1.1\r\n"));
    let target = target.lock().unwrap().to_lowercase();
    assert!(
        target.contains("accept: text/plain") && target.contains("accept-encoding: identity"),
        "{target}"
    );
}

#[tokio::test]
async fn a_failed_source_does_not_affect_the_others() {
    let (html, _) = application("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\na 1\n", true).await;
    let (missing, _) = application("HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n", true).await;
    let (zipped, _) = application("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\nb 1\n", true).await;
    let (cut, _) = application("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nc 1\nd 2", true).await;
    let (hung, _) = application("HTTP/1.1 200 OK\r\n\r\ne 1\nf 2", false).await;
    let (good, _) = application("HTTP/1.1 200 OK\r\n\r\ng 1\n", true).await;
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let scraper = scraper(None, &[html, missing, zipped, cut, hung, nobody, good]);
    let (_, text) = scraped(&scraper, &headers(&[(SCRAPE_TIMEOUT, "2")]), "").await;
    for (port, up) in [(html, 0), (missing, 0), (zipped, 0), (cut, 0), (hung, 0), (nobody, 0), (good, 1)] {
        let line = format!("app_health_agent_scrape_up{{source=\"application\",target=\"{port}\"}} {up}\n");
        assert!(text.contains(&line), "{line}: {text}");
    }
    assert!(text.contains("\nc 1\ne 1\ng 1\n"), "{text}");
    let own =
        String::from_utf8(scraper.own().into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap();
    for outcome in ["ok", "refused", "timeout", "bad_status", "bad_body"] {
        let series =
            format!("app_health_agent_scrapes_total{{source=\"application\",outcome=\"{outcome}\"}}");
        assert!(own.contains(&series), "{series}: {own}");
    }
}

#[tokio::test]
async fn the_response_is_text_even_if_all_sides_accept_open_metrics() {
    let accept = headers(&[("accept", "application/openmetrics-text;version=1.0.0,text/plain;q=0.5")]);
    let (open, _) = application(OPEN, true).await;
    let (content_type, text) = scraped(&scraper(None, &[open]), &accept, "").await;
    assert!(content_type.starts_with("text/plain; version=0.0.4"), "{content_type}");
    assert!(text.contains("\n# TYPE a_total counter\na_total 1 2500\n") && !text.contains("# EOF"), "{text}");
}

#[tokio::test]
async fn two_targets_on_one_port_are_two_series() {
    let (port, _) = application("HTTP/1.1 200 OK\r\n\r\ng 1\n", true).await;
    let (_, text) = scraped(&scraper(None, &[port, port]), &headers(&[]), "").await;
    for target in [format!("{port}"), format!("{port}/metrics")] {
        let line = format!("app_health_agent_scrape_up{{source=\"application\",target=\"{target}\"}} 1\n");
        assert_eq!(text.matches(&line).count(), 1, "{text}");
    }
}

/// Returns a response of Envoy that is larger than all buffers between it and a client, in few lines,
/// so that dozens of scrapes of it end long before their deadline, also on a busy machine.
fn large() -> &'static str {
    let padding = "x".repeat(16_000);
    let samples: String =
        (0..60).map(|number| format!("envoy_x{{padding=\"{padding}\",n=\"{number}\"}} 1\n")).collect();
    format!("HTTP/1.1 200 OK\r\n\r\n# TYPE envoy_x counter\n{samples}").leak()
}

#[tokio::test]
async fn clients_that_do_not_read_do_not_block_others() {
    let (envoy, _) = application(large(), true).await;
    let (good, _) = application("HTTP/1.1 200 OK\r\n\r\ng 1\n", true).await;
    let scraper = scraper(Some(envoy), &[good]);
    let mut unread = Vec::new();
    for _ in 0..7 {
        unread.push(scraper.merged(&headers(&[]), "", || ()).await);
    }
    let (_, text) = scraped(&scraper, &headers(&[]), "").await;
    assert!(text.contains("app_health_agent_scrape_up{source=\"envoy\",target=\"\"} 1\n"), "no turn");
    assert!(text.contains(",n=\"59\"} 1\ng 1\n"));
    assert!(unread.iter().all(|response| response.status() == 200));
}

#[tokio::test]
async fn a_slow_client_gets_everything_if_no_other_waits() {
    let (envoy, _) = application(large(), true).await;
    let scraper = scraper(Some(envoy), &[]);
    let mut body = scraper.merged(&headers(&[]), "", || ()).await.into_body();
    let mut text = Vec::new();
    while let Some(frame) = body.frame().await {
        if text.len() < 1 << 16 {
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        text.extend_from_slice(&frame.unwrap().into_data().unwrap());
    }
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("app_health_agent_scrape_up{source=\"envoy\",target=\"\"} 1\n"), "truncated");
}

#[tokio::test]
async fn scrapes_beyond_the_limit_are_rejected() {
    let (hung, _) = application("HTTP/1.1 200 OK\r\n\r\n", false).await;
    let scraper = scraper(None, &[hung]);
    let mut running = Vec::new();
    for _ in 0..SCRAPES {
        running.push(scraper.merged(&headers(&[]), "", || ()).await);
    }
    let one_more = scraper.merged(&headers(&[]), "", || ()).await;
    assert!(running.iter().all(|response| response.status() == 200));
    assert_eq!((one_more.status().as_u16(), &one_more.headers()[RETRY_AFTER]), (503, &"1".parse().unwrap()));
}

/// Waits until this many places are taken. The limit is far below any deadline of a scrape.
async fn until_taken(scraper: &Scraper, count: usize) {
    let taken = async {
        while scraper.places.count() != count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), taken).await.expect("the places are taken, or free");
}

/// Serves the merged metrics as the agent does.
fn serve(scraper: &Scraper) -> (SocketAddr, JoinHandle<()>) {
    let listener = http_server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let metrics = scraper.metrics.servers.clone();
    let server = Server { name: "local", paths: &[], limits: Limits::ONE_REQUEST, metrics };
    let scraper = scraper.clone();
    let handler = move |request: HttpRequest| {
        let scraper = scraper.clone();
        async move {
            let slot = request.slot.clone();
            scraper.merged(&request.headers, request.query(), move || slot.evict()).await
        }
    };
    (address, tokio::spawn(http_server::serve(listener, Plaintext, server, Stages::default(), handler)))
}

async fn request(mut caller: TcpStream, client: &str) -> TcpStream {
    let head = format!("GET / HTTP/1.1\r\nhost: x\r\n{CLIENT}: {client}\r\n\r\n");
    caller.write_all(head.as_bytes()).await.unwrap();
    caller
}

/// Starts a scrape, and reads no more than the status. With a small receive buffer, the agent soon has
/// to wait for the reader.
async fn started(address: SocketAddr, client: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut caller = request(socket.connect(address).await.unwrap(), client).await;
    let mut head = [0; 12];
    caller.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200");
    caller
}

#[tokio::test]
async fn slow_readers_do_not_take_the_place_of_another_client() {
    let (port, _) = application(large(), true).await;
    let scraper = scraper(None, &[port]);
    let (address, serving) = serve(&scraper);
    let mut slow = Vec::new();
    for number in 0..SCRAPES {
        slow.push(started(address, ["192.0.2.1", "192.0.2.2", "2001:db8::1"][number % 3]).await);
    }
    let mut text = Vec::new();
    let honest = TcpStream::connect(address).await.unwrap();
    request(honest, "192.0.2.3").await.read_to_end(&mut text).await.unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{}", text.lines().next().unwrap_or_default());
    let line = format!("app_health_agent_scrape_up{{source=\"application\",target=\"{port}\"}} 1\n");
    assert!(text.contains(&line), "truncated");
    let oldest = slow[0].read_to_end(&mut Vec::new()).await;
    assert_eq!(oldest.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    serving.abort();
}

#[tokio::test]
async fn a_dropped_response_frees_its_place() {
    let (hung, _) = application("HTTP/1.1 200 OK\r\n\r\na 1\n", false).await;
    let scraper = scraper(None, &[hung]);
    let headers = headers(&[(SCRAPE_TIMEOUT, "600")]);
    let mut running = Vec::new();
    for _ in 0..SCRAPES {
        running.push(scraper.merged(&headers, "", || ()).await);
    }
    assert_eq!(scraper.merged(&headers, "", || ()).await.status(), 503);
    drop(running.pop());
    until_taken(&scraper, SCRAPES - 1).await;
}

#[tokio::test]
async fn a_closed_connection_frees_its_place() {
    let (hung, _) = application("HTTP/1.1 200 OK\r\n\r\na 1\n", false).await;
    let scraper = scraper(None, &[hung]);
    let (address, serving) = serve(&scraper);
    for _ in 0..3 {
        let mut callers = Vec::new();
        for _ in 0..SCRAPES {
            callers.push(started(address, "192.0.2.1").await);
        }
        until_taken(&scraper, SCRAPES).await;
        drop(callers);
        until_taken(&scraper, 0).await;
    }
    serving.abort();
}

#[tokio::test]
async fn too_many_families_truncate_only_their_source() {
    let names: String = (0..15_000).map(|number| format!("x{number} 1\n")).collect();
    let greedy: &'static str = format!("HTTP/1.1 200 OK\r\n\r\n{names}").leak();
    let (greedy, _) = application(greedy, true).await;
    let (good, _) = application("HTTP/1.1 200 OK\r\n\r\n# TYPE g gauge\ng 1\n", true).await;
    let scraper = scraper(None, &[greedy, good]);
    let (_, text) = scraped(&scraper, &headers(&[]), "").await;
    assert!(text.contains("\nx9999 1\n# TYPE g gauge\ng 1\n"), "truncated, and then the other source");
    for (port, up) in [(greedy, 0), (good, 1)] {
        let line = format!("app_health_agent_scrape_up{{source=\"application\",target=\"{port}\"}} {up}\n");
        assert!(text.contains(&line), "{line}");
    }
    let own = scraper.own().into_body().collect().await.unwrap().to_bytes();
    let series = "app_health_agent_scrapes_total{source=\"application\",outcome=\"too_large\"} 1\n";
    assert!(String::from_utf8_lossy(&own).contains(series));
}

#[test]
fn timeouts() {
    for (said, millis) in [
        (None, 9500),
        (Some("10"), 9500),
        (Some("2.5"), 2000),
        (Some("600"), 9500),
        (Some("0.1"), 500),
        (Some("-1"), 9500),
        (Some("NaN"), 9500),
        (Some("1e300"), 9500),
        (Some("soon"), 9500),
    ] {
        let headers = said.map_or_else(HeaderMap::new, |said| headers(&[(SCRAPE_TIMEOUT, said)]));
        assert_eq!(timeout(&headers).as_millis(), millis, "{said:?}");
    }
}

#[test]
fn no_expression_of_a_client_reaches_envoy() {
    for (query, path) in [
        ("", "/stats/prometheus"),
        ("filter=(a*)*", "/stats/prometheus"),
        ("usedonly&filter=x", "/stats/prometheus?usedonly"),
        ("text_readouts=on&usedonly=%26filter=x&usedonly", "/stats/prometheus?usedonly&text_readouts"),
        ("usedonly;filter=x", "/stats/prometheus"),
        ("format=html&type=All&histogram_buckets=none", "/stats/prometheus"),
    ] {
        assert_eq!(envoy_path(query), path, "{query}");
    }
}

#[test]
fn clients() {
    for (said, is_known) in [
        (None, false),
        (Some("192.0.2.1"), true),
        (Some("::ffff:192.0.2.1"), true),
        (Some("2001:db8::1"), true),
        (Some("192.0.2.1:80"), false),
        (Some("-"), false),
        (Some(""), false),
    ] {
        let headers = said.map_or_else(HeaderMap::new, |said| headers(&[(CLIENT, said)]));
        assert_eq!(client(&headers).is_some(), is_known, "{said:?}");
    }
    let client = |said| client(&headers(&[(CLIENT, said)]));
    assert_eq!(client("192.0.2.1"), client("::ffff:192.0.2.1"));
    assert_eq!(client("2001:db8::1"), client("2001:db8::2"), "one network");
    assert_ne!(client("192.0.2.1"), client("192.0.2.2"));
}
