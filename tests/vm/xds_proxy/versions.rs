//! A real Envoy, and a control plane that trusts versions, counts them from 1 again, or ends streams with
//! health reports. What the agent stores is what Envoy runs.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use kit::sidecar::{Builder, Sidecar};
use kit::vm::application::Application;
use kit::vm::documents::{GROUP, NAMESPACE, PORT, group, probe};
use kit::vm::stored_xds;
use kit::vm::versioned_ads::{Seen, VersionedAds};
use kit::vm::xds_resources::{assignment, cluster, invalid_cluster, listener};
use kit::{caller, wait};
use nix::sys::signal::Signal;
use serde_json::Value;
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use xds::Request;
use xds::type_url::{CLUSTER, ENDPOINT, HEALTH_INFORMATION, LISTENER};

const LONGER: Duration = Duration::from_secs(2);

/// The agent with its Envoy, and what Envoy runs.
struct Tested {
    name: &'static str,
    ip: IpAddr,
    flags: Vec<String>,
    sidecar: Option<Sidecar>,
}

impl Tested {
    fn start(name: &'static str, server: SocketAddr, flags: &[&str]) -> Self {
        let server = server.to_string();
        let mut all = vec!["--proxy-xds", "--discovery", &server, "--discovery-plaintext"];
        all.extend(["--service-account", GROUP, "--namespace", NAMESPACE, "--envoy-readiness", "off"]);
        all.extend(flags);
        let builder = Builder::new(name).args(&all);
        let ip = builder.ip;
        let flags = all.into_iter().map(str::to_owned).collect();
        Self { name, ip, flags, sidecar: Some(builder.start()) }
    }

    /// Stops the agent with its Envoy and starts both again.
    async fn restart(&mut self) {
        self.end().await;
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        self.sidecar = Some(Builder::again(self.name, self.ip).args(&flags).start());
    }

    async fn end(&mut self) {
        let sidecar = self.sidecar.take().expect("the agent runs");
        sidecar.signal(Signal::SIGINT);
        sidecar.signal(Signal::SIGINT);
        sidecar.end().await;
    }

    fn sidecar(&self) -> &Sidecar {
        self.sidecar.as_ref().expect("the agent runs")
    }

    fn address(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.ip, port)
    }

    async fn admin(&self, path: &str) -> String {
        caller::get_unix(&self.sidecar().folder.join("state/admin.sock"), path).await.unwrap_or_default()
    }

    async fn stat(&self, name: &str) -> Option<u64> {
        let text = self.admin(&format!("/stats?filter=^{name}$")).await;
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.trim().parse().ok())
    }

    /// Waits until Envoy has exactly these of the clusters of the test.
    async fn until_clusters(&self, wanted: &[&str]) {
        let wanted: BTreeSet<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
        let found = async || {
            let clusters = self.admin("/clusters").await;
            let names = clusters.lines().filter_map(|line| line.split_once("::")).map(|(name, _)| name);
            names.filter(|name| name.starts_with("cluster-")).map(str::to_owned).collect::<BTreeSet<_>>()
        };
        wait::until_or(|| self.sidecar().log(), async || found().await == wanted).await;
    }

    /// Waits until the listener sends this text; `None` if there is no listener.
    async fn until_text(&self, port: u16, wanted: Option<&str>) {
        let read = async || {
            let mut text = String::new();
            let mut stream = TcpStream::connect(self.address(port)).await.ok()?;
            stream.read_to_string(&mut text).await.ok()?;
            Some(text)
        };
        wait::until_or(|| self.sidecar().log(), async || read().await.as_deref() == wanted).await;
    }

    async fn view(&self) -> Value {
        let answer = self.sidecar().local("GET /debug/xds", "Host: localhost\r\n").await;
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }

    /// Waits until the stored configuration contains a text and not another one.
    async fn until_stored(&self, wanted: &str, gone: &str) {
        let cache = self.sidecar().folder.join("state/xds-cache");
        let is_stored = async || {
            let stored = stored_xds::text(&cache);
            stored.contains(wanted) && !stored.contains(gone)
        };
        wait::until_or(|| self.sidecar().log(), is_stored).await;
    }
}

async fn server() -> VersionedAds {
    VersionedAds::listen("127.0.0.1:0".parse().expect("an address"), false).await
}

/// Envoy sends no request for clusters while one of them warms, and then one with the version of the
/// newest response and the error of the previous one.
#[tokio::test]
async fn an_error_of_an_older_response_rejects_no_newer_one() {
    let server = server().await;
    let endpoint = |name, number| assignment(name, SocketAddr::from(([127, 0, 1, number], PORT)));
    let (a, b) = (
        ("cluster-a", cluster("cluster-a", Duration::ZERO)),
        ("cluster-b", cluster("cluster-b", Duration::ZERO)),
    );
    server.set(CLUSTER, "1", &[a, b.clone()]);
    server.set(
        ENDPOINT,
        "1",
        &[("cluster-a", endpoint("cluster-a", 1)), ("cluster-b", endpoint("cluster-b", 2))],
    );
    server.set(LISTENER, "1", &[]);
    let mut tested = Tested::start("xds-old-error", server.address, &["--group", GROUP]);
    tested.until_clusters(&["cluster-a", "cluster-b"]).await;
    tested.until_stored("cluster-b", "cluster-c").await;

    // A changed cluster warms until its endpoints are sent again, which this server does not do.
    let is_accepted =
        |seen: &Seen, version: &str| seen.request.version == version && !seen.request.nonce.is_empty();
    let requests = server.seen(ENDPOINT).len();
    let changed = ("cluster-a", cluster("cluster-a", LONGER));
    server.set(CLUSTER, "2", &[changed.clone(), b, ("cluster-bad", invalid_cluster("cluster-bad"))]);
    let is_warming = async || server.seen(ENDPOINT).len() > requests;
    wait::until_or(|| tested.sidecar().log(), is_warming).await;
    server.set(CLUSTER, "3", &[changed, ("cluster-c", cluster("cluster-c", Duration::ZERO))]);
    tested.until_clusters(&["cluster-a"]).await;
    assert!(!server.seen(CLUSTER).iter().any(|seen| is_accepted(seen, "3")), "Envoy sends no request yet");
    server.set(
        ENDPOINT,
        "3",
        &[("cluster-a", endpoint("cluster-a", 3)), ("cluster-c", endpoint("cluster-c", 4))],
    );
    let has_accepted = async || server.seen(CLUSTER).iter().any(|seen| is_accepted(seen, "3"));
    wait::until_or(|| tested.sidecar().log(), has_accepted).await;
    let seen = server.seen(CLUSTER);
    let rejections: Vec<_> =
        seen.iter().map(|seen| &seen.request).filter(|request| request.error.is_some()).collect();
    let [rejection] = rejections[..] else { panic!("one rejection: {seen:#?}") };
    assert_eq!(rejection.version, "1");
    let text = rejection.error_text().expect("a status").unwrap_or_default();
    assert!(text.contains("cluster-bad"), "{rejection:?}");
    tested.until_clusters(&["cluster-a", "cluster-c"]).await;
    tested.until_stored("cluster-c", "cluster-b").await;

    drop(server);
    tested.restart().await;
    tested.until_clusters(&["cluster-a", "cluster-c"]).await;
    tested.end().await;
}

/// The new control plane has the same version for other listeners, and the same clusters.
#[tokio::test]
async fn a_control_plane_that_counts_from_1_again_is_believed() {
    for (name, variant) in [("xds-counts-sotw", "sotw"), ("xds-counts-delta", "delta")] {
        let server = server().await;
        let mut tested = Tested::start(name, server.address, &["--group", GROUP, "--xds", variant]);
        let endpoint = SocketAddr::from(([127, 0, 1, 1], PORT));
        let both = |server: &VersionedAds| {
            server.set(CLUSTER, "2", &[("cluster-a", cluster("cluster-a", LONGER))]);
            server.set(ENDPOINT, "2", &[("cluster-a", assignment("cluster-a", endpoint))]);
        };
        let of = |port: u16, text: &str| listener(&port.to_string(), tested.address(port), text);
        let (old, gone, new) = (of(10001, "old"), of(10002, "gone"), of(10001, "new"));
        both(&server);
        server.set(LISTENER, "2", &[("10001", old), ("10002", gone)]);
        tested.until_text(10002, Some("gone")).await;
        tested.until_stored("gone", "new").await;

        let address = server.address;
        drop(server);
        tested.restart().await;
        tested.until_text(10001, Some("old")).await;
        tested.until_text(10002, Some("gone")).await;
        let server = VersionedAds::listen(address, false).await;
        both(&server);
        server.set(LISTENER, "2", &[("10001", new)]);
        tested.until_text(10001, Some("new")).await;
        tested.until_text(10002, None).await;
        tested.until_stored("new", "gone").await;
        wait::until_or(|| tested.sidecar().log(), async || tested.view().await["stale"].is_null()).await;
        let first = |type_url| server.seen(type_url).remove(0);
        for type_url in [CLUSTER, LISTENER, ENDPOINT] {
            let Request { version, initial_versions, .. } = first(type_url).request;
            assert_eq!(version, "");
            let is_unknown = |(_, version): &(_, String)| version == "app-health:unknown";
            assert!(initial_versions.iter().all(is_unknown), "{initial_versions:?}");
        }
        // The cluster did not warm again.
        assert_eq!(tested.stat("cluster_manager.cluster_modified").await, Some(0));
        tested.end().await;
    }
}

/// A control plane that knows nothing of Istio's health type.
#[tokio::test]
async fn a_control_plane_that_ends_streams_with_reports_serves_envoy() {
    let server = VersionedAds::listen("127.0.0.1:0".parse().expect("an address"), true).await;
    let name = "xds-refused-reports";
    let file = kit::envoy::folder(name).join("group.yaml");
    std::fs::write(&file, group(&probe()).to_string()).expect("a writable folder");
    let mut tested =
        Tested::start(name, server.address, &["--workload-group", file.to_str().expect("a path")]);
    let application = Application::start(name, tested.address(PORT)).await;
    server.set(CLUSTER, "1", &[]);
    let of = |text: &str| listener("10001", tested.address(10001), text);
    server.set(LISTENER, "1", &[("10001", of("one"))]);
    tested.until_text(10001, Some("one")).await;
    let is_refused = async || tested.view().await["healthRefused"] == true;
    wait::until_or(|| tested.sidecar().log(), is_refused).await;
    // Each report ends one stream. A third one follows only after the pause of a minute.
    let reports = || server.seen(HEALTH_INFORMATION).len();
    let is_reopened = async || reports() >= 2 && server.streams() == reports() + 1;
    wait::until_or(|| tested.sidecar().log(), is_reopened).await;
    server.set(LISTENER, "2", &[("10001", of("two"))]);
    tested.until_text(10001, Some("two")).await;
    wait::until_or(|| tested.sidecar().log(), is_reopened).await;
    assert_eq!(tested.stat("cluster.xds-grpc.upstream_rq_total").await, Some(1), "Envoy's stream was lost");
    let log = tested.sidecar().log();
    let warnings = log.matches("ends xDS streams that carry health reports").count();
    assert!((1..reports()).contains(&warnings), "{warnings}: {log}");
    let is_counted = async || tested.sidecar().metric("app_health_agent_xds_health_refused").await == 1.0;
    wait::until_or(|| tested.sidecar().log(), is_counted).await;
    assert_eq!(tested.sidecar().ready("").await.status, 200, "{log}");
    drop(application);
    tested.end().await;
}
