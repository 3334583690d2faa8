//! A test of write conflicts: another client writes the same object continuously while the health
//! of its agent changes.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::{Value, json};

use super::{Fixture, NAMESPACE, set};
use crate::{api_client, wait_until};

const NAME: &str = "payments-10.0.9.1";

/// Increments a counter in a condition, a label, an annotation and a separate field, each by
/// compare and swap, until `stop` is set. Returns the final count.
async fn write_concurrently(kubeconfig: PathBuf, stop: Arc<AtomicBool>) -> u64 {
    let client = api_client(&kubeconfig).await;
    let path = format!("/apis/networking.istio.io/v1/namespaces/{NAMESPACE}/workloadentries/{NAME}");
    let send = async |method: &str, path: &str, body: Vec<u8>| {
        let request =
            hyper::Request::builder().method(method).uri(path).header("content-type", "application/json");
        client.request::<Value>(request.body(body).expect("a request")).await
    };
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        let Ok(mut object) = send("GET", &path, Vec::new()).await else { continue };
        let next = Value::from((count + 1).to_string());
        object["metadata"]["labels"] = json!({"count": next});
        object["metadata"]["annotations"]["count"] = next.clone();
        object["spec"]["count"] = next.clone();
        let Ok(mut object) = send("PUT", &path, object.to_string().into_bytes()).await else { continue };
        loop {
            let status = object["status"].as_object_mut().expect("a status");
            status.insert("count".to_owned(), next.clone());
            let conditions =
                status.entry("conditions").or_insert_with(|| json!([])).as_array_mut().expect("conditions");
            conditions.retain(|condition| condition["type"] != "Counted");
            conditions
                .insert(0, json!({"type": "Counted", "status": "True", "message": next, "x": {"y": 1}}));
            if send("PUT", &format!("{path}/status"), object.to_string().into_bytes()).await.is_ok() {
                break;
            }
            object = send("GET", &path, Vec::new()).await.expect("the entry exists");
        }
        count += 1;
    }
    count
}

pub(super) fn conflicting_writes(fixture: &mut Fixture) {
    let agent = fixture.a().connect("payments", "", "10.0.9.1");
    let first = agent.report(true);
    wait_until("acknowledged", || agent.acknowledged() == Some(first));
    let stop = Arc::new(AtomicBool::new(false));
    let writer = {
        let (kubeconfig, stop) = (fixture.cluster.kubeconfig("admin"), stop.clone());
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(write_concurrently(kubeconfig, stop))
        })
    };
    for flip in 0..20 {
        let is_healthy = flip % 2 == 1;
        let generation = agent.report(is_healthy);
        let expected = if is_healthy { set(&["10.0.9.1"]) } else { set(&[]) };
        wait_until("report stored and served despite conflicts", || {
            agent.acknowledged() == Some(generation) && fixture.b().endpoints() == expected
        });
    }
    stop.store(true, Ordering::Relaxed);
    let count = writer.join().expect("the writer does not panic");
    assert!(count > 10, "{count}");
    let entry = fixture.entry(NAME).expect("the entry exists");
    let count = count.to_string();
    assert_eq!(entry["metadata"]["labels"]["count"], *count);
    assert_eq!(entry["metadata"]["annotations"]["count"], *count);
    assert_eq!(entry["spec"]["count"], *count);
    assert_eq!(entry["status"]["count"], *count);
    let counted = json!({"type": "Counted", "status": "True", "message": count, "x": {"y": 1}});
    let conditions = entry["status"]["conditions"].as_array().expect("conditions");
    assert!(conditions.contains(&counted) && conditions.len() == 2, "{entry:#}");
    assert_eq!(fixture.condition(NAME).as_deref(), Some("True ProbeSucceeded"));
    agent.close();
    wait_until("gone", || fixture.entry(NAME).is_none());
}
