//! Tests of agents that are restarted while their applications stay healthy: no endpoint is lost.

use std::time::Duration;

use kit::app::switched::Behavior;
use kit::vm::fixture::{Fixture, FixtureSettings};
use kit::vm::traffic::Traffic;
use kit::wait;
use nix::sys::signal::Signal;
use serde_json::Value;

/// As many as self-preservation needs, and one more.
const ALL: [usize; 4] = [0, 1, 2, 3];

/// Starts machines whose streams may be lost for longer than any test.
async fn start(name: &str) -> Fixture {
    let settings = FixtureSettings {
        machines: ALL.len(),
        discovery: vec!["--disconnect-grace", "3600s"],
        ..FixtureSettings::default()
    };
    Fixture::start(name, settings).await
}

/// Ends all agents with a signal.
async fn end(fixture: &mut Fixture, signal: Signal) {
    ALL.into_iter().for_each(|machine| fixture.machines[machine].signal(signal));
    for machine in &mut fixture.machines {
        assert_eq!(machine.agent_end().await, Some(0), "{}", machine.log());
    }
}

/// Starts all agents, and waits until each has reported its first verdict.
async fn start_again(fixture: &mut Fixture) {
    for machine in ALL {
        fixture.machines[machine].start_agent().expect("the agent starts");
        let reports =
            |view: &Value| view["agent"]["connected"] == true && view["condition"]["status"] == "True";
        fixture.until_view(machine, reports).await;
        let has_verdict = async || fixture.machines[machine].view().await["state"] == "Healthy";
        wait::until("the agent has probed the application", has_verdict).await;
    }
}

#[tokio::test]
async fn agents_restarted_by_their_signal_keep_their_endpoints() {
    let mut fixture = start("vm-restart-signal").await;
    let before = fixture.endpoint_changes().await;
    end(&mut fixture, Signal::SIGUSR2).await;
    for machine in ALL {
        let view = fixture.until_view(machine, |view| view["agent"]["connected"] == false).await;
        assert_eq!((&view["condition"]["status"], &view["endpoint"]), (&"True".into(), &"served".into()));
    }
    start_again(&mut fixture).await;
    // Envoy has processed all earlier responses once it has this change.
    fixture.machines[0].application.set_behavior(Behavior::Failing);
    fixture.until_endpoints(&[1, 2, 3]).await;
    fixture.assert_endpoint_changes(before, 1).await;
}

/// As by a deployment that stops all agents and starts them.
#[tokio::test]
async fn agents_that_all_terminate_at_once_leave_endpoints() {
    let mut fixture = start("vm-restart-terminate").await;
    let traffic = Traffic::start(fixture.client.listener, Duration::from_millis(20));
    end(&mut fixture, Signal::SIGTERM).await;
    for machine in ALL {
        let view = fixture.until_view(machine, |view| view["selfPreserved"] == true).await;
        assert_eq!(
            (&view["condition"]["reason"], &view["endpoint"]),
            (&"Terminating".into(), &"served".into())
        );
    }
    fixture.until_endpoints(&ALL).await;
    start_again(&mut fixture).await;
    fixture.until_endpoints(&ALL).await;
    let tally = traffic.take();
    assert!(tally.keys().all(|(status, _)| *status == 200), "{tally:?}");
}
