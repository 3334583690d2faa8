//! The webhook, discovery and the shipped manifests against the API server of a released Kubernetes: `./justw test-kubernetes`.
//!
//! There is no node, so nothing runs; what an API server accepts, calls and refuses is what is seen. The webhook's Service is an
//! ExternalName of loopback: the API server resolves it like any other and asks for the Service's name in the certificate.

mod cluster;
mod discovery;
mod late;
mod steps;
#[path = "../it/webhook_kit.rs"]
#[allow(dead_code, reason = "shared with the tests without a cluster, which use all of it")]
mod webhook_kit;

use cluster::Cluster;
use steps::World;

#[test]
#[ignore = "needs a Kubernetes API server: ./justw test-kubernetes"]
fn kubernetes() {
    let mut world = World::new(Cluster::start("webhook"));
    for (name, step) in steps::STEPS {
        println!("{name}");
        step(&mut world);
    }
}

#[test]
#[ignore = "needs a Kubernetes API server: ./justw test-kubernetes"]
fn discovery_with_replicas() {
    let mut world = discovery::World::new(Cluster::start("discovery"));
    for (name, step) in discovery::STEPS {
        println!("{name}");
        step(&mut world);
    }
}
