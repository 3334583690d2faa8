//! Tests of the status pages of an agent on a virtual machine and of its discovery server.

use kit::app::switched::Behavior;
use kit::caller;
use kit::events::EventStream;
use kit::vm::fixture::{Fixture, FixtureSettings};
use serde_json::Value;

/// Returns the value of a row of a table with two columns.
fn value<'a>(event: &'a Value, table: &str, name: &str) -> &'a Value {
    let tables = event["state"]["tables"].as_array().into_iter().flatten();
    let rows = tables.filter(|found| found["id"] == table).flat_map(|table| table["rows"].as_array());
    rows.flatten().find(|row| row[0] == name).map_or(&Value::Null, |row| &row[1])
}

#[tokio::test]
async fn a_machine_that_fails_appears_on_both_pages() {
    let fixture = Fixture::start("vm-page", FixtureSettings::default()).await;
    let machine = &fixture.machines[0];
    let mut agent = EventStream::open(machine.admin_address(), "/events").await.expect("a stream");
    let state = |event: &Value| value(event, "workload", "state").clone();
    let healthy = agent.until("the workload is healthy", |event| state(event)["tone"] == "good").await;
    let stream = &value(&healthy, "stream", "stream")["text"];
    assert!(stream.as_str().is_some_and(|text| text.starts_with("connected to ")), "{healthy:#}");

    let monitoring = fixture.discovery.monitoring();
    let mut discovery = EventStream::open(monitoring, "/events").await.expect("a stream");
    let find = |event: &Value| {
        let mut rows = event["rows"].as_array().into_iter().flatten();
        rows.find(|row| row["address"] == machine.ip.to_string()).cloned().unwrap_or_default()
    };
    discovery.until("a served machine", |event| find(event)["endpoint"] == "served").await;

    machine.application.set_behavior(Behavior::Failing);
    agent.until("the workload is unhealthy", |event| state(event)["tone"] == "bad").await;
    let removed = discovery.until("a removed machine", |event| find(event)["endpoint"] == "removed").await;
    let machine = find(&removed);
    let (namespace, name) = (machine["namespace"].as_str(), machine["name"].as_str());
    let (Some(namespace), Some(name)) = (namespace, name) else { panic!("{machine:#}") };
    let path = format!("/debug/workloads/history?namespace={namespace}&name={name}");
    let history: Value =
        serde_json::from_str(&caller::get(monitoring, &path, &[]).await.text()).expect("JSON");
    let statuses: Vec<&str> =
        history.as_array().into_iter().flatten().filter_map(|change| change["status"].as_str()).collect();
    assert!(statuses.ends_with(&["True", "False"]), "{history:#}");
}
