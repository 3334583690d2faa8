//! Tests with a released Kubernetes. They are ignored by default; `./justw test-kubernetes` runs
//! them.
//!
//! `webhook`, `discovery`, `helm` and `lint` need only an API server, since no Pod runs in them. The
//! tests named `node…` need root, and run Pods on a node that they start.

mod discovery;
mod faulty_api;
mod helm;
mod lint;
mod node;
mod node_alone_chaos;
mod node_alone_docs;
mod node_alone_strict_mtls;
mod node_costs;
mod node_events;
mod node_explain;
mod node_hold;
mod node_kinds;
mod node_liveness;
mod node_paired_pods;
mod node_readiness;
mod node_shapes;
mod node_start;
mod webhook;

use std::path::{Path, PathBuf};

use kit::{envoy, wait};
use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kubernetes_tests::node::http_get;
use kubernetes_tests::{Cluster, Options};
use tokio::time::Instant;

#[test]
#[ignore = "needs a Kubernetes API server: ./justw test-kubernetes"]
fn webhook() {
    run(&mut webhook::Fixture::new(cluster("webhook")), &webhook::STEPS);
}

#[test]
#[ignore = "needs a Kubernetes API server: ./justw test-kubernetes"]
fn discovery_with_replicas() {
    run(&mut discovery::Fixture::new(cluster("discovery")), &discovery::STEPS);
}

#[test]
#[ignore = "needs a Kubernetes API server: ./justw test-kubernetes"]
fn lint_of_a_cluster() {
    lint::lint(&cluster("lint"));
}

#[test]
#[ignore = "needs a Kubernetes API server: ./justw test-kubernetes"]
fn helm_chart() {
    run(&mut helm::Fixture::new(cluster("helm")), &helm::STEPS);
}

#[test]
#[ignore = "needs a Kubernetes API server: ./justw test-kubernetes"]
fn helm_chart_for_istio() {
    run(&mut helm::Fixture::new(cluster("helm-istio")), &helm::STEPS_WITH_ISTIO);
}

/// Names of steps, and the functions that run them.
type Steps<F> = [(&'static str, fn(&mut F))];

/// Runs steps in order, and prints the name of each before.
#[expect(clippy::print_stdout, reason = "the progress of a test that takes minutes")]
fn run<F>(fixture: &mut F, steps: &Steps<F>) {
    for (name, step) in steps {
        println!("{name}");
        step(fixture);
    }
}

fn cluster(name: &str) -> Cluster {
    Cluster::start(&folder(name), Options::default())
}

fn folder(name: &str) -> PathBuf {
    envoy::folder(&format!("kubernetes-{name}"))
}

/// Returns a client with the credentials of a kubeconfig.
async fn api_client(kubeconfig: &Path) -> Client {
    let config = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("a configuration")).expect("a client")
}

/// Waits until `done` returns true, and prints how long it took.
#[expect(clippy::print_stdout, reason = "the progress of a test that takes minutes")]
fn wait_until(what: &str, done: impl FnMut() -> bool) {
    let begin = Instant::now();
    wait::until_blocking(|| what.to_owned(), done);
    println!("  {what}: {} ms", begin.elapsed().as_millis());
}
