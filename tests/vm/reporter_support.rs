//! Support for tests of the agent's reports: an agent on a machine whose workload is healthy as
//! long as a file exists.

use std::path::PathBuf;

use kit::sidecar::{Builder, Sidecar};
use kit::vm::scripted_ads::{ScriptedAds, Seen};
use kit::wait;
use serde_json::Value;

/// A machine whose agent is not started yet.
pub(crate) struct AgentConfig {
    pub(crate) builder: Builder,
    alive: PathBuf,
}

/// A machine whose agent runs.
pub(crate) struct RunningAgent {
    pub(crate) sidecar: Sidecar,
    alive: PathBuf,
}

impl AgentConfig {
    /// Configures a machine with a healthy workload and no probe. `name` is the name of the test.
    pub(crate) fn new(name: &str) -> Self {
        let builder =
            Builder::bare(name).args(&["--no-envoy", "--data-path", "off", "--envoy-readiness", "off"]);
        let alive = builder.folder.join("alive");
        std::fs::write(&alive, "").expect("a writable folder");
        Self { builder, alive }
    }

    /// Configures a machine with a WorkloadGroup file, whose probe succeeds while the file `alive`
    /// exists.
    pub(crate) fn probed(name: &str) -> Self {
        let vm = Self::new(name);
        let group = format!(
            "apiVersion: networking.istio.io/v1\nkind: WorkloadGroup\nmetadata: {{name: payments, namespace: shop}}\n\
             spec:\n  template: {{serviceAccount: pay}}\n  probe:\n    periodSeconds: 1\n    timeoutSeconds: 60\n    failureThreshold: 1\n    \
             exec: {{command: [test, -e, {}]}}\n",
            vm.alive.display()
        );
        let file = vm.builder.folder.join("group.yaml");
        std::fs::write(&file, group).expect("a writable folder");
        vm.args(&["--workload-group", file.to_str().expect("a path")])
    }

    pub(crate) fn args(self, args: &[&str]) -> Self {
        Self { builder: self.builder.args(args), ..self }
    }

    /// Lets the agent report to this server in plaintext.
    pub(crate) fn reports_to(self, server: &ScriptedAds) -> Self {
        self.args(&["--discovery", &server.address.to_string(), "--discovery-plaintext"])
    }

    pub(crate) fn start(self) -> RunningAgent {
        RunningAgent { sidecar: self.builder.start_plain(), alive: self.alive }
    }
}

impl RunningAgent {
    /// Makes the workload healthy or unhealthy.
    pub(crate) fn set_healthy(&self, healthy: bool) {
        if healthy {
            std::fs::write(&self.alive, "").expect("a writable folder");
        } else {
            std::fs::remove_file(&self.alive).expect("the file exists");
        }
    }

    /// Requests `/debug/vm-health`.
    pub(crate) async fn view(&self) -> Value {
        let answer = self.sidecar.local("GET /debug/vm-health", "Host: localhost\r\n").await;
        serde_json::from_str(&answer.text()).unwrap_or_default()
    }

    /// Requests the view until `is_wanted` accepts its object `stream`.
    pub(crate) async fn until_stream(&self, what: &str, is_wanted: impl Fn(&Value) -> bool) {
        let stream = async || self.view().await["stream"].clone();
        if wait::try_poll(async || is_wanted(&stream().await).then_some(())).await.is_none() {
            panic!("timed out waiting for {what}: {:#}\n{}", stream().await, self.sidecar.log());
        }
    }

    /// Waits until the agent has no stream, and until the error of the last attempt contains these
    /// words.
    pub(crate) async fn until_disconnected(&self, words: &str) {
        let has_error =
            |stream: &Value| stream["lastError"].as_str().is_some_and(|text| text.contains(words));
        let what = format!("the error {words:?}");
        self.until_stream(&what, |stream| stream["connected"] == false && has_error(stream)).await;
    }

    /// Makes the workload healthy or unhealthy, and waits until the agent has noticed.
    pub(crate) async fn set_and_wait(&self, healthy: bool) {
        self.set_healthy(healthy);
        let state = if healthy { "Healthy" } else { "Unhealthy" };
        wait::until(state, async || self.view().await["state"] == state).await;
    }

    /// Requests `/metrics` from the local port.
    pub(crate) async fn metrics(&self) -> String {
        self.sidecar.local("GET /metrics", "Host: localhost\r\n").await.text()
    }

    /// Returns the value of a metric, given its name and labels as they are written; 0 if it does
    /// not exist.
    pub(crate) async fn metric(&self, series: &str) -> u64 {
        let metrics = self.metrics().await;
        let line = metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok()).unwrap_or_default()
    }
}

/// Returns generation, state and reason of an `APP_HEALTH_REPORT`.
pub(crate) fn report_fields(seen: &Seen) -> (u64, String, String) {
    let report = &seen.metadata["APP_HEALTH_REPORT"];
    let text = |name: &str| report[name].as_str().unwrap_or_default().to_owned();
    (report["generation"].as_u64().unwrap_or_default(), text("state"), text("reason"))
}

/// Returns the last `APP_HEALTH_REPORT`.
pub(crate) fn last_report(seen: &[Seen]) -> Option<(u64, String, String)> {
    seen.iter().rev().find(|seen| seen.is_ours()).map(report_fields)
}

/// Returns whether the last `APP_HEALTH_REPORT` has this state and reason.
pub(crate) fn last_report_is(seen: &[Seen], state: &str, reason: &str) -> bool {
    last_report(seen).is_some_and(|(_, found, why)| found == state && why == reason)
}
