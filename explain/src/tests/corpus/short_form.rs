//! The short forms of the corpus, each of which stands for the fields that differ from a base.

use serde_json::{Map, Value, json};

use super::super::{report_of, situation};
use crate::container::list;
use crate::report::Report;

/// The times of the bases are on this day, and `now` is at noon.
const NOON: i64 = 12 * 3600;

/// Returns the time stamp of so many seconds ago.
fn ago(seconds: i64) -> String {
    let time = NOON - seconds;
    format!("2026-03-01T{:02}:{:02}:{:02}Z", time / 3600, time / 60 % 60, time % 60)
}

fn event(short: &Value, kind: &str) -> Value {
    let field = |key: &str, default: Value| {
        let given = &short[key];
        if given.is_null() { default } else { given.clone() }
    };
    let mut object = json!({"kind": kind, "name": "web"});
    if let Some(container) = short["container"].as_str() {
        object["fieldPath"] = json!(format!("spec.containers{{{container}}}"));
    }
    let age = short["age"].as_i64().unwrap_or(10);
    json!({
        "type": field("type", json!("Warning")),
        "reason": short["reason"],
        "message": short["message"],
        "count": field("count", json!(12)),
        "firstTimestamp": ago(age + 600),
        "lastTimestamp": ago(age),
        "involvedObject": object,
    })
}

/// The fields that a situation sets.
struct Fields(Map<String, Value>);

impl Fields {
    fn set(&mut self, pointer: &str, value: Value) {
        self.0.insert(pointer.to_owned(), value);
    }

    fn unready(&mut self) {
        self.set("/pod/found/status/conditions/1/status", json!("False"));
        self.set("/pod/found/status/conditions/2/status", json!("False"));
    }

    /// Sets the status of a container; the application waits for the sidecar.
    fn status(&mut self, container: &str, status: Value) {
        self.unready();
        self.set("/answers", json!([]));
        let waits = json!({"name": "app", "ready": false, "started": false, "restartCount": 0, "state": {"waiting": {"reason": "PodInitializing"}}});
        if container == "app" {
            self.set("/pod/found/status/containerStatuses/0", status);
        } else {
            self.set("/pod/found/status/initContainerStatuses/0", status);
            self.set("/pod/found/status/containerStatuses/0", waits);
            self.set("/readiness", json!("notRequested"));
        }
    }
}

/// Returns the report about a situation of the corpus.
pub(super) fn report(short: &Value) -> Report {
    if let Some(message) = short["create"].as_str() {
        let event = event(&json!({"reason": "FailedCreate", "message": message}), "ReplicaSet");
        let object = if message.starts_with("create Pod") { "statefulset/db" } else { "deployment/web" };
        let value = json!({"found": {"spec": {"replicas": 3}, "status": {}}});
        return report_of(
            &json!({"workload": {"object": object, "value": value, "events": {"found": [event]}, "pods": []}}),
        );
    }
    if short["workload"].is_object() {
        let mut workload = short["workload"].clone();
        if workload["object"].is_null() {
            workload["object"] = json!("deployment/web");
        }
        return report_of(&json!({"workload": workload}));
    }
    let (base, fields, events) = pod(short);
    let mut fields = fields.0;
    let mut all: Vec<Value> = events.iter().map(|short| event(short, "Pod")).collect();
    all.extend(list(&short["events"]).iter().map(|short| event(short, "Pod")));
    fields.insert("/events/found".to_owned(), Value::Array(all));
    for (pointer, value) in short["set"].as_object().into_iter().flatten() {
        fields.insert(pointer.clone(), value.clone());
    }
    // A field must exist before fields in it are set.
    let overlay = json!({"base": base, "set": fields, "remove": short["remove"]});
    let situation = situation(&overlay);
    Report::of_pod(crate::object::ObjectName::parse("pod/web").expect("a name"), &situation)
}

/// Returns the base, the fields and the events of a short form.
fn pod(short: &Value) -> (String, Fields, Vec<Value>) {
    let mut base = "injected";
    let mut fields = Fields(Map::new());
    let mut events = Vec::new();
    if let Some(message) = short["unschedulable"].as_str() {
        base = "new";
        let condition =
            json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message});
        fields.set("/pod/found/status/conditions/0", condition);
        fields.set("/node", json!("notRequested"));
    }
    waiting(short, &mut fields);
    crash(short, &mut fields);
    if short["init"].is_object() {
        init(&short["init"], &mut fields);
    }
    for (key, reason) in [("mount", "FailedMount"), ("sandbox", "FailedCreatePodSandBox")] {
        if let Some(message) = short[key].as_str() {
            base = "new";
            let reason = short["reason"].as_str().unwrap_or(reason);
            let waits = |name: &str| json!([{"name": name, "ready": false, "restartCount": 0, "state": {"waiting": {"reason": "ContainerCreating"}}}]);
            fields.set("/pod/found/spec/nodeName", json!("node1"));
            fields.set("/pod/found/status/containerStatuses", waits("app"));
            fields.set("/pod/found/status/initContainerStatuses", waits("app-health-proxy"));
            events.push(json!({"reason": reason, "message": message}));
        }
    }
    if let Some(failed) = short["failed"].as_object() {
        fields.set("/pod/found/status/phase", json!("Failed"));
        fields.set("/pod/found/status/reason", failed["reason"].clone());
        fields.set("/pod/found/status/message", failed["message"].clone());
        fields.unready();
        fields.set("/answers", json!([]));
        if let Some(kind) = failed.get("owner") {
            fields.set(
                "/pod/found/metadata/ownerReferences",
                json!([{"kind": kind, "name": "web", "controller": true}]),
            );
        }
    }
    if short["kubelet"].is_object() || short["answer"].is_object() {
        events.extend(probe(short, &mut fields));
    }
    (short["base"].as_str().unwrap_or(base).to_owned(), fields, events)
}

fn waiting(short: &Value, fields: &mut Fields) {
    let waiting = &short["waiting"];
    if waiting.is_object() {
        let name = waiting["container"].as_str().unwrap_or("app");
        let state = json!({"waiting": {"reason": waiting["reason"], "message": waiting["message"]}});
        let status =
            json!({"name": name, "ready": false, "started": false, "restartCount": 0, "state": state});
        fields.status(name, status);
        fields.set("/pod/found/status/phase", json!("Pending"));
    }
}

/// A container whose last run ended so; it waits for its next start unless it is `running`.
fn crash(short: &Value, fields: &mut Fields) {
    let crash = &short["crash"];
    if !crash.is_object() {
        return;
    }
    let name = crash["container"].as_str().unwrap_or("app");
    let age = crash["age"].as_i64().unwrap_or(40);
    let reason = crash["reason"].as_str().unwrap_or("Error");
    let terminated = json!({"exitCode": crash["code"], "reason": reason, "message": crash["message"], "startedAt": ago(age + 60), "finishedAt": ago(age)});
    let state = if crash["running"] == true {
        json!({"running": {"startedAt": ago(age - 10)}})
    } else {
        json!({"waiting": {"reason": "CrashLoopBackOff", "message": format!("back-off 5m0s restarting failed container={name}")}})
    };
    let restarts = crash["restarts"].as_u64().unwrap_or(6);
    let status = json!({"name": name, "ready": false, "started": false, "restartCount": restarts, "state": state, "lastState": {"terminated": terminated}});
    fields.status(name, status);
    if let Some(log) = crash["log"].as_str() {
        fields.set("/previousLogs", json!({name: {"found": format!("starting\n{log}\n")}}));
    }
}

/// An init container `migrate`, which runs before the sidecar.
fn init(status: &Value, fields: &mut Fields) {
    let mut status = status.clone();
    status["name"] = json!("migrate");
    let waits = |name: &str| json!({"name": name, "ready": false, "started": false, "restartCount": 0, "state": {"waiting": {"reason": "PodInitializing"}}});
    fields.unready();
    fields.set("/pod/found/status/phase", json!("Pending"));
    fields.set(
        "/pod/found/spec/initContainers",
        json!([{"name": "migrate", "image": "migrate:9"}, {"name": "app-health-proxy", "image": "app-health:0.1.0", "restartPolicy": "Always"}]),
    );
    fields.set("/pod/found/status/initContainerStatuses", json!([status, waits("app-health-proxy")]));
    fields.set("/pod/found/status/containerStatuses/0", waits("app"));
    fields.set("/readiness", json!("notRequested"));
    fields.set("/answers", json!([]));
}

/// The readiness probe fails in kubelet, or answers so to the API server.
fn probe(short: &Value, fields: &mut Fields) -> Option<Value> {
    fields.unready();
    fields.set("/answers", json!([]));
    if short["answer"].is_object() {
        let answer = json!({"container": "app", "kind": "readiness", "milliseconds": 4, "result": {"response": short["answer"]}});
        fields.set("/answers", json!([answer]));
    }
    let kubelet = &short["kubelet"];
    let name = kubelet["container"].as_str().unwrap_or("app");
    let list = if name == "app" { "containerStatuses" } else { "initContainerStatuses" };
    fields.set(&format!("/pod/found/status/{list}/0/ready"), json!(false));
    kubelet.is_object().then(|| {
        let age = kubelet["age"].as_i64().unwrap_or(3);
        json!({"reason": "Unhealthy", "container": name, "message": kubelet["message"], "age": age, "count": 200})
    })
}
