use http_body_util::BodyExt;
use serving::http_server::{self, HttpRequest, Limits, Plaintext, Server, Stages};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::request::SCRAPE_TIMEOUT;
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
            let _ = stream.write_all(answer.as_bytes()).await;
            if !closes {
                tokio::spawn(async move { stream.read(&mut request).await });
            }
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
    let response = scraper.merged(headers, query).await;
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
    assert!(asked.lock().unwrap().starts_with("GET /stats/prometheus?usedonly&filter=x HTTP/1.1\r\n"));
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

#[tokio::test]
async fn a_third_concurrent_scrape_is_rejected() {
    let (hung, _) = application("HTTP/1.1 200 OK\r\n\r\n", false).await;
    let scraper = scraper(None, &[hung]);
    let first = scraper.merged(&headers(&[]), "").await;
    let second = scraper.merged(&headers(&[]), "").await;
    let third = scraper.merged(&headers(&[]), "").await;
    assert_eq!((first.status().as_u16(), second.status().as_u16(), third.status().as_u16()), (200, 200, 503));
    assert_eq!(third.headers()[RETRY_AFTER], "1");
    drop((first, second));
}

#[tokio::test]
async fn a_dropped_response_releases_its_permit() {
    let (hung, _) = application("HTTP/1.1 200 OK\r\n\r\na 1\n", false).await;
    let scraper = scraper(None, &[hung]);
    let headers = headers(&[(SCRAPE_TIMEOUT, "600")]);
    let first = scraper.merged(&headers, "").await;
    let _second = scraper.merged(&headers, "").await;
    assert_eq!(scraper.merged(&headers, "").await.status(), 503);
    drop(first);
    // The limit is far below any deadline.
    let free = scraper.permits.acquire();
    assert!(tokio::time::timeout(Duration::from_secs(5), free).await.is_ok(), "its permit was not released");
}

#[tokio::test]
async fn a_closed_connection_releases_its_permit() {
    let (hung, _) = application("HTTP/1.1 200 OK\r\n\r\na 1\n", false).await;
    let scraper = scraper(None, &[hung]);
    let listener = http_server::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let metrics = scraper.metrics.servers.clone();
    let server = Server { name: "local", paths: &[], limits: Limits::ONE_REQUEST, metrics };
    let handler = {
        let scraper = scraper.clone();
        move |request: HttpRequest| {
            let scraper = scraper.clone();
            async move { scraper.merged(&request.headers, request.query()).await }
        }
    };
    let serving = tokio::spawn(http_server::serve(listener, Plaintext, server, Stages::default(), handler));
    for _ in 0..3 {
        let mut callers = Vec::new();
        for _ in 0..SCRAPES {
            let mut caller = TcpStream::connect(address).await.unwrap();
            caller.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
            let mut head = [0; 12];
            caller.read_exact(&mut head).await.unwrap();
            assert_eq!(&head, b"HTTP/1.1 200");
            callers.push(caller);
        }
        assert_eq!(scraper.permits.available_permits(), 0);
        drop(callers);
        let all = scraper.permits.acquire_many(SCRAPES.try_into().unwrap());
        drop(tokio::time::timeout(Duration::from_secs(5), all).await.expect("the permits were not released"));
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
