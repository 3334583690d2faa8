//! Kubelet's own prober as a separate program, which returns the result that kubelet would get. The
//! program is in `tests/conformance/kubelet-prober`; its protocol is in `line`.

mod line;

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::oneshot;

use crate::envoy::workspace;
use crate::wait;

/// A request to run probes.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    pub pod_ip: IpAddr,
    /// Timeout of each probe; whole seconds in Kubernetes, any duration here.
    pub timeout: Duration,
    /// A `ProbeHandler` of Kubernetes: `{"httpGet": {"port": 8080, "path": "/ready"}}`.
    pub handler: Value,
    /// Number of probes to run in sequence; at least 1.
    pub repeat: u32,
    /// Number of probes to run before them, whose results are not reported.
    pub warm_up: u32,
}

impl Question {
    /// Returns a request for one probe.
    pub fn once(pod_ip: IpAddr, timeout: Duration, handler: Value) -> Self {
        Self { pod_ip, timeout, handler, repeat: 1, warm_up: 0 }
    }
}

/// The result of a probe, as in `pkg/probe`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProbeResult {
    Success,
    /// Success with an event, for example for a redirect to another host.
    Warning,
    Failure,
    /// The probe could not be sent.
    Unknown,
}

/// The results of a [`Question`].
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The result of the last probe.
    pub result: ProbeResult,
    /// Kubelet's output of the last probe; bytes that are not UTF-8 are replaced.
    pub output: String,
    /// The prober's error of the last probe. Kubelet retries such a probe up to three times and
    /// then does not count it.
    pub error: Option<String>,
    /// The duration of each probe, in order.
    pub latencies: Vec<Duration>,
    /// The number of probes by result; results that did not occur are left out.
    pub results: BTreeMap<ProbeResult, u64>,
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The program rejected the request.
    #[error("the prober rejected the request: {0}")]
    Fault(String),
    /// The output of the program is not a valid response.
    #[error("invalid response of the prober: {0}")]
    Unreadable(String),
    /// The program has exited.
    #[error("the prober has exited")]
    Ended,
    /// No response was received long after every probe had timed out.
    #[error("no response of the prober within {0:?}")]
    Late(Duration),
}

/// The receivers of the responses, by request ID.
type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Result<Answer, AskError>>>>>;

/// The running program; it is killed on drop. It belongs to the runtime on which it was started.
pub struct Oracle {
    child: Child,
    stdin: tokio::sync::Mutex<ChildStdin>,
    next: AtomicU64,
    waiting: Waiting,
}

impl Oracle {
    /// Starts the prober as a child process.
    ///
    /// # Panics
    /// If it is not built or cannot be started.
    pub fn start() -> Self {
        let mut command = Command::new(binary());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("the prober starts");
        let stdin = child.stdin.take().expect("stdin is piped");
        let stdout = child.stdout.take().expect("stdout is piped");
        let waiting = Waiting::default();
        tokio::spawn(deliver(stdout, Arc::clone(&waiting)));
        Self { child, stdin: stdin.into(), next: AtomicU64::new(0), waiting }
    }

    /// Runs probes; concurrent calls are possible.
    ///
    /// # Errors
    /// If there is no response; the result of a failed probe is not an error.
    pub async fn ask(&self, question: Question) -> Result<Answer, AskError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().expect("the mutex is not poisoned").insert(id, sender);
        let line = line::write(id, &question);
        self.stdin.lock().await.write_all(line.as_bytes()).await.map_err(|_| AskError::Ended)?;
        let probes = question.repeat.saturating_add(question.warm_up);
        let deadline = question.timeout.saturating_mul(probes).saturating_add(wait::timeout());
        match tokio::time::timeout(deadline, answer).await {
            Ok(answer) => answer.unwrap_or(Err(AskError::Ended)),
            Err(_) => Err(AskError::Late(deadline)),
        }
    }

    /// Returns the PID of the program.
    ///
    /// # Panics
    /// If it has exited and was waited for.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("the program runs")
    }
}

/// Returns the path of the prober, which can also serve TLS: `tls-server ADDRESS VERSION SUITE CURVE KEY`.
///
/// # Panics
/// If it is not built.
pub fn binary() -> PathBuf {
    let path = workspace().join("target/kubelet-prober/kubelet-prober");
    assert!(path.is_file(), "{} is missing: run ./justw oracle", path.display());
    path
}

/// Passes each line to its receiver. At the end of the output, all remaining receivers get an
/// error.
async fn deliver(stdout: ChildStdout, waiting: Waiting) {
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(text)) = lines.next_line().await {
        let (id, answer) = line::read(&text);
        let sender = id.and_then(|id| waiting.lock().expect("the mutex is not poisoned").remove(&id));
        // The receiver may have timed out.
        let _ = sender.map(|sender| sender.send(answer));
    }
    waiting.lock().expect("the mutex is not poisoned").clear();
}
