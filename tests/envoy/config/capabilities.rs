//! Tests that the capability allow-list of the filter contains exactly what the filter needs, in
//! every shipped configuration, and that Envoy reloads a filter that has trapped.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::future::join_all;
use kit::app::grpc::{GrpcAnswer, GrpcApp};
use kit::app::{App, answer};
use kit::caller;
use kit::envoy::{self, Envoy, Version, validate, workspace};
use kit::example;
use kit::net;
use kit::pod::with_long_timeouts;
use kit::wait;
use serde_json::{Value, json};

use wasmparser::Payload;

use super::{OK, chain, rendered};

/// Capabilities whose absence has no visible effect. The filter does nothing in
/// `proxy_on_vm_start`, and Envoy assumes success if it is not allowed to call it.
const UNSEEN: [&str; 1] = ["proxy_on_vm_start"];

/// The capabilities that a configuration of the Wasm filter allows.
fn listed(wasm: &Value) -> BTreeSet<String> {
    let list = &wasm["config"]["vm_config"]["capability_restriction_config"]["allowed_capabilities"];
    list.as_object().expect("an allow-list").keys().cloned().collect()
}

#[test]
fn capability_lists_are_equal_and_known_to_the_filter() {
    let wasm = std::fs::read(kit::pod::wasm()).expect("the filter can be read");
    let (mut imports, mut exports) = (BTreeSet::new(), Vec::new());
    for section in wasmparser::Parser::new(0).parse_all(&wasm) {
        match section.expect("the filter is WebAssembly") {
            Payload::ImportSection(section) => {
                imports
                    .extend(section.into_imports().map(|import| import.expect("an import").name.to_owned()));
            }
            Payload::ExportSection(section) => {
                exports.extend(section.into_iter().map(|export| export.expect("an export").name.to_owned()));
            }
            _ => {}
        }
    }
    let callbacks: BTreeSet<String> =
        exports.into_iter().filter(|name| name.starts_with("proxy_on_")).collect();
    // Envoy itself calls `proxy_on_memory_allocate`; the allow-list does not restrict that.
    let callbacks: BTreeSet<String> =
        callbacks.into_iter().filter(|name| name != "proxy_on_memory_allocate").collect();
    // The SDK imports and exports the whole ABI.
    let known: BTreeSet<String> = imports.union(&callbacks).cloned().collect();
    let template = workspace().join("envoy-config/bootstrap.yaml");
    let mut configurations = example::all();
    configurations
        .insert("bootstrap.yaml".into(), std::fs::read_to_string(template).expect("the template is there"));
    let (mut lists, mut distinct) = (0, BTreeSet::new());
    for (name, text) in configurations {
        for wasm in example::typed(&example::parse(&text), "Wasm") {
            lists += 1;
            let listed = listed(wasm);
            assert!(listed.is_subset(&known), "{name}: {listed:?}");
            distinct.insert(listed);
            assert_eq!(wasm["config"]["failure_policy"], "FAIL_RELOAD", "{name}");
        }
    }
    assert!(lists >= 4, "only {lists} configurations contain the filter");
    assert_eq!(distinct.len(), 1, "{distinct:?}");
}

/// Without the capability to replace bodies, the filter traps at the first one. The probe then fails
/// without a byte of it, and Envoy reloads the filter for the next probe.
#[tokio::test]
async fn a_filter_that_trapped_is_reloaded() {
    let ip = net::loopback();
    let app = App::routes(std::net::SocketAddr::new(ip, 0), None, |path| match path {
        "/body" => answer("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret"),
        _ => answer("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"),
    });
    let app = app.await;
    let probers = with_long_timeouts(json!({
        "/app-health/app/readyz": {"httpGet": {"port": app.port()}},
        "/app-health/body/readyz": {"httpGet": {"port": app.port(), "path": "/body"}},
    }));
    let mut config = rendered("reload", ip, &probers);
    let filter = chain(&mut config).iter_mut().find(|filter| filter["name"] == "envoy.filters.http.wasm");
    let vm_config = &mut filter.expect("the filter")["typed_config"]["config"]["vm_config"];
    let list = &mut vm_config["capability_restriction_config"]["allowed_capabilities"];
    list.as_object_mut().expect("an allow-list").remove("proxy_set_buffer_bytes");
    let envoy = Envoy::start(Version::Newest, envoy::folder("reload"), &config, 1).await;
    let listener = envoy::probe_listener(ip);
    for _ in 0..3 {
        assert_eq!(caller::probe(listener, "/app-health/app/readyz").await.status, 200);
        let trapped = caller::probe(listener, "/app-health/body/readyz").await;
        assert!(!trapped.complete || trapped.status >= 500, "{trapped:?}");
        assert!(!trapped.text().contains("secret"), "{trapped:?}");
        wait::until("the filter is reloaded", async || {
            caller::probe(listener, "/app-health/app/readyz").await.status == 200
        })
        .await;
    }
    assert!(envoy.log().contains("unexpected status"), "{}", envoy.log());
    envoy.stop().await;
}

/// Sends probes and returns their results, the filter's metrics and its log as lines. A probe
/// without a response within `limit` is the last line.
async fn observe(envoy: &Envoy, ip: std::net::IpAddr, limit: Duration) -> Vec<String> {
    let listener = envoy::probe_listener(ip);
    let mut seen = Vec::new();
    let once = ["/app-health/app/none", "/app-health/dead/readyz", "/app-health/grpc/readyz"];
    let then = ["/app-health/hop/readyz", "/app-lifecycle/dead/poststartz"];
    // More requests than one client may have in flight, so each has to free its place.
    for path in once.into_iter().chain(then).chain(["/app-health/app/readyz"; 12]) {
        let Ok(answer) = tokio::time::timeout(limit, caller::probe(listener, path)).await else {
            seen.push(format!("{path}: no answer"));
            return seen;
        };
        seen.push(format!("{path}: {} {:?} {}", answer.status, answer.word(), answer.complete));
    }
    let metrics = envoy.admin("/stats?filter=^wasmcustom").await.expect("an answer");
    seen.extend(metrics.lines().filter(|line| line.contains("=app;")).map(str::to_owned));
    let log = envoy.log();
    seen.extend(log.lines().filter_map(|line| line.find("probe dead/").map(|at| line[at..].to_owned())));
    seen
}

/// Starts Envoy without this capability, or with all of them if it is empty, and returns what
/// [`observe`] sees, or `None` if Envoy does not start.
async fn without(capability: &str) -> Option<Vec<String>> {
    let ip = net::loopback();
    let app = App::routes(std::net::SocketAddr::new(ip, 8080), None, |path| match path {
        "/hop" => answer("HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"),
        _ => answer(OK),
    });
    let app = app.await;
    let grpc = GrpcApp::scripted(ip, None, GrpcAnswer::serving(1)).await;
    let probers = with_long_timeouts(json!({
        "/app-health/app/readyz": {"httpGet": {"port": app.port()}},
        "/app-health/hop/readyz": {"httpGet": {"port": app.port(), "path": "/hop"}},
        "/app-health/dead/readyz": {"httpGet": {"port": 1}},
        "/app-health/grpc/readyz": {"grpc": {"port": grpc.port()}},
        "/app-lifecycle/dead/poststartz": {"httpGet": {"port": 1}},
    }));
    let name = format!("cap-{}", capability.trim_start_matches("proxy_"));
    let mut config = rendered(&name, ip, &probers);
    let filter = chain(&mut config).iter_mut().find(|filter| filter["name"] == "envoy.filters.http.wasm");
    let vm_config = &mut filter.expect("the filter")["typed_config"]["config"]["vm_config"];
    let list = &mut vm_config["capability_restriction_config"]["allowed_capabilities"];
    let removed = list.as_object_mut().expect("an allow-list").remove(capability);
    assert_eq!(removed.is_none(), capability.is_empty(), "{capability} is not in the list");
    let folder = envoy::folder(&name);
    validate(Version::Newest, &folder, &config.to_string()).await.ok()?;
    let envoy = Envoy::start(Version::Newest, folder, &config, 1).await;
    // What shows must differ, and that by a missing response too. What does not show must not depend
    // on the speed of the machine.
    let shows = !capability.is_empty() && !UNSEEN.contains(&capability);
    let limit = if shows { Duration::from_secs(5) } else { wait::timeout() };
    let seen = observe(&envoy, ip, limit).await;
    envoy.stop().await;
    Some(seen)
}

#[tokio::test]
async fn removing_any_capability_is_detected() {
    let template = workspace().join("envoy-config/bootstrap.yaml");
    let template = example::parse(&std::fs::read_to_string(template).expect("the template is there"));
    let capabilities: Vec<String> = listed(example::typed(&template, "Wasm")[0]).into_iter().collect();
    let whole = without("").await.expect("Envoy starts with all of them");
    for expected in ["/app-health/app/readyz: 200 \"\" true", "/app-health/hop/readyz: 200", "probe dead/"] {
        assert!(whole.iter().any(|line| line.starts_with(expected)), "{expected} is missing from {whole:#?}");
    }
    let mut unseen = Vec::new();
    for batch in capabilities.chunks(4) {
        let results = join_all(batch.iter().map(|capability| without(capability))).await;
        for (capability, seen) in batch.iter().zip(results) {
            if seen.as_ref() == Some(&whole) {
                unseen.push(capability.as_str());
            }
        }
    }
    assert_eq!(unseen, UNSEEN, "these can be missing without a visible effect");
}
