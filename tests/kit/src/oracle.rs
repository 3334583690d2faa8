//! Kubelet's own prober, as a program beside the test: it says what kubelet would find. The program is in
//! `tests/kubelet-prober`; how questions and answers look on the wire, in `line`.

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

/// Beyond the probes' own timeouts, an answer comes within this on the busiest machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Question {
    /// The address of the Pod.
    pub pod_ip: IpAddr,
    /// Of each probe; whole seconds in Kubernetes, any time here.
    pub timeout: Duration,
    /// Kubernetes' `ProbeHandler`: `{"httpGet": {"port": 8080, "path": "/ready"}}`.
    pub handler: Value,
    /// Probes, one after the other; at least 1.
    pub repeat: u32,
    /// Probes before, of which the answer tells nothing.
    pub warm_up: u32,
}

impl Question {
    /// One probe.
    pub fn once(pod_ip: IpAddr, timeout: Duration, handler: Value) -> Self {
        Self { pod_ip, timeout, handler, repeat: 1, warm_up: 0 }
    }
}

/// The result of a probe, as `pkg/probe` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProbeResult {
    /// It passes.
    Success,
    /// It passes, with an event: a redirect to another host.
    Warning,
    /// It fails.
    Failure,
    /// It could not be asked.
    Unknown,
}

/// What kubelet's prober found.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// Of the last probe.
    pub result: ProbeResult,
    /// Kubelet's own text on the last probe; bytes that are no UTF-8 are replaced.
    pub output: String,
    /// The prober's error on the last probe. Kubelet tries such a probe three times, then counts nothing.
    pub error: Option<String>,
    /// How long each probe took, in order.
    pub latencies: Vec<Duration>,
    /// How many probes had which result; those with none are left out.
    pub results: BTreeMap<ProbeResult, u64>,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AskError {
    /// The program did not understand the question.
    #[error("the oracle refuses the question: {0}")]
    Fault(String),
    /// What the program said is no answer.
    #[error("the oracle's answer is not understood: {0}")]
    Unreadable(String),
    /// The program has ended.
    #[error("the oracle has ended")]
    Ended,
    /// No answer came long after every probe had timed out.
    #[error("the oracle gave no answer within {0:?}")]
    Late(Duration),
}

/// Who waits for which answer.
type Waiting = Arc<Mutex<HashMap<u64, oneshot::Sender<Result<Answer, AskError>>>>>;

/// The running program; it ends when this is dropped. Belongs to the runtime that it was started on.
pub struct Oracle {
    child: Child,
    stdin: tokio::sync::Mutex<ChildStdin>,
    next: AtomicU64,
    waiting: Waiting,
}

impl Oracle {
    /// Starts it.
    ///
    /// # Panics
    /// When it is not built, or does not start.
    pub fn start() -> Self {
        let mut command = Command::new(binary());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("the oracle starts");
        let stdin = child.stdin.take().expect("a pipe was asked for");
        let stdout = child.stdout.take().expect("a pipe was asked for");
        let waiting = Waiting::default();
        tokio::spawn(deliver(stdout, Arc::clone(&waiting)));
        Self { child, stdin: stdin.into(), next: AtomicU64::new(0), waiting }
    }

    /// Asks, while others may ask as well.
    ///
    /// # Errors
    /// When there is no answer; whatever a probe finds is one.
    pub async fn ask(&self, question: Question) -> Result<Answer, AskError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        self.waiting.lock().expect("nobody panics with it").insert(id, sender);
        let line = line::write(id, &question);
        self.stdin.lock().await.write_all(line.as_bytes()).await.map_err(|_| AskError::Ended)?;
        let probes = question.repeat.saturating_add(question.warm_up);
        let deadline = question.timeout.saturating_mul(probes).saturating_add(PATIENCE);
        match tokio::time::timeout(deadline, answer).await {
            Ok(answer) => answer.unwrap_or(Err(AskError::Ended)),
            Err(_) => Err(AskError::Late(deadline)),
        }
    }

    /// The program's process.
    ///
    /// # Panics
    /// When it has ended and somebody has waited for that.
    pub fn pid(&self) -> u32 {
        self.child.id().expect("nobody waits for it")
    }
}

fn binary() -> PathBuf {
    let path = workspace().join("target/kubelet-prober/kubelet-prober");
    assert!(path.is_file(), "{} is missing: run ./justw oracle", path.display());
    path
}

/// Hands each line to who waits for it. With the last one gone, all that wait learn that nothing more will come.
async fn deliver(stdout: ChildStdout, waiting: Waiting) {
    let mut lines = BufReader::new(stdout).lines();
    while let Ok(Some(text)) = lines.next_line().await {
        let (id, answer) = line::read(&text);
        let sender = id.and_then(|id| waiting.lock().expect("nobody panics with it").remove(&id));
        // Nobody waits for an answer that is late.
        let _ = sender.map(|sender| sender.send(answer));
    }
    waiting.lock().expect("nobody panics with it").clear();
}
