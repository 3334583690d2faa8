//! Our agent in the place of Istio's, with a real istiod: certificates, configuration, and what remains of both
//! while istiod is unavailable.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;

use kit::promtool::Promtool;
use kit::vm::application::{Application, READY_PATH};
use kit::vm::documents::{GROUP, NAMESPACE, PORT};
use kit::{caller, envoy, net, process, wait};
use nix::sys::signal::{Signal, kill};
use serde_json::{Value, json};

use crate::mutual_tls::{HOST, SERVICE_PORT, TLS_PORT, service, sidecar, strict};
use istio_tests::istio;
use istio_tests::istiod::Istiod;
use istio_tests::pod_sidecar::{PodSidecar, called_pilot_agent};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs istiod: ./justw test-istio"]
async fn a_sidecar_gets_certificates_and_configuration() {
    let mut istiod = Istiod::start_with_auto_mtls("istio-sidecar").await;
    let application = Application::start("sidecar", SocketAddr::new(net::loopback(), PORT)).await;
    let ip = application.address.ip();
    let outbound = SocketAddr::new(net::loopback(), SERVICE_PORT);
    let inbound = SocketAddr::new(ip, TLS_PORT);
    for object in [service(), strict(), sidecar(outbound, inbound)] {
        istiod.cluster.apply(&object.to_string());
    }
    istiod.cluster.apply(&kubernetes_service().to_string());
    let address = istiod.cluster.get(&["service", "web", "-n", NAMESPACE]);
    let address = address["spec"]["clusterIP"].as_str().and_then(|ip| ip.parse::<Ipv4Addr>().ok());
    let address = address.expect("an address");
    let variables = [
        ("APP_HEALTH_ENVOY_HANG_SECONDS", "10"),
        ("EXIT_ON_ZERO_ACTIVE_CONNECTIONS", "true"),
        ("MINIMUM_DRAIN_DURATION", "1s"),
    ];
    let mut pod = PodSidecar::start(&istiod, ip, &variables);
    pod.until_ready().await;
    for name in ["web", "web.shop", "web.shop.svc.cluster.local"] {
        let what = || format!("the address of {name}:\n{}", pod.log());
        wait::until_or(what, async || pod.look_up(name).await == [address]).await;
    }
    let request = format!("GET {READY_PATH} HTTP/1.1\r\nHost: {HOST}\r\n\r\n");
    let what = || format!("a response over mutual TLS:\n{}\n{}", pod.log(), istiod.log());
    wait::until_or(what, async || caller::send(outbound, request.as_bytes()).await.status == 200).await;
    // Only the outbound listener can have encrypted it: the inbound one refuses plaintext.
    assert_eq!(caller::send(inbound, request.as_bytes()).await.status, 0);
    let expected = format!("spiffe://cluster.local/ns/{NAMESPACE}/sa/{GROUP}");
    let certificates = pod.certificates().await;
    let names: Vec<_> =
        certificates.iter().filter_map(|found| found.pointer("/subject_alt_names/0/uri")?.as_str()).collect();
    assert!(!names.is_empty() && names.iter().all(|name| *name == expected), "{certificates:?}");

    // The whole container restarts while istiod is unavailable.
    let names = [format!("{outbound}").replace(':', "_"), format!("{HOST}:{SERVICE_PORT}")];
    wait::until("the configuration is stored", async || pod.has_stored(&names)).await;
    istiod.kill();
    pod.kill();
    pod.start_container();
    pod.until_ready().await;
    let what = || format!("a response without istiod:\n{}", pod.log());
    wait::until_or(what, async || caller::send(outbound, request.as_bytes()).await.status == 200).await;
    assert_eq!(pod.look_up("web.shop").await, [address], "a stored name");

    // An Envoy that hangs is replaced, also while istiod is unavailable.
    let [hanging] = process::children(pod.pid())[..] else { panic!("one Envoy:\n{}", pod.log()) };
    kill(hanging, Signal::SIGSTOP).expect("it runs");
    let is_replaced = async || matches!(process::children(pod.pid())[..], [envoy] if envoy != hanging);
    wait::until_or(|| format!("another Envoy:\n{}", pod.log()), is_replaced).await;
    pod.until_ready().await;
    wait::until_or(what, async || caller::send(outbound, request.as_bytes()).await.status == 200).await;

    // istiod is back, with a plugin that only Istio's agent can load: it is refused, and the listeners stay as they are.
    istiod.start_process(&[]).await;
    istiod.cluster.apply(&wasm_plugin().to_string());
    let plugin = format!("{NAMESPACE}.{PLUGIN}");
    let is_refused = async || {
        let says =
            |line: &str| line.contains(&plugin) && line.contains("this agent does not load WebAssembly");
        pod.log().lines().any(says)
            && pod
                .metrics()
                .await
                .lines()
                .any(|line| line.starts_with(REFUSED_PLUGINS) && !line.ends_with(" 0"))
    };
    wait::until_or(|| format!("the plugin is refused:\n{}", pod.log()), is_refused).await;
    assert_eq!(caller::send(outbound, request.as_bytes()).await.status, 200);

    for path in ["/metrics", "/stats/prometheus"] {
        let metrics = caller::get(pod.status, path, &[]).await;
        let text = metrics.text();
        assert!(metrics.status == 200 && text.contains("\nenvoy_server_live{"), "{metrics:?}");
        if let Some(promtool) = Promtool::find() {
            promtool.text(&text).unwrap_or_else(|error| panic!("{path}: {error}"));
        }
    }
    kill(pod.pid(), Signal::SIGTERM).expect("it runs");
    // Envoy keeps the connection between its own two listeners open, until it says in a response that it drains.
    wait::until("an open connection is counted", async || {
        pod.log().lines().any(|line| line.contains("connections=Some(") && !line.contains("Some(0)"))
    })
    .await;
    assert!(!pod.has_ended(), "{}", pod.log());
    let has_ended = async || {
        caller::send(outbound, request.as_bytes()).await;
        pod.has_ended()
    };
    wait::until_or(|| format!("the end of the drain:\n{}", pod.log()), has_ended).await;
    assert_eq!(pod.end(), Some(0), "{}", pod.log());
}

const PLUGIN: &str = "plugin";
const REFUSED_PLUGINS: &str = "app_health_agent_xds_responses_total{type=\"ecds\",result=\"rejected\"}";

fn wasm_plugin() -> Value {
    json!({
        "apiVersion": "extensions.istio.io/v1alpha1",
        "kind": "WasmPlugin",
        "metadata": {"name": PLUGIN, "namespace": NAMESPACE},
        "spec": {"url": "https://plugins.example.com/plugin.wasm"},
    })
}

/// The Sidecar shows services with this port only.
fn kubernetes_service() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": SERVICE_PORT}]},
    })
}

#[test]
#[ignore = "needs Istio's agent: ./justw test-istio"]
fn what_only_istios_agent_can_do_is_left_to_it() {
    let folder = envoy::folder("istio-fallback");
    let ours = called_pilot_agent(&folder.join("ours"));
    let stock = folder.join("stock");
    std::fs::create_dir_all(&stock).expect("a writable folder");
    let _ = std::fs::remove_file(stock.join("pilot-agent"));
    std::os::unix::fs::symlink(istio("pilot-agent"), stock.join("pilot-agent")).expect("a writable folder");
    let path = std::env::join_paths([folder.join("ours"), stock]).expect("paths");
    let run = |arguments: &[&str], fallback: &str| {
        let mut command = Command::new(&ours);
        command.args(arguments).current_dir(&folder).env_clear().env("PATH", &path);
        let output = command.env("APP_HEALTH_FALLBACK", fallback).output().expect("our agent");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    // The name of the program decides, and the version is that of Istio's agent.
    let (code, stdout, stderr) = run(&["version", "--short"], "");
    let stock =
        Command::new(istio("pilot-agent")).args(["version", "--short"]).output().expect("Istio's agent");
    assert_eq!((code, stdout.as_bytes()), (Some(0), &*stock.stdout), "{stderr}");
    let (code, stdout, stderr) = run(&["version", "--short"], "off");
    assert_eq!((code, stdout.as_str()), (Some(64), ""), "{stderr}");
    // A type of proxy that Istio's agent does not know either ends it, which proves that it was executed.
    let (code, _, stderr) = run(&["proxy", "nothing"], "");
    assert!(stderr.contains("proxy nothing: only sidecars are supported; executing "), "{stderr}");
    assert!(stderr.contains("invalid proxy Type: nothing"), "{code:?}: {stderr}");
    let (code, _, stderr) = run(&["proxy", "router"], "off");
    assert_eq!(code, Some(64), "{stderr}");
    assert!(stderr.contains("proxy router: only sidecars are supported"), "{stderr}");
}
