//! Tests that machines that become silent all at once stay endpoints until the operator releases
//! them.

use std::fs;
use std::process::Command;

use crate::discovery_support::{Discovery, EDS, PAYMENTS, Peer, binary, health, request, wait_for_page};
use crate::webhook_support::Ca;

const MACHINES: usize = 4;

fn served(view: &str) -> usize {
    view.matches("\"endpoint\":\"served\"").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_client_ca_removes_no_machine() {
    let flags = ["--disconnect-grace", "1s", "--restart-grace", "2s"];
    let mut discovery = Discovery::start("silence", &flags);
    let mut machines = Vec::new();
    for number in 1..=MACHINES {
        let address = format!("10.0.0.{number}");
        let node = [
            ("NAMESPACE", "shop"),
            ("SERVICE_ACCOUNT", "payments"),
            ("INSTANCE_IPS", address.as_str()),
            ("AUTO_REGISTER_GROUP", "payments"),
        ];
        let tls = discovery.identity(PAYMENTS);
        let machine = Peer::open(discovery.secure, tls, request(EDS, &[], &node)).await.expect("a stream");
        machine.send(health("")).await;
        machines.push(machine);
    }
    let all = |_, view: &str| served(view) == MACHINES;
    tokio::task::block_in_place(|| wait_for_page(&discovery.folder, "/debug/workloads", all));

    // Discovery restarts with a CA that has signed no certificate of an agent.
    discovery.terminate();
    fs::write(discovery.folder.join("ca.crt"), Ca::new("wrong CA").pem).expect("a file");
    tokio::task::block_in_place(|| {
        discovery.wait();
        discovery.start_again(&flags);
        let preserved =
            |_, text: &str| text.contains("degraded: 4 silent machines of 1 services are preserved");
        wait_for_page(&discovery.folder, "/healthz/ready", preserved);
    });
    let view = discovery.page("/debug/workloads");
    assert!(
        served(&view) == MACHINES && view.contains("\"selfPreservingServices\":[\"shop/pay\"]"),
        "{view}"
    );
    assert!(discovery.page("/metrics").contains("\napp_health_discovery_self_preserved_endpoints 4\n"));

    let release = |arguments: &[&str]| {
        let url = format!("http://{}", discovery.monitoring);
        let mut command = Command::new(binary());
        let output = command.args(["workloads", "release", "--url", &url]).args(arguments).output();
        let output = output.expect("the command runs");
        (output.status.code(), String::from_utf8(output.stdout).expect("UTF-8"))
    };
    let released = |number| (Some(0), format!("released {number} endpoints in self-preservation\n"));
    assert_eq!(release(&["--group", "orders"]), released(0));
    assert_eq!(served(&discovery.page("/debug/workloads")), MACHINES);
    assert_eq!(release(&["--namespace", "shop", "--group", "payments"]), released(MACHINES));
    tokio::task::block_in_place(|| {
        let none = |_, view: &str| view.contains("\"workloads\":[]");
        wait_for_page(&discovery.folder, "/debug/workloads", none);
    });
    assert_eq!(discovery.page("/healthz/ready"), "ready\n");
}
