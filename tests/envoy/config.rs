//! Tests of the shipped Envoy configuration: a real Envoy accepts all of it, and without a working
//! filter Envoy connects to no application.

mod capabilities;
mod examples;
mod flags;

use envoy_bootstrap::bootstrap::{Bootstrap, FilterCode};
use kit::app::grpc::{GrpcAnswer, GrpcApp};
use kit::app::tls::Identity;
use kit::app::{App, answer};
use kit::caller;
use kit::envoy::{self, Envoy, Version, validate};
use kit::example;
use kit::net;
use kit::pod::Pod;
use serde_json::{Value, json};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret";

/// The names of the two forms of the filter, and the filters.
fn forms() -> [(&'static str, FilterCode); 2] {
    [
        ("envoy.filters.http.wasm", FilterCode::File(kit::pod::wasm())),
        ("envoy.filters.http.dynamic_modules", FilterCode::Module(kit::pod::module())),
    ]
}

/// The bootstrap that the agent renders for these probers, with the wasm form.
fn rendered(name: &str, ip: std::net::IpAddr, probers: &Value) -> Value {
    rendered_with(name, ip, probers, FilterCode::File(kit::pod::wasm()))
}

fn rendered_with(name: &str, ip: std::net::IpAddr, probers: &Value, filter: FilterCode) -> Value {
    let bootstrap = Bootstrap { filter: Some(filter), ..Pod::bootstrap(name, ip, probers) };
    serde_json::from_str(&bootstrap.render()).expect("a bootstrap is JSON")
}

/// The list of HTTP filters that contains the probe filter.
fn chain(config: &mut Value) -> &mut Vec<Value> {
    let chain = config
        .pointer_mut("/static_resources/listeners/0/filter_chains/0/filters/1/typed_config/http_filters");
    chain.and_then(Value::as_array_mut).expect("the probe listener comes first")
}

#[tokio::test]
async fn every_example_is_valid() {
    for (name, text) in example::all().into_iter().chain(example::of_machines()) {
        let folder = envoy::folder("example");
        let identity = Identity::new("app.example.com");
        example::certificates(&folder, &identity);
        for (file, pem) in [("gateway.pem", &identity.certificate), ("gateway-key.pem", &identity.key)] {
            std::fs::write(folder.join(file), pem).expect("a writable folder");
        }
        let placed = example::placed(&text, net::loopback(), &folder);
        if let Err(error) = validate(Version::Newest, &folder, &placed).await {
            panic!("{name}: {error}");
        }
    }
}

/// The applications that would answer the probes, one for each kind.
struct Applications {
    http: App,
    tcp: App,
    _grpc: GrpcApp,
}

impl Applications {
    async fn start(ip: std::net::IpAddr) -> (Self, Value) {
        let http = App::start(ip, answer(OK)).await;
        let tcp = App::start(ip, answer(OK)).await;
        let grpc = GrpcApp::scripted(ip, None, GrpcAnswer::serving(1)).await;
        let table = json!({
            "/app-health/http/readyz": {"httpGet": {"port": http.port()}},
            "/app-health/https/readyz": {"httpGet": {"port": http.port(), "scheme": "HTTPS"}},
            "/app-health/tcp/readyz": {"tcpSocket": {"port": tcp.port()}},
            "/app-health/grpc/readyz": {"grpc": {"port": grpc.port()}},
            "/app-lifecycle/http/prestopz": {"httpGet": {"port": http.port()}},
        });
        (Self { http, tcp, _grpc: grpc }, table)
    }
}

/// Requests every declared probe, with and without forged headers of the filter, and asserts that
/// each response has this status and that Envoy opens no upstream connection.
async fn dials_nobody(envoy: &Envoy, ip: std::net::IpAddr, apps: &Applications, table: &Value, status: u16) {
    let listener = envoy::probe_listener(ip);
    for path in table.as_object().expect("a table").keys() {
        assert_eq!(caller::probe(listener, path).await.status, status, "{path}");
        for kind in ["http", "https", "tcp", "http-x-forwarded-proto"] {
            let destination = apps.http.address.to_string();
            let forged = [
                ("X-App-Health-Kind", kind),
                ("X-App-Health-Dst", &destination),
                ("X-Envoy-Original-Dst-Host", &destination),
            ];
            assert_eq!(caller::get(listener, path, &forged).await.status, status, "{path}, forged {kind}");
        }
    }
    let stats =
        envoy.admin("/stats?filter=^cluster.app_health_.*upstream_cx_total$").await.expect("an answer");
    let clusters: Vec<&str> = stats.lines().filter(|line| line.starts_with("cluster.")).collect();
    assert!(clusters.len() >= 7, "expected statistics of every cluster: {stats}");
    assert!(clusters.iter().all(|line| line.ends_with(": 0")), "{stats}");
    for app in [&apps.http, &apps.tcp] {
        caller::get(app.address, "/", &[]).await;
        assert_eq!(app.seen_at_least(1).await.len(), 1, "only this connection of the test");
    }
}

#[tokio::test]
async fn without_the_filter_envoy_connects_to_no_application() {
    let ip = net::loopback();
    for (name, filter) in forms() {
        let (apps, table) = Applications::start(ip).await;
        let mut config = rendered_with("no-filter", ip, &table, filter);
        let before = chain(&mut config).len();
        chain(&mut config).retain(|filter| filter["name"] != name);
        assert_eq!(chain(&mut config).len(), before - 1);
        let envoy = Envoy::start(Version::Newest, envoy::folder("no-filter"), &config, 1).await;
        dials_nobody(&envoy, ip, &apps, &table, 404).await;
        envoy.stop().await;
    }
}

/// A module that starts and traps at every request.
const TRAP: &str = r#"(module
    (memory (export "memory") 1)
    (global $free (mut i32) (i32.const 1024))
    (func (export "proxy_abi_version_0_2_1"))
    (func (export "proxy_on_memory_allocate") (param i32) (result i32)
        global.get $free
        global.get $free local.get 0 i32.add global.set $free)
    (func (export "proxy_on_vm_start") (param i32 i32) (result i32) i32.const 1)
    (func (export "proxy_on_configure") (param i32 i32) (result i32) i32.const 1)
    (func (export "proxy_on_context_create") (param i32 i32))
    (func (export "proxy_on_request_headers") (param i32 i32 i32) (result i32) unreachable))"#;

#[tokio::test]
async fn a_filter_that_traps_connects_to_no_application() {
    let ip = net::loopback();
    let (apps, table) = Applications::start(ip).await;
    let folder = envoy::folder("trap");
    let wasm = folder.join("trap.wasm");
    std::fs::write(&wasm, wat::parse_str(TRAP).expect("a module")).expect("a writable folder");
    let mut config = rendered("trap", ip, &table);
    let filter = chain(&mut config).iter_mut().find(|filter| filter["name"] == "envoy.filters.http.wasm");
    filter.expect("the filter")["typed_config"]["config"]["vm_config"]["code"] =
        json!({"local": {"filename": wasm}});
    let envoy = Envoy::start(Version::Newest, folder, &config, 1).await;
    dials_nobody(&envoy, ip, &apps, &table, 503).await;
    envoy.stop().await;
}

#[tokio::test]
async fn a_file_that_is_not_a_filter_is_rejected() {
    let folder = envoy::folder("no-filter-file");
    let file = folder.join("filter");
    let ip = net::loopback();
    for filter in [FilterCode::File(file.clone()), FilterCode::Module(file.clone())] {
        let _ = std::fs::remove_file(&file);
        let config = rendered_with("no-filter-file", ip, &json!({}), filter).to_string();
        for bytes in [None, Some(b"".as_slice()), Some(b"no filter")] {
            if let Some(bytes) = bytes {
                std::fs::write(&file, bytes).expect("a writable folder");
            }
            validate(Version::Newest, &folder, &config).await.expect_err("Envoy must not start with it");
        }
    }
}
