//! Tests through a real Envoy that redirects are followed as kubelet follows them.

use std::net::SocketAddr;
use std::time::Duration;

use kit::app::tls::{self, Tls};
use kit::app::{App, Step, answer};
use kit::net;
use kit::pod::Pod;
use serde_json::{Map, Value, json};

fn to(status: u16, location: &str) -> Vec<Step> {
    answer(format!("HTTP/1.1 {status} Redirect\r\nLocation: {location}\r\nContent-Length: 5\r\n\r\nhello"))
}

/// `/hop/N` redirects to `/hop/N-1`, and `/hop/0` answers 200, so `/hop/9` takes ten requests.
fn application(port: u16, tls_port: u16) -> impl Fn(&str) -> Vec<Step> + Send + Sync + 'static {
    move |path| match path.trim_start_matches('/').split_once('/') {
        Some(("hop", number)) => match number.parse::<u16>().expect("a number") {
            0 => answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
            number => to(302, &format!("/hop/{}", number - 1)),
        },
        Some(("status", status)) => to(status.parse().expect("a status"), "/hop/0"),
        Some(("to-tls", _)) => to(302, &format!("https://127.0.0.1:{tls_port}/hop/0")),
        Some(("absolute", ip)) => to(302, &format!("http://{ip}:{port}/hop/0")),
        Some(("own-port", ip)) => to(302, &format!("http://{ip}:15020/stats/prometheus")),
        Some(("refused", ip)) => to(302, &format!("http://{ip}:1/")),
        Some(("other", _)) => to(302, "http://example.com/"),
        Some(("metadata", _)) => to(302, "http://169.254.169.254/latest"),
        Some(("relative", _)) => to(302, "x/../../../hop/0?a=b"),
        Some(("broken", _)) => to(302, "http://[::1/%zz"),
        Some(("loop", _)) => to(302, "/loop/x"),
        Some(("none", _)) => answer("HTTP/1.1 302 Found\r\nContent-Length: 0\r\n\r\n"),
        Some(("to-failure", _)) => to(302, "/failure/x"),
        Some(("failure", _)) => answer("HTTP/1.1 503 No\r\nContent-Length: 6\r\n\r\nsecret"),
        Some(("to-other", _)) => to(302, "/other/x"),
        Some(("to-silence", _)) => to(302, "/silence/x"),
        Some(("silence", _)) => vec![Step::Hang],
        Some(("to-closed", _)) => to(302, "/closed/x"),
        Some(("closed", _)) => vec![],
        Some(("to-nonsense", _)) => to(302, "/nonsense/x"),
        Some(("nonsense", _)) => answer("nonsense\r\n\r\n"),
        _ => answer("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"),
    }
}

#[tokio::test]
async fn every_kind() {
    tls::install_provider();
    let ip = net::loopback();
    let acceptor = Tls::default().acceptor();
    let tls_app = App::routes(SocketAddr::new(ip, 0), Some(acceptor), application(0, 0)).await;
    let address = SocketAddr::new(ip, 8080);
    let app = App::routes(address, None, application(8080, tls_app.port())).await;
    let rows = [
        ("hop/0", 200, ""),
        ("hop/1", 200, ""),
        ("hop/9", 200, ""),
        ("hop/10", 528, "redirect"),
        ("loop/x", 528, "redirect"),
        ("status/301", 200, ""),
        ("status/303", 200, ""),
        ("status/307", 200, ""),
        ("status/308", 200, ""),
        ("status/300", 200, ""),
        ("status/304", 200, ""),
        ("absolute/IP", 200, ""),
        ("relative/deep/er", 200, ""),
        ("own-port/IP", 528, "redirect"),
        ("refused/IP", 502, "refused"),
        ("other/x", 200, ""),
        ("to-other/x", 200, ""),
        ("metadata/x", 200, ""),
        ("none/x", 200, ""),
        ("broken/x", 528, "redirect"),
        ("to-failure/x", 503, ""),
        ("to-silence/x", 504, "timeout"),
        ("to-closed/x", 520, "closed"),
        ("to-nonsense/x", 527, "protocol"),
    ];
    let path = |row: &str| format!("/{}", row.replace("IP", &ip.to_string()));
    let container = |row: &str| row.replace('/', "_");
    let table: Map<String, Value> = rows
        .iter()
        .map(|(row, ..)| {
            let prober = json!({"httpGet": {"port": app.port(), "path": path(row)}});
            (format!("/app-health/{}/readyz", container(row)), prober)
        })
        .collect();
    let mut table = Value::Object(table);
    table["/app-health/to-silence_x/readyz"]["timeoutSeconds"] = 1.into();
    let pod = Pod::start("redirect", ip, &table).await;
    for (row, status, word) in rows {
        let answer = pod.probe(&container(row)).await;
        assert_eq!((answer.status, answer.word().as_str()), (status, word), "{row}: {}", pod.envoy.log());
        assert_eq!(answer.header("location"), None, "{row}");
        assert!(!answer.text().contains("secret"), "{row}");
    }
    pod.envoy.stop().await;
}

/// The second request of a probe gets the remainder of the declared timeout.
#[tokio::test]
async fn redirects_share_one_timeout() {
    let ip = net::loopback();
    let slow = |path: &str| {
        let mut steps = vec![Step::Wait(Duration::from_millis(700))];
        steps.extend(to(302, "/again").into_iter().skip(1));
        if path == "/again" {
            steps.truncate(1);
            steps.push(Step::Write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec()));
        }
        steps
    };
    let app = App::routes(SocketAddr::new(ip, 0), None, slow).await;
    let prober = |seconds| json!({"httpGet": {"port": app.port(), "path": "/"}, "timeoutSeconds": seconds});
    let table = json!({"/app-health/short/readyz": prober(1), "/app-health/long/readyz": prober(60)});
    let pod = Pod::start("redirect-deadline", ip, &table).await;
    let answer = pod.probe("short").await;
    assert_eq!((answer.status, answer.word().as_str()), (504, "timeout"));
    assert_eq!(pod.probe("long").await.status, 200);
    pod.envoy.stop().await;
}

/// Envoy's answer for a closed port is recognized, even if the redirected request looks like gRPC.
#[tokio::test]
async fn a_redirected_request_with_a_content_type_of_grpc_can_fail() {
    let ip = net::loopback();
    let app = App::start(ip, to(307, &format!("http://{ip}:1/"))).await;
    let headers = json!([{"name": "Content-Type", "value": "application/grpc"}]);
    let http = json!({"port": app.port(), "httpHeaders": headers});
    let pod = Pod::start("redirect-grpc", ip, &json!({"/app-health/app/readyz": {"httpGet": http}})).await;
    assert_eq!(pod.probe("app").await.status, 502);
    pod.envoy.stop().await;
}

/// The request that follows a redirect has the headers that kubelet would send.
#[tokio::test]
async fn redirected_requests_equal_kubelets() {
    let ip = net::loopback();
    let route = |path: &str| match path {
        "/first" => to(302, "/second"),
        _ => answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    };
    let app = App::routes(SocketAddr::new(ip, 0), None, route).await;
    let headers = json!([
        {"name": "Host", "value": "shop.example.com"},
        {"name": "X-Forwarded-For", "value": "192.0.2.1"},
        {"name": "Content-Type", "value": "text/plain"},
    ]);
    let http = json!({"port": app.port(), "path": "/first", "httpHeaders": headers});
    let table = json!({"/app-health/app/readyz": {"httpGet": http}});
    let pod = Pod::start("redirect-head", ip, &table).await;
    assert_eq!(pod.probe("app").await.status, 200);
    let seen = app.seen();
    let [_, hop] = seen.as_slice() else { panic!("two connections, not {seen:?}") };
    assert_eq!(hop.request_line(), "GET /second HTTP/1.1");
    let mut lines = hop.headers();
    lines.sort();
    let expected = [
        "Accept: */*".to_owned(),
        "Connection: close".to_owned(),
        "Host: shop.example.com".to_owned(),
        format!("Referer: http://{ip}:{}/first", app.port()),
        "User-Agent: kube-probe/1.36".to_owned(),
        "X-Forwarded-For: 192.0.2.1".to_owned(),
    ];
    assert_eq!(lines, expected);
    pod.envoy.stop().await;
}
