use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::request::{CLIENT, SCRAPE_TIMEOUT};
use super::*;

mod clients;
mod envoy;

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
        labels_targets: targets.len() > 1,
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
async fn all_sources_with_their_outcomes() {
    let (envoy, asked) = application(ENVOY, true).await;
    let (one, _) =
        application("HTTP/1.1 200 OK\r\n\r\n# TYPE envoy_x counter\nenvoy_x{a=\"1\"} 2\nb 3", true).await;
    let (other, target) = application(OPEN, true).await;
    let scraper = scraper(Some(envoy), &[one, other]);
    let (content_type, text) = scraped(&scraper, &headers(&[]), "usedonly&reset&filter=x").await;
    assert!(content_type.starts_with("text/plain; version=0.0.4"), "{content_type}");
    let own = text.find("app_health_agent_ready ").unwrap();
    let up = text.find("# HELP app_health_agent_scrape_up ").unwrap();
    for place in [
        "envoy_x{} 1\n".to_owned(),
        format!("envoy_x{{metrics_target=\"{one}\",a=\"1\"}} 2\nb{{metrics_target=\"{one}\"}} 3\n"),
        format!("a_total{{metrics_target=\"{other}\"}} 1 2500\n"),
    ] {
        let found = text.find(&place).unwrap_or_else(|| panic!("{place}: {text}"));
        assert!(own < found && found < up, "{place}: {text}");
    }
    assert_eq!(text.matches("# TYPE envoy_x counter").count(), 1);
    assert_eq!(text.matches("# EOF").count(), 0);
    for line in [
        "app_health_agent_duplicate_families 1",
        "app_health_agent_shared_families 0",
        "app_health_agent_scrape_up{source=\"envoy\",target=\"\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    assert!(asked.lock().unwrap().starts_with("GET /stats/prometheus?usedonly HTTP/1.1\r\n"));
    let target = target.lock().unwrap().to_lowercase();
    assert!(
        target.contains("accept: text/plain;version=0.0.4") && target.contains("accept-encoding: identity"),
        "{target}"
    );
}

#[tokio::test]
async fn a_failed_source_does_not_affect_the_others() {
    let (garbage, _) = application("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n<html>\n", true).await;
    let (missing, _) = application("HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n", true).await;
    let (zipped, _) = application("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\nb 1\n", true).await;
    let (cut, _) = application("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nc 1\nd 2", true).await;
    let (hung, _) = application("HTTP/1.1 200 OK\r\n\r\ne 1\nf 2", false).await;
    let (binary, _) =
        application("HTTP/1.1 200 OK\r\ncontent-type: application/vnd.google.protobuf\r\n\r\ng 1\n", true)
            .await;
    let (away, _) = application("HTTP/1.1 302 Found\r\nlocation: https://example.com/\r\n\r\n", true).await;
    let (good, _) = application("HTTP/1.1 200 OK\r\n\r\nh 1\n", true).await;
    let scraper = scraper(None, &[hung, garbage, missing, zipped, cut, binary, away, good]);
    let (_, text) = scraped(&scraper, &headers(&[(SCRAPE_TIMEOUT, "2")]), "").await;
    let targets =
        [(hung, 0), (garbage, 0), (missing, 0), (zipped, 0), (cut, 0), (binary, 0), (away, 0), (good, 1)];
    for (port, up) in targets {
        let line = format!("app_health_agent_scrape_up{{source=\"application\",target=\"{port}\"}} {up}\n");
        assert!(text.contains(&line), "{line}: {text}");
    }
    let samples = text.lines().filter(|line| line.contains("{metrics_target="));
    let mut samples: Vec<_> = samples.map(str::to_owned).collect();
    samples.sort_unstable();
    let expected = [("c", cut), ("e", hung), ("h", good)];
    assert_eq!(samples, expected.map(|(name, port)| format!("{name}{{metrics_target=\"{port}\"}} 1")));
    let own = own(&scraper).await;
    for outcome in ["ok", "timeout", "bad_status", "bad_body", "bad_redirect"] {
        let series =
            format!("app_health_agent_scrapes_total{{source=\"application\",outcome=\"{outcome}\"}}");
        assert!(own.contains(&series), "{series}: {own}");
    }
}

async fn own(scraper: &Scraper) -> String {
    let body = scraper.own().into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

#[tokio::test]
async fn a_refused_connection() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let scraper = scraper(None, &[nobody]);
    scraped(&scraper, &headers(&[]), "").await;
    let series = "app_health_agent_scrapes_total{source=\"application\",outcome=\"refused\"} 1\n";
    assert!(own(&scraper).await.contains(series));
}

/// Without the agent's own order of arrival, the silent ones would take the time of the others.
#[tokio::test]
async fn silent_sources_do_not_truncate_a_large_one() {
    let line = format!("big{{padding=\"{}\"}} 1\n", "x".repeat(100));
    let big: &'static str = format!("HTTP/1.1 200 OK\r\n\r\n{}", line.repeat(10_000)).leak();
    let (envoy, _) = application("", false).await;
    let (silent, _) = application("", false).await;
    let (stalled, _) = application("HTTP/1.1 200 OK\r\n\r\na 1\n", false).await;
    let (big, _) = application(big, true).await;
    let scraper = scraper(Some(envoy), &[silent, stalled, big]);
    let (_, text) = scraped(&scraper, &headers(&[(SCRAPE_TIMEOUT, "5")]), "").await;
    assert_eq!(text.matches("\nbig{").count(), 10_000);
    for (port, up) in [(silent, 0), (stalled, 0), (big, 1)] {
        let line = format!("app_health_agent_scrape_up{{source=\"application\",target=\"{port}\"}} {up}\n");
        assert!(text.contains(&line), "{line}");
    }
    assert!(text.contains(&format!("a{{metrics_target=\"{stalled}\"}} 1\n")), "received before the deadline");
}

#[tokio::test]
async fn dropped_lines_are_counted_and_the_others_kept() {
    let body = "HTTP/1.1 200 OK\r\n\r\na 1\nb{c=\"\\d\"} 1\nd 1 -5\n# TYPE h histogram\nh_bucket{le=\"abc\"} 1\ne 1\n";
    let (target, _) = application(body, true).await;
    let scraper = scraper(None, &[target]);
    let (_, text) = scraped(&scraper, &headers(&[]), "").await;
    assert!(text.contains("\na 1\nb{c=\"\\\\d\"} 1\n# TYPE h histogram\ne 1\n"), "{text}");
    let labels = format!("{{source=\"application\",target=\"{target}\"}}");
    for line in [format!("scrape_up{labels} 1"), format!("scrape_lines_dropped{labels} 2")] {
        assert!(text.contains(&format!("\napp_health_agent_{line}\n")), "{line}: {text}");
    }
    let own = own(&scraper).await;
    for reason in ["invalid_timestamp", "invalid_bound"] {
        let line = format!(
            "app_health_agent_scrape_dropped_lines_total{{source=\"application\",reason=\"{reason}\"}} 1\n"
        );
        assert!(own.contains(&line), "{line}: {own}");
    }
    let (_, text) = scraped(&scraper, &headers(&[("user-agent", "Prometheus/2.53.5")]), "").await;
    assert!(
        text.contains("\n# TYPE h histogram\nh_bucket{le=\"abc\"} 1\ne 1\n"),
        "Prometheus keeps it: {text}"
    );
}

#[tokio::test]
async fn families_that_sources_share_are_counted() {
    let (envoy, _) = application(ENVOY, true).await;
    let (same, _) = application("HTTP/1.1 200 OK\r\n\r\nenvoy_x{} 2\ny 1\n", true).await;
    let (_, text) = scraped(&scraper(Some(envoy), &[same]), &headers(&[]), "").await;
    assert!(text.contains("\napp_health_agent_shared_families 1\n"), "{text}");
}

#[tokio::test]
async fn names_in_quotes_if_the_scraper_accepts_them() {
    let (target, asked) = application("HTTP/1.1 200 OK\r\n\r\n{\"a.b\",c=\"d\"} 1\ne 1\n", true).await;
    let scraper = scraper(None, &[target]);
    let accept = headers(&[("accept", "text/plain;version=1.0.0;escaping=allow-utf-8,*/*;q=0.2")]);
    let (content_type, text) = scraped(&scraper, &accept, "").await;
    assert_eq!(content_type, "text/plain; version=1.0.0; charset=utf-8; escaping=allow-utf-8");
    assert!(text.contains("\n{\"a.b\",c=\"d\"} 1\ne 1\n"), "{text}");
    assert!(asked.lock().unwrap().contains("accept: text/plain;version=1.0.0;escaping=allow-utf-8,"));
    let (content_type, text) = scraped(&scraper, &headers(&[]), "").await;
    assert_eq!(content_type, "text/plain; version=0.0.4; charset=utf-8");
    assert!(!text.contains("a.b") && text.contains("\ne 1\n"), "{text}");
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
async fn too_many_families_truncate_only_their_source() {
    let names: String = (0..15_000).map(|number| format!("x{number} 1\n")).collect();
    let greedy: &'static str = format!("HTTP/1.1 200 OK\r\n\r\n{names}").leak();
    let (greedy, _) = application(greedy, true).await;
    let (good, _) = application("HTTP/1.1 200 OK\r\n\r\n# TYPE g gauge\ng 1\n", true).await;
    let scraper = scraper(None, &[greedy, good]);
    let (_, text) = scraped(&scraper, &headers(&[]), "").await;
    for (name, is_kept) in [("x9999", true), ("x10000", false)] {
        let sample = format!("\n{name}{{metrics_target=\"{greedy}\"}} 1\n");
        assert_eq!(text.contains(&sample), is_kept, "{name}");
    }
    assert!(text.contains(&format!("\ng{{metrics_target=\"{good}\"}} 1\n")));
    for (port, up) in [(greedy, 0), (good, 1)] {
        let line = format!("app_health_agent_scrape_up{{source=\"application\",target=\"{port}\"}} {up}\n");
        assert!(text.contains(&line), "{line}");
    }
    let series = "app_health_agent_scrapes_total{source=\"application\",outcome=\"too_large\"} 1\n";
    assert!(own(&scraper).await.contains(series));
}

#[test]
fn timeouts() {
    for (said, millis) in [
        (None, 9500),
        (Some("10"), 9500),
        (Some("2.5"), 2000),
        (Some("600"), 9500),
        (Some("1"), 500),
        (Some("0.5"), 250),
        (Some("0.1"), 50),
        (Some("0"), 0),
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
