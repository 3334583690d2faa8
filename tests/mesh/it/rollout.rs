//! A Deployment changes from Istio's agent to ours and back, while it is called.

use mesh_tests::Mesh;
use mesh_tests::rollout::{CALLERS, Rollout};
use mesh_tests::workloads::Agent;

#[test]
#[ignore = "needs a node and Istio's programs: ./justw test-istio-mesh"]
fn a_rollout_loses_no_request() {
    let rollout = Rollout::start(Mesh::shared());
    for agent in [Agent::Mounted, Agent::Stock] {
        for ((name, _), calls) in CALLERS.iter().zip(rollout.change_to(agent)) {
            assert_eq!(calls.failed, 0, "{name} to {agent:?}: {calls:?}");
        }
    }
}
