use std::sync::Mutex;
use std::time::Duration;

use probe::ProxyPorts;
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{advance, sleep};
use workload_health::State;

use super::super::HealthSnapshot;
use super::super::source::LocalRules;
use super::*;
use agent_state::state::AgentState;
use readiness::Dynamic;
use readiness::{Observation, Policy};

/// Duration and result of each probe in order; the last one repeats.
type Script = Vec<(Duration, fn() -> Outcome)>;

fn good() -> Outcome {
    Outcome::Healthy
}

fn bad() -> Outcome {
    Outcome::unhealthy(HealthReason::HttpStatus, "HTTP status 503")
}

fn panics() -> Outcome {
    panic!("a mistake")
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A running probe loop with scripted probe results.
struct Case {
    began: Arc<Mutex<Vec<u64>>>,
    now: watch::Receiver<HealthSnapshot>,
    pushes: mpsc::Sender<PushedProbe>,
    observer: AgentState,
    metrics: Arc<Metrics>,
    task: JoinHandle<()>,
}

impl Case {
    fn start(script: Script, not_ready: Option<&'static str>) -> Self {
        let metrics = Arc::new(Metrics::new());
        let policy =
            Policy { dynamic: Dynamic::Off, data_path: false, child: true, drain_keeps_ready: false };
        let observer = AgentState::new(policy, metrics.clone());
        let (began, started) = (Arc::new(Mutex::new(Vec::new())), Instant::now());
        let seen = began.clone();
        let run_probe = move |_: Arc<WorkloadProbe>| {
            let mut seen = seen.lock().unwrap();
            let (took, end) = script[seen.len().min(script.len() - 1)];
            seen.push(started.elapsed().as_secs());
            async move {
                sleep(took).await;
                end()
            }
        };
        let (push, pushes) = mpsc::channel(4);
        let rules = LocalRules { proxy_ports: ProxyPorts::new([16021]), allow_pushed_exec: false };
        let probe_loop = ProbeLoop::new(
            run_probe,
            move || not_ready.map(str::to_owned),
            ProbeSource::new(None, rules),
            pushes,
            observer.subscribe(),
            metrics.clone(),
            true,
        );
        let now = probe_loop.publisher.subscribe();
        Self { began, now, pushes: push, observer, metrics, task: tokio::spawn(probe_loop.run()) }
    }

    async fn push(&self, probe: Option<Value>) -> Result<(), String> {
        let (result, received) = oneshot::channel();
        self.pushes.send(PushedProbe { probe, result }).await.unwrap();
        received.await.unwrap()
    }

    fn began(&self) -> Vec<u64> {
        self.began.lock().unwrap().clone()
    }

    fn state(&self) -> (State, HealthReason, u64) {
        let now = self.now.borrow();
        (now.status.verdict.state, now.status.verdict.reason, now.status.verdict.generation)
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        assert!(!self.task.is_finished(), "the loop must not end by itself");
        self.task.abort();
    }
}

fn probe(delay: u64, period: u64, failures: u32) -> Option<Value> {
    Some(
        json!({"initialDelaySeconds": delay, "periodSeconds": period, "failureThreshold": failures, "timeoutSeconds": 9,
                "tcpSocket": {"port": 8080}}),
    )
}

#[tokio::test(start_paused = true)]
async fn when_probes_begin() {
    for (delay, period, took, expected) in [
        (0, 10, vec![3], vec![0, 10, 20, 30]),
        (5, 10, vec![3], vec![5, 15, 25, 35]),
        // Probes longer than the period run one after another; missed periods are skipped.
        (0, 10, vec![15, 15, 1], vec![0, 15, 30, 40]),
        (0, 1, vec![9], vec![0, 9, 18, 27, 36]),
    ] {
        let script: Script = took.iter().map(|took| (seconds(*took), good as fn() -> Outcome)).collect();
        let case = Case::start(script, None);
        case.push(probe(delay, period, 1)).await.unwrap();
        sleep(Duration::from_millis(39_900)).await;
        sleep(Duration::from_millis(200)).await;
        let began: Vec<u64> = case.began().into_iter().take(expected.len()).collect();
        assert_eq!(began, expected, "{delay} {period} {took:?}");
        assert_eq!(case.state(), (State::Healthy, HealthReason::ProbeSucceeded, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn missed_periods_are_skipped() {
    let case = Case::start(vec![(seconds(0), good)], None);
    case.push(probe(0, 10, 1)).await.unwrap();
    sleep(seconds(1)).await;
    // Simulates that the process was stopped for a while.
    advance(seconds(1000)).await;
    sleep(seconds(5)).await;
    assert_eq!(case.began(), [0, 1001]);
    sleep(seconds(10)).await;
    assert_eq!(case.began(), [0, 1001, 1011]);
}

#[tokio::test(start_paused = true)]
async fn shutdown_waits_neither_for_the_delay_nor_for_a_probe() {
    for (delay, took) in [(3600, 0), (0, 3600)] {
        let mut case = Case::start(vec![(seconds(took), good)], None);
        case.push(probe(delay, 10, 1)).await.unwrap();
        sleep(seconds(1)).await;
        let before = Instant::now();
        case.observer.apply(Observation::Terminating);
        case.now.wait_for(|now| now.status.verdict.reason == HealthReason::Terminating).await.unwrap();
        assert_eq!(before.elapsed(), Duration::ZERO, "{delay} {took}");
        assert_eq!(case.state(), (State::Unhealthy, HealthReason::Terminating, 1));
        let began = case.began().len();
        sleep(seconds(10_000)).await;
        assert_eq!(case.began().len(), began, "no probe runs after the end");
    }
}

#[tokio::test(start_paused = true)]
async fn draining_is_followed_by_terminating() {
    let case = Case::start(vec![(seconds(0), good)], None);
    case.push(probe(0, 10, 1)).await.unwrap();
    sleep(seconds(1)).await;
    case.observer.apply(Observation::Draining);
    sleep(seconds(100)).await;
    assert_eq!(case.state(), (State::Unhealthy, HealthReason::Draining, 2));
    assert_eq!(case.began(), [0]);
    case.observer.apply(Observation::Terminating);
    sleep(seconds(1)).await;
    assert_eq!(case.state(), (State::Unhealthy, HealthReason::Terminating, 3));
}

#[tokio::test(start_paused = true)]
async fn a_reversed_drain_probes_again() {
    let case = Case::start(vec![(seconds(0), good)], None);
    case.push(probe(0, 10, 1)).await.unwrap();
    sleep(seconds(1)).await;
    for drains in [1, 2] {
        case.observer.apply(Observation::Draining);
        sleep(seconds(100)).await;
        assert_eq!(case.state(), (State::Unhealthy, HealthReason::Draining, 3 * drains - 1));
        case.observer.apply(Observation::Undrained);
        sleep(seconds(1)).await;
        assert_eq!(case.state(), (State::Healthy, HealthReason::ProbeSucceeded, 3 * drains + 1));
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_ready_envoy_the_application_is_not_probed() {
    let case = Case::start(vec![(seconds(0), good)], Some("clusters not received"));
    case.push(probe(0, 10, 2)).await.unwrap();
    sleep(seconds(11)).await;
    assert_eq!(case.state(), (State::Unhealthy, HealthReason::EnvoyNotReady, 1));
    assert_eq!(case.now.borrow().status.verdict.message, "Envoy is not ready: clusters not received");
    assert_eq!(case.began(), Vec::<u64>::new());
}

#[tokio::test(start_paused = true)]
async fn a_panicking_prober_is_a_failure_and_the_loop_continues() {
    let case = Case::start(vec![(seconds(0), good), (seconds(1), panics), (seconds(0), good)], None);
    case.push(probe(0, 10, 1)).await.unwrap();
    sleep(seconds(15)).await;
    assert_eq!(case.state(), (State::Unhealthy, HealthReason::CannotRun, 2));
    assert_eq!(case.now.borrow().status.verdict.message, "the prober panicked");
    sleep(seconds(10)).await;
    assert_eq!(case.state(), (State::Healthy, HealthReason::ProbeSucceeded, 3));
}

#[tokio::test(start_paused = true)]
async fn a_changed_probe_applies_immediately_without_a_flap() {
    let case = Case::start(vec![(seconds(0), good), (seconds(0), good), (seconds(5), bad)], None);
    case.push(probe(0, 10, 1)).await.unwrap();
    sleep(seconds(1)).await;
    assert_eq!(case.push(probe(0, 10, 1)).await, Ok(()), "an identical probe is accepted");
    sleep(seconds(1)).await;
    assert_eq!(case.began(), [0], "an identical probe starts no round");
    // The delay counts from the agent's start and has already expired.
    case.push(probe(1, 60, 2)).await.unwrap();
    sleep(seconds(1)).await;
    assert_eq!((case.began(), case.state()), (vec![0, 2], (State::Healthy, HealthReason::ProbeSucceeded, 1)));
    // The running probe belongs to the previous configuration; its failure is discarded.
    case.push(probe(0, 1, 1)).await.unwrap();
    sleep(seconds(2)).await;
    case.push(probe(0, 60, 1)).await.unwrap();
    sleep(seconds(4)).await;
    assert_eq!((case.began(), case.state().0), (vec![0, 2, 3, 5], State::Healthy));
    sleep(seconds(2)).await;
    assert_eq!(case.state(), (State::Unhealthy, HealthReason::HttpStatus, 2));
}

#[tokio::test(start_paused = true)]
async fn rejected_pushes() {
    let case = Case::start(vec![(seconds(0), good)], None);
    case.push(probe(0, 10, 1)).await.unwrap();
    sleep(seconds(1)).await;
    let large = "x".repeat(65 << 10);
    for (probe, text) in [
        (
            json!({"exec": {"command": ["true"]}}),
            "spec.probe.exec: rejected, pushed exec probes require --allow-pushed-exec",
        ),
        (json!({"grpc": {"port": 16021}}), "spec.probe.grpc.port: 16021 belongs to the proxy"),
        (
            json!({"periodSeconds": -1}),
            "spec.probe.periodSeconds: must be 0 or more, got -1; spec.probe: exactly one of httpGet, tcpSocket, exec, grpc is required, found none",
        ),
        (json!({"tcpSocket": {"port": 1}, "x": large}), "spec.probe: larger than 64 KiB"),
    ] {
        assert_eq!(case.push(Some(probe)).await, Err(text.to_owned()));
    }
    sleep(seconds(10)).await;
    assert_eq!(
        (case.began(), case.state().0),
        (vec![0, 10], State::Healthy),
        "the previous probe stays in force"
    );
    assert!(case.metrics.encode().contains("probe_config_total{result=\"refused\"} 4\n"));
}

#[tokio::test(start_paused = true)]
async fn a_removed_probe() {
    let case = Case::start(vec![(seconds(0), good)], None);
    assert_eq!(case.state(), (State::Unknown, HealthReason::NoProbe, 0));
    assert!(case.now.borrow().probe.is_none());
    case.push(probe(5, 10, 3)).await.unwrap();
    assert_eq!(case.state(), (State::Unknown, HealthReason::AwaitingVerdict, 0));
    assert_eq!(case.now.borrow().status.interval, Some(seconds(19)));
    assert_eq!(case.now.borrow().status.verdict_due, Some(seconds(5 + 3 * 19)));
    sleep(seconds(6)).await;
    assert_eq!(case.now.borrow().status.verdict_due, None);
    case.push(None).await.unwrap();
    assert_eq!(case.state(), (State::Unknown, HealthReason::NoProbe, 2));
    sleep(seconds(100)).await;
    assert_eq!(case.began(), [5]);
}

#[tokio::test(start_paused = true)]
async fn metrics() {
    let case = Case::start(vec![(seconds(0), good), (seconds(0), bad)], None);
    case.push(probe(0, 10, 1)).await.unwrap();
    sleep(seconds(15)).await;
    let text = case.metrics.encode();
    for line in [
        "vm_probe_total{kind=\"tcp\",outcome=\"healthy\",reason=\"ProbeSucceeded\"} 1\n",
        "vm_probe_total{kind=\"tcp\",outcome=\"unhealthy\",reason=\"HttpStatus\"} 1\n",
        "vm_probe_duration_seconds_count{kind=\"tcp\"} 2\n",
        "vm_health_state{state=\"Unhealthy\"} 1\n",
        "vm_health_state{state=\"Healthy\"} 0\n",
        "vm_health_transitions_total{to=\"Healthy\"} 1\n",
        "vm_health_transitions_total{to=\"Unhealthy\"} 1\n",
        "probe_config_total{result=\"applied\"} 1\n",
    ] {
        assert!(text.contains(&format!("app_health_agent_{line}")), "{line}{text}");
    }
}
