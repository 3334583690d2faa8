//! Tests of a webhook that does not answer, whose CA is lost or replaced, or that does not run.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use app_health::webhook::authority::Authority;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::dial::{Connection, dial};
use super::{CONFIGURATION, NAMESPACE, World, is_injected, pod};

pub(super) fn policy(world: &mut World) {
    let head =
        b"POST /inject HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    let bundle = world.bundle();
    let busy = || -> Vec<Connection> {
        let mut connections: Vec<Connection> =
            (0..64).map(|_| dial(world.address, &bundle).expect("a connection")).collect();
        connections.iter_mut().for_each(|connection| connection.write_all(head).expect("sent"));
        connections
    };
    let held = busy();
    let refused = world.create(&pod("shop", "refused"));
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && stderr.contains("failed calling webhook"), "{stderr}");
    drop(held);
    let silent = world.webhook.as_ref().expect("the webhook runs");
    silent.signal(Signal::SIGSTOP);
    let refused = world.create(&pod("shop", "refused"));
    silent.signal(Signal::SIGCONT);
    let stderr = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && stderr.contains("failed calling webhook"), "{stderr}");
    let set = |value: &str| {
        let patch: Vec<Value> =
            (0..2).map(|index| json!({"op": "replace", "path": format!("/webhooks/{index}/failurePolicy"), "value": value})).collect();
        world
            .cluster
            .done(&["patch", CONFIGURATION, "--type=json", "-p", &Value::from(patch).to_string()], "");
        // The API server applies the new policy only after a short time.
        sleep(Duration::from_secs(3));
    };
    set("Ignore");
    let held = busy();
    let taken = world.create(&pod("shop", "ignored"));
    drop(held);
    assert!(taken.status.success(), "{}", String::from_utf8_lossy(&taken.stderr));
    assert!(
        !is_injected(&world.cluster.get(&["pod/ignored", "-n", "shop"])),
        "the Pod must start with its original probes"
    );
    set("Fail");
    assert!(world.create(&pod("shop", "after")).status.success());
}

pub(super) fn wiped(world: &mut World) {
    let bundle = world.bundle();
    assert!(bundle.contains("BEGIN CERTIFICATE"));
    let patch = json!([{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]).to_string();
    world.cluster.done(&["patch", CONFIGURATION, "--type=json", "-p", &patch], "");
    world.wait_until("the caBundle is restored", 75, || world.bundle() == bundle);
}

/// The Secret gets a next CA that is old enough to be used: the webhook publishes it in the
/// caBundle, and then signs with it.
pub(super) fn rotated(world: &mut World) {
    let secret = world.cluster.get(&["secret/app-health-webhook-ca", "-n", NAMESPACE]);
    let text = STANDARD.decode(secret["data"]["authority.json"].as_str().expect("base64")).expect("base64");
    let mut authority: Authority = serde_json::from_slice(&text).expect("an authority");
    let made = OffsetDateTime::now_utc() - time::Duration::minutes(11);
    let next = Authority::new(made).expect("an authority").current;
    authority.next = Some(next.clone());
    let mut changed = secret;
    changed["data"]["authority.json"] =
        STANDARD.encode(serde_json::to_string(&authority).expect("JSON")).into();
    world.cluster.done(&["replace", "-f", "-"], &changed.to_string());

    let stop = Arc::new(AtomicBool::new(false));
    let caller = || {
        let (stop, cluster) = (stop.clone(), world.cluster.clone());
        thread::spawn(move || {
            let (mut reviews, mut errors) = (0, Vec::new());
            while !stop.load(Ordering::Relaxed) {
                let created = cluster
                    .kubectl(&["create", "--dry-run=server", "-f", "-"], &pod("shop", "load").to_string());
                reviews += 1;
                if !created.status.success() {
                    errors.push(String::from_utf8_lossy(&created.stderr).into_owned());
                }
            }
            (reviews, errors)
        })
    };
    let callers = [caller(), caller()];
    world.wait_until("the webhook's certificate is signed by the next CA", 200, || {
        dial(world.address, &next.certificate).is_ok()
    });
    assert!(
        world.bundle().contains(&authority.current.certificate),
        "the caBundle must still contain the previous CA"
    );
    sleep(Duration::from_secs(3));
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        let (reviews, errors) = caller.join().expect("a caller ends");
        assert!(reviews > 20 && errors.is_empty(), "{reviews} reviews, {errors:?}");
    }
}

pub(super) fn dead(world: &mut World) {
    let mut webhook = world.webhook.take().expect("the webhook runs");
    webhook.signal(Signal::SIGTERM);
    assert_eq!(webhook.wait(), Some(0));
    let mut labelled = pod("kube-system", "lives");
    labelled["metadata"]["labels"] = json!({"sidecar.istio.io/inject": "true"});
    assert!(world.create(&labelled).status.success());
    let mut own = pod(NAMESPACE, "lives");
    own["spec"]["containers"][0]["securityContext"] = json!({
        "runAsNonRoot": true, "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    assert!(world.create(&own).status.success(), "the webhook's own Pods must be able to start");
    assert!(!world.create(&pod("shop", "waits")).status.success(), "Pods that opted in must be rejected");
    world.webhook = Some(world.start("webhook.log", world.address, world.monitoring));
    world.wait_until("Pods that opted in are accepted again", 30, || {
        world.create(&pod("shop", "waits")).status.success()
    });
    assert!(is_injected(&world.cluster.get(&["pod/waits", "-n", "shop"])));
}
