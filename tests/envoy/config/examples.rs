//! Tests of the examples: their common parts are equal to the rendered bootstrap, and they work as
//! described.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use address::LocalAddress;
use envoy_bootstrap::bootstrap::{Bootstrap, FilterCode};
use envoy_bootstrap::envoy_version::EnvoyVersion;
use kit::app::App;
use kit::caller;
use kit::envoy::{self, Envoy, Version};
use kit::example;
use kit::net;
use probe::PluginConfig;
use serde_json::{Value, json};

/// Clusters that only the agent's own bootstrap needs, for Envoy's metrics and for the merged
/// metrics.
const OPTIONAL_CLUSTERS: [&str; 2] = ["app_health_admin", "app_health_agent"];

fn named<'a>(list: &'a Value, name: &str) -> Option<&'a Value> {
    list.as_array()?.iter().find(|element| element["name"] == name)
}

/// Returns the only filter of this type.
fn one<'a>(config: &'a Value, name: &str) -> &'a Value {
    let found = example::typed(config, name);
    assert_eq!(found.len(), 1, "{name}");
    found[0]
}

fn plugin_configuration(config: &Value) -> &str {
    one(config, "Wasm")["config"]["configuration"]["value"].as_str().expect("text")
}

/// The probe filter without its configuration text, which differs in formatting only.
fn wasm(config: &Value) -> Value {
    let mut wasm = one(config, "Wasm").clone();
    wasm["config"]["configuration"]["value"] = Value::Null;
    wasm
}

fn port(address: &Value) -> u16 {
    let port = address["socket_address"]["port_value"].as_u64();
    port.and_then(|port| u16::try_from(port).ok()).expect("a port")
}

/// The bootstrap that the agent renders for the values of this example.
fn rendered_for(example: &Value) -> Value {
    let plugin: Value = serde_json::from_str(plugin_configuration(example)).expect("JSON");
    let status_port = plugin["statusPort"].as_u64().and_then(|port| u16::try_from(port).ok());
    let code = wasm(example)["config"]["vm_config"]["code"]["local"]["filename"].clone();
    let bootstrap = Bootstrap {
        probe_address: SocketAddr::new([0, 0, 0, 0].into(), status_port.expect("a port")),
        stats_address: None,
        local_address: LocalAddress::Tcp(([127, 0, 0, 1], 15004).into()),
        admin: LocalAddress::Tcp(([127, 0, 0, 1], port(&example["admin"]["address"])).into()),
        filter: Some(FilterCode::File(PathBuf::from(code.as_str().expect("a file")))),
        allow_from: Vec::new(),
        node: Vec::new(),
        hook_callers: None,
        reserved_ports: Vec::new(),
        reuse_connections: false,
        sources: vec![kit::pod::SOURCE],
        instance_ip: plugin["podIP"].as_str().and_then(|ip| ip.parse().ok()).expect("an address"),
        envoy_version: EnvoyVersion::NEWEST,
        app_probers: Some(plugin["probers"].to_string()),
        xds: None,
    };
    serde_json::from_str(&bootstrap.render()).expect("JSON")
}

/// The examples that contain the filter.
fn examples() -> Vec<(String, Value)> {
    let all = example::all().into_iter().map(|(name, text)| (name, example::parse(&text)));
    all.filter(|(_, config)| !example::typed(config, "Wasm").is_empty()).collect()
}

#[test]
fn examples_contain_the_rendered_clusters_and_filter() {
    for (name, example) in examples() {
        let rendered = rendered_for(&example);
        let [ours, theirs] = [&rendered, &example].map(|config| &config["static_resources"]["clusters"]);
        for cluster in ours.as_array().expect("clusters") {
            let cluster_name = cluster["name"].as_str().expect("a name");
            match named(theirs, cluster_name) {
                Some(found) => assert_eq!(found, cluster, "{name}"),
                None => assert!(OPTIONAL_CLUSTERS.contains(&cluster_name), "{name}: no {cluster_name}"),
            }
        }
        assert_eq!(wasm(&example), wasm(&rendered), "{name}");
        assert_eq!(one(&example, "LocalRateLimit"), one(&rendered, "LocalRateLimit"), "{name}");
        for part in ["layered_runtime", "stats_config"] {
            assert_eq!(example[part], rendered[part], "{name}");
        }
    }
}

#[test]
fn the_table_is_used_verbatim_and_proxy_ports_are_rejected() {
    for (name, example) in examples() {
        let read = |config| PluginConfig::parse(plugin_configuration(config).as_bytes()).expect("accepted");
        let (found, rendered) = (read(&example), read(&rendered_for(&example)));
        assert_eq!((found.pod_ip, &found.clusters, &found.probers), {
            (rendered.pod_ip, &rendered.clusters, &rendered.probers)
        });
        assert_eq!(found.warnings, Vec::<String>::new(), "{name}");
        let listeners = example["static_resources"]["listeners"].as_array().expect("listeners");
        for address in listeners.iter().chain([&example["admin"]]).map(|listener| &listener["address"]) {
            assert!(found.proxy_ports.contains(port(address)), "{name}: {} may be probed", port(address));
        }
    }
}

/// A separate probe listener is equal to the rendered one. A shared listener contains every part
/// that the filter needs.
#[test]
fn examples_contain_the_rendered_listeners() {
    let mut shared = 0;
    for (name, example) in examples() {
        let rendered = rendered_for(&example);
        let [ours, theirs] = [&rendered, &example].map(|config| &config["static_resources"]["listeners"]);
        let ours = named(ours, "app_health").expect("the probe listener");
        match named(theirs, "app_health") {
            Some(found) => {
                let without_table = |listener: &Value| -> Value {
                    let text = plugin_configuration(listener).to_owned();
                    let quoted = Value::String(text).to_string();
                    serde_json::from_str(&listener.to_string().replace(&quoted, "null")).expect("JSON")
                };
                assert_eq!(without_table(found), without_table(ours), "{name}");
            }
            None => {
                shared += 1;
                check_shared(&name, theirs, ours);
            }
        }
    }
    assert_eq!(shared, 1);
}

fn check_shared(name: &str, theirs: &Value, ours: &Value) {
    let [ours, theirs] = [ours, theirs].map(|listener| one(listener, "HttpConnectionManager"));
    let early = "early_header_mutation_extensions";
    assert_eq!(theirs[early], ours[early], "{name}");
    let routes = |manager: &Value| manager["route_config"]["virtual_hosts"][0]["routes"].as_array().cloned();
    let [ours, theirs] = [ours, theirs].map(|manager| routes(manager).expect("routes"));
    let of_kind = |routes: &[Value]| -> Vec<Value> {
        let by_kind = |route: &&Value| route["match"]["headers"][0]["name"] == "x-app-health-kind";
        routes.iter().filter(by_kind).cloned().collect()
    };
    let probes = of_kind(&ours);
    assert_eq!(theirs[..probes.len()], probes, "{name}: the routes of probes come first");
    let prefixes: Vec<&Value> = theirs[probes.len()..probes.len() + 2]
        .iter()
        .inspect(|route| assert_eq!(route["direct_response"], json!({"status": 404}), "{name}"))
        .map(|route| &route["match"]["prefix"])
        .collect();
    assert_eq!(prefixes, ["/app-health/", "/app-lifecycle/"], "{name}");
    for route in &theirs[probes.len() + 2..] {
        for filter in ["envoy.filters.http.wasm", "envoy.filters.http.local_ratelimit"] {
            assert_eq!(route["typed_per_filter_config"][filter]["disabled"], true, "{name}: {route}");
        }
    }
}

/// Without the marked lines, the changed files are equal to `before.yaml`.
#[test]
fn additions_to_an_existing_configuration_are_marked() {
    let unmarked = |text: &str| -> Vec<String> {
        let mut marked = false;
        let mut lines = Vec::new();
        for line in text.lines().skip_while(|line| line.starts_with('#')) {
            match line.trim() {
                line if line.starts_with("# >>> app-health") => marked = true,
                "# <<< app-health" => marked = false,
                "" => {}
                _ if !marked => lines.push(line.to_owned()),
                _ => {}
            }
        }
        lines
    };
    let before = unmarked(&example::text("existing-envoy/before.yaml"));
    for name in ["existing-envoy/after.yaml", "existing-envoy/shared-listener.yaml"] {
        assert_eq!(unmarked(&example::text(name)), before, "{name}");
    }
}

/// Envoy drains a listener without a direction only together with the outbound ones.
#[test]
fn every_listener_of_the_examples_has_a_direction() {
    for (file, text) in example::all().into_iter().chain(example::of_machines()) {
        let config = example::parse(&text);
        let listeners = config["static_resources"]["listeners"].as_array();
        for listener in listeners.into_iter().flatten().filter(|listener| listener["name"] != "app_health") {
            let direction = listener["traffic_direction"].as_str();
            assert!(matches!(direction, Some("INBOUND" | "OUTBOUND")), "{file}: {}", listener["name"]);
        }
    }
}

fn paths_of(app: &App) -> BTreeSet<String> {
    app.seen().iter().map(kit::app::Seen::request_line).collect()
}

async fn application(ip: IpAddr, ready: &'static str) -> App {
    App::routes(SocketAddr::new(ip, 8080), None, move |path| {
        let status = if path == "/ready" { ready } else { "200 OK" };
        kit::app::answer(format!("HTTP/1.1 {status}\r\nContent-Length: 5\r\n\r\nhello"))
    })
    .await
}

#[tokio::test]
async fn an_existing_envoy_answers_probes_beside_its_traffic() {
    for (file, probes_on) in [("after", 15020), ("shared-listener", 10080)] {
        let ip = net::loopback();
        let folder = envoy::folder(file);
        let text = example::text(&format!("existing-envoy/{file}.yaml"));
        let config = example::runnable(&text, ip, &folder);
        let envoy = Envoy::start(Version::Newest, folder, &config, 1).await;
        let (probes, traffic) = (SocketAddr::new(ip, probes_on), SocketAddr::new(ip, 10080));

        let app = application(ip, "200 OK").await;
        let ready = caller::probe(probes, "/app-health/app/readyz").await;
        assert_eq!((ready.status, ready.text().as_str()), (200, ""), "{file}");
        assert_eq!(caller::probe(probes, "/app-health/app/livez").await.status, 200, "{file}");
        for path in ["/app-health/other/readyz", "/app-lifecycle/app/prestopz"] {
            let unknown = caller::probe(probes, path).await;
            assert_eq!((unknown.status, unknown.word().as_str()), (404, "unknown_probe"), "{file} {path}");
        }
        let forged = [("X-App-Health-Kind", "http"), ("X-App-Health-Dst", "127.0.0.1:1")];
        for path in ["/", "/api/x", "/ready"] {
            let answer = caller::get(traffic, path, &forged).await;
            assert_eq!((answer.status, answer.text().as_str()), (200, "hello"), "{file} {path}");
        }
        let expected = ["", "GET / HTTP/1.1", "GET /api/x HTTP/1.1", "GET /ready HTTP/1.1"];
        assert_eq!(paths_of(&app), expected.map(str::to_owned).into(), "{file}");
        // A listener with the filter removes its internal headers from requests; any other listener
        // passes them on.
        let forged = app.seen().iter().any(|seen| seen.header("x-app-health-kind").is_some());
        assert_eq!(forged, probes_on != 10080, "{file}: {:?}", app.seen());

        app.stop().await;
        let stopped = caller::probe(probes, "/app-health/app/livez").await;
        assert_eq!(stopped.word(), "refused", "{file}: {stopped:?}");
        envoy.stop().await;
    }
}
