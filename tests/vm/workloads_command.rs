//! Tests of the output of `app-health workloads`.

use kit::agent;
use kit::app::switched::Behavior;
use kit::vm::fixture::{Fixture, FixtureSettings};
use kit::wait;
use serde_json::Value;

#[tokio::test]
async fn the_table_shows_the_state_of_each_workload() {
    let fixture = Fixture::start("vm-table", FixtureSettings::default()).await;
    fixture.machines[1].application.set_behavior(Behavior::Failing);
    fixture.until_endpoints(&[0]).await;
    fixture.until_view(1, |workload| workload["condition"]["status"] == "False").await;
    let table = fixture.discovery.print_workloads(&[]).await;
    assert_eq!((table.code, table.stderr.as_str()), (Some(0), ""));
    let lines: Vec<&str> = table.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", table.stdout);
    let line = |machine: usize| {
        let address = fixture.machines[machine].ip.to_string();
        lines.iter().find(|line| line.contains(&address)).copied().unwrap_or_default().to_owned()
    };
    assert!(
        line(0).contains("shop") && line(0).contains("payments") && line(0).contains("served"),
        "{}",
        table.stdout
    );
    assert!(line(1).contains("removed") && line(1).contains("HTTP status 503"), "{}", table.stdout);
    let view = async || -> Value {
        let json = fixture.discovery.print_workloads(&["--output", "json"]).await;
        serde_json::from_str(&json.stdout).expect("JSON")
    };
    assert_eq!(view().await["workloads"].as_array().map(Vec::len), Some(2));
    // Envoy acknowledges a response after it has applied it.
    wait::until("acknowledgements of CDS and EDS", async || {
        let view = view().await;
        ["CDS", "EDS"].iter().all(|kind| {
            let mut clients = view["clients"].as_array().into_iter().flatten();
            let client = clients.find(|found| found["node"] == "client" && found["type"] == **kind);
            let client = client.unwrap_or(&Value::Null);
            assert!(client["nack"].is_null(), "{client:#}");
            client["acked"].is_string() && client["acked"] == client["version"]
        })
    })
    .await;
    let none = fixture.discovery.print_workloads(&["--namespace", "other"]).await;
    assert_eq!((none.code, none.stdout.lines().count() <= 1), (Some(0), true), "{}", none.stdout);
}

#[tokio::test]
async fn an_unreachable_server_is_reported() {
    let arguments = ["workloads", "--url", "http://127.0.0.1:1"];
    let child = agent::command_of("app-health", &arguments).spawn().expect("the program starts");
    let outcome = agent::finish(child).await;
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(69), ""), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("127.0.0.1:1"), "{}", outcome.stderr);
}
