//! Tests `app-health webhook` over TLS: reviews, certificates and shutdown.

use std::fs;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, sleep};
use std::time::Duration;

use kit::wait;
use rustls::ClientConfig;

use crate::webhook_support::{Ca, Call, NAME, Webhook, review, write_pair};

#[test]
fn reviews_on_one_connection() {
    let webhook = Webhook::start("reviews", &[], &[]);
    let mut call = webhook.call();
    assert_eq!(call.stream.conn.alpn_protocol(), Some(b"http/1.1".as_slice()), "no HTTP/2");
    for uid in ["a", "b"] {
        let answer = call.post(&review(uid)).expect("an answer");
        assert_eq!((answer.status, answer.json()["response"]["uid"].as_str()), (200, Some(uid)));
        assert_eq!(answer.json()["response"]["auditAnnotations"]["result"], "injected");
    }
    let dry = review("a").replace("\"uid\":\"a\"", "\"uid\":\"a\",\"dryRun\":true");
    assert_eq!(call.post(&dry).expect("an answer").body, call.post(&review("a")).expect("an answer").body);
    webhook.wait_for_metric("app_health_webhook_reviews_total{result=\"injected\"} 4");
    webhook.wait_for_metric("app_health_webhook_probes_total{handler=\"httpGet\",result=\"rewritten\"} 4");
    assert!(
        webhook
            .log()
            .contains("namespace=\"default\" name=\"shop\" result=\"injected\" rewritten=1 unchanged=0")
    );
    assert_eq!(webhook.page("/other").expect("a page").0, 404);
    assert_eq!(webhook.page("/healthz/live").expect("a page").0, 200);
}

#[test]
fn client_certificates() {
    let (clients, others) = (Ca::new("of clients"), Ca::new("of others"));
    let flags = ["--client-ca", "{}/clients.pem", "--client-name", "api-server"];
    let webhook = Webhook::start("clients", &flags, &[("clients.pem", &clients.pem)]);
    let certificates = [
        (None, false),
        (Some(others.sign("api-server", &[])), false),
        (Some(clients.sign("other", &["other.test"])), false),
        (Some(clients.sign("api-server", &[])), true),
        (Some(clients.sign("x", &["api-server"])), true),
    ];
    for (own, let_in) in certificates {
        // In TLS 1.3 the client learns only when it reads that its certificate was rejected.
        let answer = Call::new(webhook.address, &webhook.client(own.as_ref()))
            .and_then(|mut call| call.post(&review("a")));
        assert_eq!(answer.is_ok_and(|answer| answer.status == 200), let_in, "{own:?}");
    }
    webhook.wait_for_metric("app_health_webhook_reviews_total{result=\"injected\"} 2");
}

/// Clients that send reviews continuously, each on its own connections, and count failures.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    reviews: Arc<AtomicU32>,
    callers: Vec<thread::JoinHandle<Vec<String>>>,
}

impl Load {
    /// Starts the clients. Like an API server, they keep their connections; `client` is their TLS
    /// configuration.
    pub(crate) fn start(webhook: &Webhook, client: &Arc<ClientConfig>) -> Self {
        let (stop, reviews) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
        let caller = || {
            let (stop, reviews, address, client) =
                (stop.clone(), reviews.clone(), webhook.address, client.clone());
            thread::spawn(move || {
                let mut errors = Vec::new();
                let mut call = None;
                let mut left = 200;
                while !stop.load(Ordering::Relaxed) {
                    let answer = match &mut call {
                        None => {
                            Call::new(address, &client).and_then(|new| call.insert(new).post(&review("a")))
                        }
                        Some(call) => call.post(&review("a")),
                    };
                    reviews.fetch_add(1, Ordering::Relaxed);
                    left -= 1;
                    match answer {
                        Ok(answer) if answer.status == 200 => {
                            if left == 0 || answer.head.to_ascii_lowercase().contains("connection: close") {
                                (call, left) = (None, 200);
                            }
                        }
                        other => {
                            errors.push(format!("{other:?}"));
                            call = None;
                        }
                    }
                    sleep(Duration::from_millis(10));
                }
                errors
            })
        };
        Self { callers: (0..2).map(|_| caller()).collect(), stop, reviews }
    }

    /// Waits until this many reviews have ended.
    pub(crate) fn until(&self, reviews: u32) {
        let made = || self.reviews.load(Ordering::Relaxed);
        wait::until_blocking(|| format!("{} reviews instead of {reviews}", made()), || made() >= reviews);
    }

    /// Stops the clients; returns the failures.
    pub(crate) fn stop(self) -> Vec<String> {
        self.stop.store(true, Ordering::Relaxed);
        self.callers.into_iter().flat_map(|caller| caller.join().expect("a caller ends")).collect()
    }
}

#[test]
fn certificate_reload_under_load() {
    let webhook = Webhook::start("rotation", &[], &[]);
    let next = Ca::new("the next one");
    let both = crate::webhook_support::client(&(webhook.ca.pem.clone() + &next.pem), None);
    let load = Load::start(&webhook, &both);
    fs::write(webhook.folder.join("tls.crt"), "broken").expect("a file");
    webhook.wait_for_metric("app_health_webhook_reloads_total{kind=\"certificate\",result=\"failure\"} 1");
    assert_eq!(webhook.call().post(&review("a")).expect("the previous certificate is served").status, 200);
    write_pair(&webhook.folder, &next.sign("webhook", &[NAME]));
    webhook.wait_for_metric("app_health_webhook_reloads_total{kind=\"certificate\",result=\"success\"} 1");
    let trusting_the_next = crate::webhook_support::client(&next.pem, None);
    let mut call = Call::new(webhook.address, &trusting_the_next).expect("the new certificate is served");
    assert_eq!(call.post(&review("a")).expect("an answer").status, 200);
    load.until(100);
    assert_eq!(load.stop(), [""; 0]);
}

#[test]
fn template_reload() {
    let template = "spec: {containers: [{name: app-health-proxy, image: \"first:1\"}]}";
    let webhook =
        Webhook::start("template", &["--template", "{}/template.yaml"], &[("template.yaml", template)]);
    let hash = |webhook: &Webhook| webhook.call().post(&review("a")).expect("an answer").body;
    let first = hash(&webhook);
    fs::write(webhook.folder.join("template.yaml"), "spec: {}").expect("a file");
    webhook.wait_for_metric("app_health_webhook_reloads_total{kind=\"template\",result=\"failure\"} 1");
    assert_eq!(hash(&webhook), first);
    fs::write(webhook.folder.join("template.yaml"), template.replace("first", "second")).expect("a file");
    webhook.wait_for_metric("app_health_webhook_reloads_total{kind=\"template\",result=\"success\"} 1");
    assert_ne!(hash(&webhook), first);
}

#[test]
fn shutdown_under_load_loses_no_review() {
    let mut webhook = Webhook::start("end", &["--shutdown-grace", "2s"], &[]);
    let client = webhook.client(None);
    let load = Load::start(&webhook, &client);
    load.until(20);
    webhook.terminate();
    webhook.wait_for_status("/healthz/ready", 503);
    // The API server stops calling once the endpoint is no longer ready.
    sleep(Duration::from_secs(1));
    assert_eq!(load.stop(), [""; 0]);
    assert_eq!(webhook.wait(), Some(0), "{}", webhook.log());
}

#[test]
fn a_stopped_api_server_does_not_block_the_start() {
    // It accepts connections and never answers.
    let api_server = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let server = api_server.local_addr().expect("an address");
    let kubeconfig = format!(
        "{{apiVersion: v1, kind: Config, current-context: c, contexts: [{{name: c, context: {{cluster: c, user: u}}}}],
        clusters: [{{name: c, cluster: {{server: \"http://{server}\"}}}}], users: [{{name: u, user: {{}}}}]}}"
    );
    let webhook = Webhook::start("stopped", &[], &[("kubeconfig", &kubeconfig)]);
    assert!(webhook.log().contains("reading the version of the API server failed"), "{}", webhook.log());
    assert_eq!(webhook.call().post(&review("a")).expect("an answer").status, 200);
}

#[test]
fn invalid_settings_are_rejected() {
    let start = |flags: &[&str]| {
        let output = std::process::Command::new(kit::agent::binary_of("app-health"))
            .args(["webhook", "--address", "127.0.0.1:0", "--monitoring-address", "127.0.0.1:0"])
            .args(flags)
            .env("KUBECONFIG", "/dev/null")
            .output()
            .expect("the process ends");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (flags, code, words) in [
        (&["--cert-dir", "/nonexistent"][..], 66, "/nonexistent/tls.crt"),
        (&["--client-name", "x"], 64, "--client-ca"),
        (&["--template", "/nonexistent"], 78, "--template"),
        (&["--shutdown-grace", "5"], 64, "must be like 5s or 500ms"),
        (&[], 69, "no API server"),
    ] {
        let (found, stderr) = start(flags);
        assert!(found == Some(code) && stderr.contains(words), "{flags:?}: {found:?} {stderr}");
    }
}
