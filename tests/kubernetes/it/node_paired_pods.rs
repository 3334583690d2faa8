//! Runs the same Pods twice on one node, without the sidecar and with it. Both applications are
//! switched at the same time, and the status of both Pods has to change in the same way.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use kit::caller::{self, Answer};
use kit::terminal::say;
use kubernetes_tests::node::{Namespace, Node, Watch, container};
use serde_json::{Value, json};
use tokio::time::Instant;

/// The Pods without or with the sidecar.
pub(crate) struct Side<'a> {
    /// The name of this side in the output.
    pub(crate) name: &'static str,
    pub(crate) namespace: Namespace<'a>,
    pub(crate) watch: Watch,
}

/// The Pods without and with the sidecar, in this order.
pub(crate) struct PairedPods<'a> {
    pub(crate) sides: [Side<'a>; 2],
}

/// A switch to set: the Pod, the control port, and a request such as `POST /http/failing`.
pub(crate) type Switch<'a> = (&'a str, u16, String);

impl<'a> PairedPods<'a> {
    pub(crate) fn new(node: &'a Node, name: &str) -> Self {
        let side = |label, injected| {
            let namespace = node.create_namespace(&format!("{name}-{label}"), injected);
            let watch = namespace.watch();
            Side { name: label, namespace, watch }
        };
        Self { sides: [side("baseline", false), side("sidecar", true)] }
    }

    /// Creates the Pods on both sides.
    pub(crate) fn create(&self, pods: &[Value]) {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": pods});
        for side in &self.sides {
            let warnings = side.namespace.create(&list);
            assert!(!warnings.contains("app-health: "), "{warnings}");
        }
    }

    /// Waits until a Pod fulfils the condition on both sides.
    pub(crate) fn until(&self, pod: &str, what: &str, is_so: impl Fn(&Value) -> bool) {
        for side in &self.sides {
            side.until(pod, what, &is_so);
        }
    }

    /// Sets switches on both sides at the same time, and returns that time.
    pub(crate) fn set_switches(&self, switches: &[Switch<'_>]) -> Instant {
        let asked = self
            .sides
            .iter()
            .flat_map(|side| switches.iter().map(|(pod, control, what)| side.ask(pod, *control, what)));
        let moment = Instant::now();
        for answer in wait(join_all(asked)) {
            assert_eq!(answer.status, 200, "{answer:?}");
        }
        moment
    }

    /// Asserts that the values of `look` for a Pod over time are `expected` on both sides, and
    /// returns when each value was first seen.
    pub(crate) fn assert_same_changes<T: PartialEq + std::fmt::Debug>(
        &self,
        pod: &str,
        look: impl Fn(&Value) -> T,
        expected: &[T],
    ) -> [Vec<Instant>; 2] {
        self.sides.each_ref().map(|side| {
            let (moments, states): (Vec<_>, Vec<_>) = side.watch.changes(pod, &look).into_iter().unzip();
            assert_eq!(states, expected, "{pod} {}:\n{}", side.name, side.all_events(pod));
            moments
        })
    }
}

impl Side<'_> {
    /// Waits until a Pod fulfils the condition.
    pub(crate) fn until(&self, pod: &str, what: &str, is_so: impl Fn(&Value) -> bool) {
        self.namespace.wait_until(&self.watch, pod, what, is_so);
    }

    /// Sends a request to the control port of the application in a Pod, as soon as it listens.
    pub(crate) async fn ask(&self, pod: &str, control: u16, what: &str) -> Answer {
        let pod = self.watch.last(pod);
        let ip = pod["status"]["podIP"]
            .as_str()
            .and_then(|ip| ip.parse().ok())
            .expect("the Pod has an IP address");
        let request = format!("{what} HTTP/1.1\r\nHost: application\r\nContent-Length: 0\r\n\r\n");
        let ask = async || {
            let answer = caller::send(SocketAddr::new(ip, control), request.as_bytes()).await;
            (answer.status != 0).then_some(answer)
        };
        let answer = kit::wait::until_some(|| format!("{ip}:{control} answers"), ask).await;
        assert_eq!(answer.status, 200, "{what}: {answer:?}");
        answer
    }

    /// Returns the messages of the events of one container of a Pod.
    pub(crate) fn events(&self, pod: &str, container: &str) -> Vec<String> {
        let field =
            format!("involvedObject.name={pod},involvedObject.fieldPath=spec.containers{{{container}}}");
        let list =
            self.namespace.kubectl_ok(&["get", "events", "-o", "json", "--field-selector", &field], "");
        let list: Value = serde_json::from_str(&list).expect("JSON");
        let events = list["items"].as_array().expect("a list");
        events.iter().filter_map(|event| event["message"].as_str()).map(str::to_owned).collect()
    }

    /// Returns a table of all events of a Pod.
    fn all_events(&self, pod: &str) -> String {
        let selector = format!("involvedObject.name={pod}");
        let columns =
            "custom-columns=AT:.lastTimestamp,FIELD:.involvedObject.fieldPath,COUNT:.count,MESSAGE:.message";
        self.namespace.kubectl_ok(&["get", "events", "--field-selector", &selector, "--output", columns], "")
    }

    /// Waits for an event of a container that contains all these words.
    pub(crate) fn until_event(&self, pod: &str, container: &str, words: &[&str]) {
        let is_there = || {
            let events = self.events(pod, container);
            events.iter().any(|event| words.iter().all(|word| event.contains(word)))
        };
        let what = format!("an event of {container} in {pod} ({}) contains {words:?}", self.name);
        self.namespace.node.until_or(&what, is_there, || format!("{:#?}", self.events(pod, container)));
    }
}

/// Prints how long each side took, and asserts that neither exceeds `bound` by more than the slack.
pub(crate) fn compare(what: &str, times: [Duration; 2], bound: Duration) {
    let [baseline, sidecar] = times.map(|time| time.as_secs_f64());
    let difference = sidecar - baseline;
    say(&format!("{what:<40} baseline {baseline:>6.2} s, sidecar {sidecar:>6.2} s, {difference:>+6.2} s\n"));
    for time in times {
        assert!(time < bound + kit::wait::timeout(), "{what}: took {time:?}, expected {bound:?}");
    }
}

/// Returns whether a container is ready.
pub(crate) fn ready(pod: &Value, name: &str) -> bool {
    container(pod, name)["ready"] == true
}

/// Returns whether a container's startup probe has succeeded.
pub(crate) fn started(pod: &Value, name: &str) -> bool {
    container(pod, name)["started"] == true
}

/// Returns how often a container was restarted.
pub(crate) fn restarts(pod: &Value, name: &str) -> u64 {
    container(pod, name)["restartCount"].as_u64().unwrap_or(0)
}

/// Runs the future in the network namespace of this thread.
pub(crate) fn wait<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}
