//! The agent without a kubelet: it probes by itself. How it is started, and asked what it says of an application.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use kit::app::{App, Step};
use kit::caller;
use kit::net;
use kit::sidecar::{Builder, Sidecar};
use serde_json::{Value, json};

pub(crate) const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
/// Nothing takes longer than this.
const PATIENCE: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(20);

/// An agent that probes.
pub(crate) struct Vm {
    pub(crate) sidecar: Sidecar,
    pub(crate) file: PathBuf,
}

/// An agent to be started, and where its application has to be.
pub(crate) struct Plan {
    builder: Builder,
    pub(crate) ip: IpAddr,
}

impl Plan {
    /// Without an Envoy. `name` is the test's.
    pub(crate) fn new(name: &str) -> Self {
        let builder = Builder::bare(name);
        let ip = builder.ip;
        // A port of its own, on which there is nobody.
        let builder = builder.watching(SocketAddr::new(net::loopback(), 15000));
        Self { builder: builder.args(&["--envoy-readiness", "off"]), ip }
    }

    /// More flags.
    pub(crate) fn args(mut self, args: &[&str]) -> Self {
        self.builder = self.builder.args(args);
        self
    }

    /// With this address of the machine.
    pub(crate) fn targeting(mut self, ip: IpAddr) -> Self {
        self.builder = self.builder.instance_ip(ip);
        self
    }

    /// Starts it with this `spec.probe`.
    pub(crate) fn start(self, probe: &Value) -> Vm {
        let file = self.builder.folder.join("group.yaml");
        write(&file, probe);
        let flag = file.to_str().expect("a path").to_owned();
        Vm { sidecar: self.builder.args(&["--workload-group", &flag]).start_plain(), file }
    }
}

/// Writes a WorkloadGroup as its user would: a new file in the place of the old one.
pub(crate) fn write(file: &PathBuf, probe: &Value) {
    let document = json!({
        "apiVersion": "networking.istio.io/v1", "kind": "WorkloadGroup", "metadata": {"name": "payments"}, "spec": {"probe": probe},
    });
    let new = file.with_extension("new");
    std::fs::write(&new, document.to_string()).expect("a writable folder");
    std::fs::rename(&new, file).expect("a writable folder");
}

impl Vm {
    /// `GET /debug/vm-health`.
    pub(crate) async fn view(&self) -> Value {
        let answer = caller::get(self.sidecar.local_address(), "/debug/vm-health", &[]).await;
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }

    /// Asks until `is_there`.
    pub(crate) async fn until(&self, what: &str, is_there: impl Fn(&Value) -> bool) -> Value {
        let mut view = Value::Null;
        for _ in 0..PATIENCE.as_millis() / PAUSE.as_millis() {
            view = self.view().await;
            if is_there(&view) {
                return view;
            }
            tokio::time::sleep(PAUSE).await;
        }
        panic!("{what}: {view:#}\n{}", self.sidecar.log());
    }

    /// The first verdict: reason and message, or `Healthy`.
    pub(crate) async fn verdict(&self) -> String {
        let view =
            self.until("no verdict", |view| !matches!(view["state"].as_str(), None | Some("Unknown"))).await;
        let word = |name: &str| view[name].as_str().unwrap_or_default().to_owned();
        if word("state") == "Healthy" {
            "Healthy".to_owned()
        } else {
            format!("{}: {}", word("reason"), word("message"))
        }
    }
}

/// A probe whose first outcome decides, and which a busy machine may keep waiting.
pub(crate) fn quick(handler: &str, fields: Value) -> Value {
    json!({ handler: fields, "periodSeconds": 1, "timeoutSeconds": 15, "failureThreshold": 1 })
}

/// What an agent says of an application that does this with each connection, and how often it was asked.
/// `expected` says whether a timeout is waited for.
pub(crate) async fn asked(name: &str, handler: &str, steps: Vec<Step>, expected: &str) -> (String, usize) {
    let plan = Plan::new(name);
    let app = App::start(plan.ip, steps).await;
    let mut probe = quick(handler, json!({ "port": app.port() }));
    probe["periodSeconds"] = 60.into();
    if expected.starts_with("Timeout") {
        probe["timeoutSeconds"] = 1.into();
    }
    let verdict = plan.start(&probe).verdict().await;
    (verdict, app.seen().len())
}
