//! A machine whose Envoy gets its configuration from istiod through our agent.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use kit::caller;
use kit::sidecar::{Builder, Sidecar};
use kit::vm::application::Application;
use kit::vm::certificates::{DISCOVERY_NAME, replace};
use kit::vm::documents::{CLUSTER, GROUP, NAMESPACE, PORT, group, probe};
use kit::vm::envoy_client;
use kit::{envoy, net, wait};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::agent_with_istiod::{client_files, path};
use istio_tests::istiod::Istiod;

pub(crate) struct ProxiedMachine {
    name: String,
    pub(crate) application: Application,
    flags: Vec<String>,
    sidecar: Option<Sidecar>,
}

impl ProxiedMachine {
    /// Starts the application, and the agent with its Envoy, as a member of the group over mutual TLS.
    pub(crate) async fn start(istiod: &Istiod, name: &str, xds: &str) -> Self {
        let application = Application::start(name, SocketAddr::new(net::loopback(), PORT)).await;
        let (group_file, envoy_file) = (istiod.folder.join("group.yaml"), istiod.folder.join("envoy.json"));
        replace(&group_file, &group(&probe()).to_string());
        // Without it, istiod adds listeners for redirected traffic, on all addresses of the machine.
        let node = json!({"node": {"metadata": {"INTERCEPTION_MODE": "NONE"}}});
        replace(&envoy_file, &node.to_string());
        let files = istiod.authority.workload(&istiod.folder, name, NAMESPACE, GROUP);
        let server = istiod.address(15012).to_string();
        let mut flags = vec!["--proxy-xds", "--xds", xds, "--discovery", &server];
        flags.extend(["--discovery-san", DISCOVERY_NAME, "--workload-group", path(&group_file)]);
        flags.extend(["--user-config", path(&envoy_file)]);
        flags.extend(client_files(&files));
        let flags = flags.into_iter().map(str::to_owned).collect();
        let mut machine = Self { name: name.to_owned(), application, flags, sidecar: None };
        machine.start_agent();
        machine
    }

    pub(crate) fn start_agent(&mut self) {
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        self.sidecar = Some(Builder::again(&self.name, self.ip()).args(&flags).start());
    }

    /// Stops the agent with its Envoy.
    pub(crate) async fn stop_agent(&mut self) {
        let sidecar = self.sidecar.take().expect("the agent runs");
        sidecar.signal(Signal::SIGINT);
        sidecar.signal(Signal::SIGINT);
        sidecar.end().await;
    }

    fn sidecar(&self) -> &Sidecar {
        self.sidecar.as_ref().expect("the agent runs")
    }

    pub(crate) fn ip(&self) -> IpAddr {
        self.application.address.ip()
    }

    pub(crate) fn log(&self) -> String {
        self.sidecar().log()
    }

    /// Returns the response of `/debug/xds`.
    pub(crate) async fn view(&self) -> Value {
        let answer = self.sidecar().local("GET /debug/xds", "Host: localhost\r\n").await;
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }

    pub(crate) async fn until_view(&self, what: &str, is_wanted: impl Fn(&Value) -> bool) {
        let wanted = wait::try_poll(async || is_wanted(&self.view().await).then_some(())).await;
        assert!(wanted.is_some(), "not {what}: {:#}\n{}", self.view().await, self.log());
    }

    async fn admin(&self, path: &str) -> String {
        let socket = envoy::folder(&self.name).join("state/admin.sock");
        caller::get_unix(&socket, path).await.unwrap_or_default()
    }

    /// Returns a statistic of its Envoy.
    pub(crate) async fn stat(&self, name: &str) -> Option<u64> {
        let text = self.admin(&format!("/stats?filter=^{name}$")).await;
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.trim().parse().ok())
    }

    /// Returns the endpoints of the service in its Envoy.
    pub(crate) async fn endpoints(&self) -> BTreeSet<SocketAddr> {
        envoy_client::endpoints(&self.admin("/clusters?format=json").await, CLUSTER)
    }
}
