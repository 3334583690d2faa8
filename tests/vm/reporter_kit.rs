//! A machine whose workload is healthy as long as a file exists, and the real agent on it.

use std::path::PathBuf;

use kit::plain_server::{PlainServer, Seen};
use kit::sidecar::{Builder, Sidecar};
use serde_json::Value;

/// A machine before its agent starts.
pub(crate) struct Vm {
    pub(crate) builder: Builder,
    alive: PathBuf,
}

/// The same with a running agent.
pub(crate) struct Running {
    pub(crate) sidecar: Sidecar,
    alive: PathBuf,
}

impl Vm {
    /// `name` is the test's. The workload is healthy.
    pub(crate) fn new(name: &str) -> Self {
        let builder =
            Builder::bare(name).args(&["--no-envoy", "--data-path", "off", "--envoy-readiness", "off"]);
        let alive = builder.folder.join("alive");
        std::fs::write(&alive, "").expect("a writable folder");
        Self { builder, alive }
    }

    /// With a WorkloadGroup's file, whose probe looks for the file.
    pub(crate) fn probed(name: &str) -> Self {
        let vm = Self::new(name);
        let group = format!(
            "apiVersion: networking.istio.io/v1\nkind: WorkloadGroup\nmetadata: {{name: payments, namespace: shop}}\n\
             spec:\n  template: {{serviceAccount: pay}}\n  probe:\n    periodSeconds: 1\n    failureThreshold: 1\n    \
             exec: {{command: [test, -e, {}]}}\n",
            vm.alive.display()
        );
        let file = vm.builder.folder.join("group.yaml");
        std::fs::write(&file, group).expect("a writable folder");
        vm.args(&["--workload-group", file.to_str().expect("a path")])
    }

    /// More flags.
    pub(crate) fn args(self, args: &[&str]) -> Self {
        Self { builder: self.builder.args(args), ..self }
    }

    /// Reports to this server over plaintext.
    pub(crate) fn reports_to(self, server: &PlainServer) -> Self {
        self.args(&["--discovery", &server.address.to_string(), "--discovery-plaintext"])
    }

    pub(crate) fn start(self) -> Running {
        Running { sidecar: self.builder.start_plain(), alive: self.alive }
    }
}

impl Running {
    /// Makes the workload healthy or not.
    pub(crate) fn set(&self, healthy: bool) {
        if healthy {
            std::fs::write(&self.alive, "").expect("a writable folder");
        } else {
            std::fs::remove_file(&self.alive).expect("it was there");
        }
    }

    /// `GET /debug/vm-health`
    pub(crate) async fn view(&self) -> Value {
        let answer = self.sidecar.local("GET /debug/vm-health", "Host: localhost\r\n").await;
        serde_json::from_str(&answer.text()).expect("JSON")
    }

    /// `GET /metrics`
    pub(crate) async fn metrics(&self) -> String {
        self.sidecar.local("GET /metrics", "Host: localhost\r\n").await.text()
    }

    /// Waits for these words in the log.
    pub(crate) async fn until_logged(&self, words: &str) {
        for _ in 0..2000 {
            if self.sidecar.log().contains(words) {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        panic!("{words:?} was never logged:\n{}", self.sidecar.log());
    }
}

/// Of a report in our words: generation, state, reason.
pub(crate) fn level(seen: &Seen) -> (u64, String, String) {
    let report = seen.metadata("APP_HEALTH_REPORT");
    let text = |name: &str| report[name].as_str().unwrap_or_default().to_owned();
    (report["generation"].as_u64().unwrap_or_default(), text("state"), text("reason"))
}

/// The last report in our words.
pub(crate) fn last(seen: &[Seen]) -> Option<(u64, String, String)> {
    seen.iter().rev().find(|seen| seen.is_ours()).map(level)
}

/// Is the last report in our words of this state and reason?
pub(crate) fn is_last(seen: &[Seen], state: &str, reason: &str) -> bool {
    last(seen).is_some_and(|(_, found, why)| found == state && why == reason)
}
