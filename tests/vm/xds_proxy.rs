//! Envoy's xDS through the agent: a real Envoy, the agent with `--proxy-xds`, and discovery.

mod faults;
mod setup;
mod shutdown;
mod storage;
mod versions;

use std::fs::Permissions;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use kit::app::switched::Behavior;
use kit::app::tls;
use kit::sidecar::Builder;
use kit::vm::certificates::{Authority, DISCOVERY_NAME, Files, certificate, presented_certificate};
use kit::vm::documents::{GROUP, NAMESPACE};
use kit::vm::machine::Machine;
use kit::{envoy, net, not_tested, wait};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use setup::Setup;

#[tokio::test]
async fn state_of_the_world_passes_through() {
    passes_through("xds-sotw", "sotw").await;
}

#[tokio::test]
async fn incremental_xds_passes_through() {
    passes_through("xds-delta", "delta").await;
}

/// Configuration and health travel on one stream; Envoy does not notice that discovery is lost, and
/// gets new endpoints afterwards, without what it has already.
async fn passes_through(name: &str, variant: &str) {
    let mut setup = Setup::start(name, &["--xds", variant]).await;
    let own = setup.address();
    setup.until_endpoints(&[own]).await;
    setup.application.set_behavior(Behavior::Failing);
    setup.until_endpoints(&[]).await;
    setup.application.set_behavior(Behavior::Serving);
    setup.until_endpoints(&[own]).await;
    let view = setup.view().await;
    assert_eq!((&view["envoy"], &view["connected"]), (&variant.into(), &true.into()), "{view:#}");

    setup.discovery.kill().await;
    setup.until_view("disconnected", |view| view["connected"] == false).await;
    assert_eq!(setup.endpoints().await, [own].into());
    assert_eq!(setup.stat("control_plane.connected_state").await, Some(1));
    let clusters_before = setup.stat("cluster_manager.cds.update_success").await;
    setup.discovery.start().await.unwrap();
    let folder = envoy::folder(name);
    let mut other = Machine::new(&folder, "other", net::loopback()).await;
    other.report_plaintext(&setup.discovery);
    other.start_agent().expect("the agent starts");
    setup.until_endpoints(&[own, other.application.address]).await;
    assert_eq!(
        setup.stat("cluster_manager.cds.update_success").await,
        clusters_before,
        "clusters were sent again"
    );
    assert_eq!(setup.stat("cluster.xds-grpc.upstream_rq_total").await, Some(1), "Envoy's stream was lost");
    setup.stop().await;
}

#[tokio::test]
async fn envoy_starts_from_the_cache_without_a_control_plane() {
    for variant in ["sotw", "delta"] {
        let name = format!("xds-cache-{variant}");
        let mut setup = Setup::start(&name, &["--xds", variant]).await;
        let own = setup.address();
        setup.until_endpoints(&[own]).await;
        setup.until_stored().await;
        setup.discovery.kill().await;
        setup.restart(&[]).await;
        setup.until_endpoints(&[own]).await;
        let view = setup.until_view("stale", |view| !view["stale"].is_null()).await;
        assert_eq!(view["connected"], false);
        let ready = setup.sidecar().ready("").await.text();
        assert!(ready.contains("configuration from cache, stale: "), "{ready}");
        assert!(setup.sidecar().ready("?verbose").await.text().contains("\"configuration\":\"cache\""));
        assert!(setup.sidecar().log().contains("xDS configuration served from the cache"));
        setup.discovery.start().await.unwrap();
        setup.until_view("confirmed", |view| view["stale"].is_null() && view["connected"] == true).await;
        assert!(!setup.sidecar().ready("").await.text().contains("stale"));
        setup.until_endpoints(&[own]).await;
        setup.stop().await;
    }
}

#[tokio::test]
async fn unusable_caches_are_ignored_with_a_reason() {
    let mut setup = Setup::start("xds-bad-cache", &[]).await;
    setup.until_endpoints(&[setup.address()]).await;
    setup.until_stored().await;
    setup.discovery.kill().await;
    let good = std::fs::read(setup.cache()).expect("a stored configuration");
    let mut damaged = good.clone();
    *damaged.last_mut().expect("a content") ^= 0xff;
    for (content, flags, reason) in [
        (&damaged, &[][..], "damaged"),
        (&good, &["--namespace", "other"][..], "another node"),
        (&good, &["--xds-cache-max-age", "1ms"][..], "older than --xds-cache-max-age"),
    ] {
        setup.kill().await;
        std::fs::write(setup.cache(), content).expect("a writable folder");
        setup.start_sidecar(flags).await;
        let what = || format!("the reason {reason:?} is logged");
        let sidecar = setup.sidecar();
        wait::until_or(what, async || sidecar.log().contains(reason)).await;
        setup.until_view("disconnected", |view| !view["lastError"].is_null()).await;
        assert!(setup.endpoints().await.is_empty());
    }
    setup.stop().await;
}

#[tokio::test]
async fn a_state_directory_that_cannot_be_written_changes_nothing_else() {
    let setup = Setup::start("xds-read-only", &[]).await;
    let own = setup.address();
    setup.until_endpoints(&[own]).await;
    setup.until_stored().await;
    // A directory in the place of the file makes every write fail, also for root.
    std::fs::remove_file(setup.cache()).expect("a stored configuration");
    std::fs::create_dir_all(setup.cache().join("occupied")).expect("a writable folder");
    setup.application.set_behavior(Behavior::Failing);
    setup.until_endpoints(&[]).await;
    let sidecar = setup.sidecar();
    wait::until("the failure is logged", async || sidecar.log().contains("xDS configuration not stored"))
        .await;
    assert!(sidecar.metric("app_health_agent_xds_stores_total{result=\"failed\"}").await >= 1.0);
    setup.application.set_behavior(Behavior::Serving);
    setup.until_endpoints(&[own]).await;
    assert_eq!(sidecar.log().matches("xDS configuration not stored").count(), 1);
    setup.stop().await;
}

/// The socket gives out the workload's private key.
#[tokio::test]
async fn only_the_agents_user_may_use_the_socket_and_the_stored_configuration() {
    let setup = Setup::start("xds-modes", &[]).await;
    setup.until_stored().await;
    let cache = setup.cache();
    let folder = cache.parent().expect("the state directory");
    let socket = folder.join("xds.sock");
    let mode = |path: &Path| std::fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    assert_eq!((mode(folder), mode(&socket), mode(&cache)), (0o700, 0o600, 0o600));
    if not_tested::has_root_and("other users at the socket for Envoy", &["setpriv"]) {
        let set_mode = |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode));
        // The directory alone keeps other users out, and so do the modes of the files.
        assert!(!another_user_may("-x", folder));
        set_mode(folder, 0o755).expect("root");
        assert!(another_user_may("-x", folder));
        assert!(!another_user_may("-w", &socket) && !another_user_may("-r", &cache));
        set_mode(&socket, 0o666).expect("root");
        assert!(another_user_may("-w", &socket));
    }
    setup.stop().await;
}

/// Returns whether a user that is not the agent's may access this path (an operator of `test`).
fn another_user_may(operator: &str, path: &Path) -> bool {
    let mut command = std::process::Command::new("setpriv");
    command.args(["--reuid=64001", "--regid=64001", "--clear-groups", "test", operator]).arg(path);
    command.status().expect("setpriv of util-linux").success()
}

/// A listener with strict mutual TLS, whose certificates come from the agent.
#[tokio::test]
async fn certificates_rotate_in_a_running_listener() {
    tls::install_provider();
    let folder = envoy::folder("xds-sds");
    let authority = Authority::new();
    let own = authority.issue(&folder, "own", DISCOVERY_NAME);
    let client = authority.workload(&folder, "client", NAMESPACE, "gateway");
    let builder = Builder::new("xds-sds");
    let listener = SocketAddr::new(builder.ip, 10443);
    std::fs::write(folder.join("user.json"), tls_listener(listener).to_string()).expect("a writable folder");
    let path = |path: &Path| path.to_str().expect("a path").to_owned();
    // No control plane listens there: certificates do not depend on it.
    let unused = SocketAddr::new(net::loopback(), 15012).to_string();
    let sidecar = builder
        .args(&["--proxy-xds", "--discovery", &unused, "--group", GROUP])
        .args(&["--discovery-ca", &path(&own.authority), "--discovery-cert", &path(&own.certificate)])
        .args(&["--discovery-key", &path(&own.key), "--user-config", &path(&folder.join("user.json"))])
        .start();
    let connected = || tokio::net::TcpStream::connect(listener);
    wait::until_or(|| sidecar.log(), async || connected().await.is_ok()).await;
    wait::until_or(
        || sidecar.log(),
        async || presented(listener, &client).await == Some(certificate(&own.certificate)),
    )
    .await;
    for _ in 0..5 {
        // The certificate is replaced before its key, so the files do not match for a moment.
        let new = authority.issue(&folder, "own", DISCOVERY_NAME);
        wait::until_or(
            || sidecar.log(),
            async || {
                let found = presented(listener, &client).await;
                assert!(found.is_some(), "a handshake failed during the rotation\n{}", sidecar.log());
                found == Some(certificate(&new.certificate))
            },
        )
        .await;
    }
    // A key that does not match stays out.
    let current = presented(listener, &client).await;
    std::fs::write(&own.key, Authority::new().sign(DISCOVERY_NAME).key).expect("a writable folder");
    wait::until_or(|| sidecar.log(), async || sidecar.log().contains("certificate for Envoy rejected")).await;
    assert_eq!(presented(listener, &client).await, current);
    sidecar.signal(Signal::SIGINT);
    sidecar.signal(Signal::SIGINT);
    sidecar.end().await;
}

/// Returns the certificate that the listener presents; `None` if the handshake fails.
async fn presented(listener: SocketAddr, client: &Files) -> Option<Vec<u8>> {
    let client = client.clone();
    tokio::spawn(async move { presented_certificate(listener, &client).await }).await.ok()
}

fn tls_listener(address: SocketAddr) -> Value {
    let secret = |name: &str| {
        json!({"name": name, "sds_config": {"resource_api_version": "V3", "api_config_source": {
            "api_type": "GRPC",
            "transport_api_version": "V3",
            "grpc_services": [{"envoy_grpc": {"cluster_name": "sds-grpc"}}],
        }}})
    };
    let tls = json!({
        "@type": "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.DownstreamTlsContext",
        "require_client_certificate": true,
        "common_tls_context": {
            "tls_certificate_sds_secret_configs": [secret("default")],
            "validation_context_sds_secret_config": secret("ROOTCA"),
        },
    });
    let manager = json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "tls",
        "route_config": {"virtual_hosts": [{"name": "all", "domains": ["*"], "routes": [
            {"match": {"prefix": "/"}, "direct_response": {"status": 200}},
        ]}]},
        "http_filters": [{"name": "envoy.filters.http.router", "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router",
        }}],
    });
    let address = json!({"address": address.ip().to_string(), "port_value": address.port()});
    json!({"static_resources": {"listeners": [{
        "name": "tls",
        "address": {"socket_address": address},
        "filter_chains": [{
            "transport_socket": {"name": "envoy.transport_sockets.tls", "typed_config": tls},
            "filters": [{"name": "envoy.filters.network.http_connection_manager", "typed_config": manager}],
        }],
    }]}})
}
