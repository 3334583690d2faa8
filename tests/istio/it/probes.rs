//! Kubelet's prober, directly and through each agent.

use std::process::Command;

use kit::envoy::workspace;

/// The verdicts about applications in the wild are the same. `./justw conformance-pilot-agent` says where those of Istio's
/// agent differ.
#[test]
#[ignore = "needs Istio's agent and kubelet's prober: ./justw test-istio"]
fn verdicts_through_both_agents_are_kubelets() {
    for form in ["agent", "pilot-agent"] {
        let mut command = Command::new(workspace().join("target/debug/conformance"));
        command.args(["suite", "in the wild"]).env("APP_HEALTH_TEST_FILTER", form);
        let output = command.output().expect("the program starts");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{form}: {text}{}", String::from_utf8_lossy(&output.stderr));
        let cases = text.lines().find_map(|line| line.trim().strip_prefix("in the wild")).expect("a table");
        assert!(cases.split_whitespace().next().is_some_and(|count| count != "0"), "{form}: {text}");
    }
}
