//! Tests of a webhook that does not answer, whose CA is lost or replaced, or that does not run.

use std::io::Write as _;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use app_health::webhook::authority::Authority;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use kit::reserved_port::ReservedPort;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::dial::{Connection, dial};
use super::{CONFIGURATION, Fixture, NAMESPACE, is_injected, pod};
use crate::faulty_api::{Fault, FaultyApi};

pub(super) fn policy(fixture: &mut Fixture) {
    let head =
        b"POST /inject HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{";
    let bundle = fixture.bundle();
    let mut incomplete: Vec<Connection> =
        (0..64).map(|_| dial(fixture.address.address, &bundle).expect("a connection")).collect();
    incomplete.iter_mut().for_each(|connection| connection.write_all(head).expect("sent"));
    let reviewed = fixture.dry_run(&pod("shop", "web"));
    assert!(reviewed.is_ok_and(|pod| is_injected(&pod)), "incomplete requests must not block reviews");
    drop(incomplete);
    let silent = fixture.webhook.as_ref().expect("the webhook runs");
    let review_while_hanging = || {
        silent.signal(Signal::SIGSTOP);
        let reviewed = fixture.dry_run(&pod("shop", "web"));
        silent.signal(Signal::SIGCONT);
        reviewed
    };
    let is_rejected = |reviewed: Result<Value, String>| {
        reviewed.is_err_and(|error| error.contains("failed calling webhook"))
    };
    assert!(is_rejected(review_while_hanging()), "a hanging webhook must reject Pods");
    let set = |value: &str| {
        let patch: Vec<Value> =
            (0..2).map(|index| json!({"op": "replace", "path": format!("/webhooks/{index}/failurePolicy"), "value": value})).collect();
        fixture
            .cluster
            .kubectl_ok(&["patch", CONFIGURATION, "--type=json", "-p", &Value::from(patch).to_string()], "");
    };
    // The API server applies a new policy only after a short time.
    set("Ignore");
    fixture.wait_until("a Pod keeps its original probes while the webhook hangs", || {
        review_while_hanging().is_ok_and(|pod| !is_injected(&pod))
    });
    set("Fail");
    fixture.wait_until("a hanging webhook rejects Pods again", || is_rejected(review_while_hanging()));
    assert!(fixture.create(&pod("shop", "after")).status.success());
}

pub(super) fn ca_bundle_removed(fixture: &mut Fixture) {
    let bundle = fixture.bundle();
    assert!(bundle.contains("BEGIN CERTIFICATE"));
    let patch = json!([{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]).to_string();
    fixture.cluster.kubectl_ok(&["patch", CONFIGURATION, "--type=json", "-p", &patch], "");
    fixture.wait_until("the caBundle is restored", || fixture.bundle() == bundle);
}

/// A second webhook starts while the API server answers it with 429.
pub(super) fn overloaded(fixture: &mut Fixture) {
    let api = FaultyApi::start(&fixture.cluster, "webhook");
    api.set(Fault::TooManyRequests);
    let [other, monitoring] = [(); 2].map(|()| ReservedPort::new(Ipv4Addr::LOCALHOST.into()));
    let kubeconfig = api.kubeconfig(&fixture.cluster);
    let mut webhook = fixture.start_with("overloaded.log", &other, &monitoring, &kubeconfig);
    fixture.wait_until("the webhook tries again", || {
        let log = fixture.cluster.log("overloaded.log");
        log.matches("reading or creating the certificate authority failed, retrying").count() >= 2
    });
    assert!(!fixture.is_ready(&monitoring));
    api.set(Fault::None);
    fixture.wait_until("the webhook is ready", || fixture.is_ready(&monitoring));
    api.set(Fault::TooManyRequests);
    let accepted = dial(other.address, &fixture.bundle());
    assert!(accepted.is_ok_and(|_| fixture.is_ready(&monitoring)), "the certificate stays in use");
    webhook.signal(Signal::SIGTERM);
    assert_eq!(webhook.wait(), Some(0));
}

/// The Secret gets a next CA that is old enough to be used: the webhook publishes it in the
/// caBundle, and then signs with it.
pub(super) fn rotated(fixture: &mut Fixture) {
    let secret = fixture.cluster.get(&["secret/app-health-webhook-ca", "-n", NAMESPACE]);
    let text = STANDARD.decode(secret["data"]["authority.json"].as_str().expect("base64")).expect("base64");
    let mut authority: Authority = serde_json::from_slice(&text).expect("an authority");
    let made = OffsetDateTime::now_utc() - time::Duration::minutes(11);
    let next = Authority::new(made).expect("an authority").current;
    authority.next = Some(next.clone());
    let mut changed = secret;
    changed["data"]["authority.json"] =
        STANDARD.encode(serde_json::to_string(&authority).expect("JSON")).into();
    fixture.cluster.kubectl_ok(&["replace", "-f", "-"], &changed.to_string());

    let stop = Arc::new(AtomicBool::new(false));
    let reviews: [Arc<AtomicUsize>; 2] = Default::default();
    let callers = reviews.each_ref().map(|reviews| {
        let (stop, reviews, cluster) = (stop.clone(), reviews.clone(), fixture.cluster.clone());
        thread::spawn(move || {
            let mut errors = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let created = cluster
                    .kubectl(&["create", "--dry-run=server", "-f", "-"], &pod("shop", "load").to_string());
                reviews.fetch_add(1, Ordering::Relaxed);
                if !created.status.success() {
                    errors.push(String::from_utf8_lossy(&created.stderr).into_owned());
                }
            }
            errors
        })
    });
    fixture.wait_until("the webhook's certificate is signed by the next CA", || {
        dial(fixture.address.address, &next.certificate).is_ok()
    });
    assert!(
        fixture.bundle().contains(&authority.current.certificate),
        "the caBundle must still contain the previous CA"
    );
    let counts = || reviews.each_ref().map(|reviews| reviews.load(Ordering::Relaxed));
    let before = counts();
    fixture.wait_until("each caller makes twenty more reviews", || {
        counts().iter().zip(before).all(|(count, before)| *count >= before + 20)
    });
    stop.store(true, Ordering::Relaxed);
    for caller in callers {
        let errors = caller.join().expect("a caller ends");
        assert!(errors.is_empty(), "{errors:?}");
    }
}

pub(super) fn no_replicas(fixture: &mut Fixture) {
    let mut webhook = fixture.webhook.take().expect("the webhook runs");
    webhook.signal(Signal::SIGTERM);
    assert_eq!(webhook.wait(), Some(0));
    let mut labelled = pod("kube-system", "lives");
    labelled["metadata"]["labels"] = json!({"sidecar.istio.io/inject": "true"});
    assert!(fixture.create(&labelled).status.success());
    let mut own = pod(NAMESPACE, "lives");
    own["spec"]["containers"][0]["securityContext"] = json!({
        "runAsNonRoot": true, "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    assert!(fixture.create(&own).status.success(), "the webhook's own Pods must be able to start");
    assert!(!fixture.create(&pod("shop", "waits")).status.success(), "Pods that opted in must be rejected");
    fixture.webhook = Some(fixture.start("webhook.log", &fixture.address, &fixture.monitoring));
    fixture.wait_until("Pods that opted in are accepted again", || {
        fixture.create(&pod("shop", "waits")).status.success()
    });
    assert!(is_injected(&fixture.cluster.get(&["pod/waits", "-n", "shop"])));
}
