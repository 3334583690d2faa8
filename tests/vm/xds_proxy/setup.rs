//! Discovery, an application, and the agent with its Envoy on the application's machine.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::PathBuf;

use kit::sidecar::{Builder, Sidecar};
use kit::vm::application::Application;
use kit::vm::discovery::Discovery;
use kit::vm::documents::{CLUSTER, GROUP, NAMESPACE, PORT, group, probe, service};
use kit::vm::{envoy_client, stored_xds};
use kit::{caller, envoy, net, wait};
use nix::sys::signal::Signal;
use serde_json::Value;

pub(super) struct Setup {
    name: String,
    pub(super) application: Application,
    pub(super) discovery: Discovery,
    flags: Vec<String>,
    sidecar: Option<Sidecar>,
}

impl Setup {
    /// Starts everything in plaintext, with these additional flags of the agent.
    pub(super) async fn start(name: &str, flags: &[&str]) -> Self {
        let mut discovery = Discovery::new(&envoy::folder(name), &[group(&probe()), service()]);
        discovery.start().await.unwrap_or_else(|error| panic!("{error}"));
        let ip = net::loopback();
        let application = Application::start(name, SocketAddr::new(ip, PORT)).await;
        let server = discovery.plaintext().to_string();
        let mut all = vec!["--proxy-xds", "--discovery", &server, "--discovery-plaintext", "--group", GROUP];
        all.extend(["--service-account", GROUP, "--envoy-readiness", "off"]);
        all.extend(flags);
        let flags = all.into_iter().map(str::to_owned).collect();
        let mut setup = Self { name: name.to_owned(), application, discovery, flags, sidecar: None };
        setup.start_sidecar(&["--namespace", NAMESPACE]).await;
        setup
    }

    pub(super) async fn start_sidecar(&mut self, flags: &[&str]) {
        let flags = if flags.contains(&"--namespace") {
            flags.to_vec()
        } else {
            [flags, &["--namespace", NAMESPACE]].concat()
        };
        let own: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        let builder = Builder::again(&self.name, self.application.address.ip()).args(&own).args(&flags);
        self.sidecar = Some(builder.start());
        let what = || format!("Envoy has a stream:\n{}", self.sidecar().log());
        wait::until_or(what, async || !self.view().await["envoy"].is_null()).await;
    }

    /// Stops the agent with its Envoy and starts both again, with these additional flags.
    pub(super) async fn restart(&mut self, flags: &[&str]) {
        self.kill().await;
        self.start_sidecar(flags).await;
    }

    pub(super) async fn kill(&mut self) {
        let sidecar = self.sidecar.take().expect("the agent runs");
        sidecar.signal(Signal::SIGINT);
        sidecar.signal(Signal::SIGINT);
        sidecar.end().await;
    }

    /// Terminates the agent with its Envoy. Returns its log, and what discovery knows of the machine.
    pub(super) async fn terminate(mut self) -> (String, Value) {
        let sidecar = self.sidecar.take().expect("the agent runs");
        sidecar.signal(Signal::SIGTERM);
        let (code, log) = sidecar.end().await;
        assert_eq!(code, Some(0), "{log}");
        (log, self.discovery.workload(self.application.address.ip()).await)
    }

    pub(super) async fn stop(mut self) {
        self.kill().await;
    }

    pub(super) fn sidecar(&self) -> &Sidecar {
        self.sidecar.as_ref().expect("the agent runs")
    }

    /// Returns the address of the application.
    pub(super) fn address(&self) -> SocketAddr {
        self.application.address
    }

    /// Returns the path of the stored configuration.
    pub(super) fn cache(&self) -> PathBuf {
        envoy::folder(&self.name).join("state/xds-cache")
    }

    async fn admin(&self, path: &str) -> String {
        let socket = envoy::folder(&self.name).join("state/admin.sock");
        caller::get_unix(&socket, path).await.unwrap_or_default()
    }

    pub(super) async fn stat(&self, name: &str) -> Option<u64> {
        let text = self.admin(&format!("/stats?filter=^{name}$")).await;
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.trim().parse().ok())
    }

    pub(super) async fn endpoints(&self) -> BTreeSet<SocketAddr> {
        envoy_client::endpoints(&self.admin("/clusters?format=json").await, CLUSTER)
    }

    pub(super) async fn until_endpoints(&self, wanted: &[SocketAddr]) {
        let wanted: BTreeSet<SocketAddr> = wanted.iter().copied().collect();
        let are_there = async || (self.endpoints().await == wanted).then_some(());
        if wait::try_poll(are_there).await.is_none() {
            let (found, view) = (self.endpoints().await, self.view().await);
            panic!(
                "expected {wanted:?}, got {found:?}\n{view:#}\n{}\n{}",
                self.sidecar().log(),
                self.discovery.log()
            );
        }
    }

    /// Returns the response of `/debug/xds`.
    pub(super) async fn view(&self) -> Value {
        let answer = self.sidecar().local("GET /debug/xds", "Host: localhost\r\n").await;
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }

    pub(super) async fn until_view(&self, what: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let wanted = wait::try_poll(async || Some(self.view().await).filter(&is_wanted)).await;
        match wanted {
            Some(view) => view,
            None => panic!("not {what}: {:#}\n{}", self.view().await, self.sidecar().log()),
        }
    }

    /// Waits until the endpoints are stored.
    pub(super) async fn until_stored(&self) {
        let address = self.address().ip().to_string();
        wait::until("the endpoints are stored", async || stored_xds::text(&self.cache()).contains(&address))
            .await;
    }
}
