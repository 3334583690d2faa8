//! The webhook as in the shipped Deployment, with a certificate of a separate CA.

use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use kit::agent::command_of;
use kit::authority::Authority;
use kit::caller::{self, tls::Caller};
use kit::vm::certificates::replace;
use kit::{envoy, net, wait};
use serde_json::{Value, json};
use tokio::process::Child;

use crate::request::Tls;

/// The DNS name in the certificate.
const NAME: &str = "app-health-webhook.app-health-system.svc";

/// A running webhook, killed on drop.
pub struct Webhook {
    pub ip: IpAddr,
    folder: PathBuf,
    authority: Authority,
    child: Child,
}

impl Webhook {
    /// Starts the webhook with these flags and waits until it is ready.
    ///
    /// # Panics
    /// If it does not start; the message contains its log.
    pub async fn start(name: &str, flags: &[&str]) -> Self {
        Self::start_at(net::loopback(), name, flags).await
    }

    /// Like [`Webhook::start`], at this address.
    ///
    /// # Panics
    /// If it does not start; the message contains its log.
    pub async fn start_at(ip: IpAddr, name: &str, flags: &[&str]) -> Self {
        let folder = envoy::folder(name);
        let authority = Authority::new();
        let mut command = command_of("app-health", &["webhook"]);
        command.arg("--address").arg(SocketAddr::new(ip, 15017).to_string());
        command.arg("--monitoring-address").arg(SocketAddr::new(ip, 15014).to_string());
        command.args(flags).arg("--cert-dir").arg(&folder).env("KUBECONFIG", folder.join("kubeconfig"));
        command.envs([("MALLOC_ARENA_MAX", "1"), ("MALLOC_TRIM_THRESHOLD_", "131072")]);
        let log = fs::File::create(folder.join("webhook.log")).expect("a writable folder");
        command.stdout(Stdio::null()).stderr(log);
        write_certificate(&authority, &folder);
        let child = command.spawn().expect("the webhook starts");
        let webhook = Self { ip, folder, authority, child };
        let what = || format!("the webhook is ready:\n{}", webhook.log());
        wait::until_or(what, async || {
            caller::get(webhook.monitoring(), "/healthz/ready", &[]).await.status == 200
        })
        .await;
        webhook
    }

    /// Returns the address for reviews.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.ip, 15017)
    }

    /// Returns the address for metrics and health checks.
    pub fn monitoring(&self) -> SocketAddr {
        SocketAddr::new(self.ip, 15014)
    }

    /// Returns a client that trusts the webhook's CA.
    pub fn tls(&self) -> Tls {
        let authority = self.authority.pem();
        let caller = Caller { server: NAME, authority: &authority, identity: None };
        Tls { connector: caller.connector(), server: caller.server_name() }
    }

    /// Replaces the certificate by another one of the same CA.
    pub fn renew_certificate(&self) {
        write_certificate(&self.authority, &self.folder);
    }

    /// Replaces the certificate by a file that is none.
    pub fn break_certificate(&self) {
        replace(&self.folder.join("tls.crt"), "no certificate\n");
    }

    /// Returns the process ID.
    ///
    /// # Panics
    /// If the webhook has exited.
    pub fn pid(&self) -> u32 {
        self.child.id().unwrap_or_else(|| panic!("the webhook has exited:\n{}", self.log()))
    }

    pub fn log_file(&self) -> PathBuf {
        self.folder.join("webhook.log")
    }

    fn log(&self) -> String {
        fs::read_to_string(self.log_file()).unwrap_or_default()
    }
}

fn write_certificate(authority: &Authority, folder: &Path) {
    let issued = authority.sign(NAME);
    replace(&folder.join("tls.crt"), &issued.certificate);
    replace(&folder.join("tls.key"), &issued.key);
}

/// Returns the request with a review of the creation of a Pod, on a connection that ends with it.
pub fn review() -> Vec<u8> {
    let container = json!({
        "name": "app", "image": "shop:1", "livenessProbe": {"httpGet": {"port": 8080}},
    });
    review_of(&json!({"spec": {"containers": [container]}}))
}

/// Returns the same with other fields of the Pod.
pub fn review_of(fields: &Value) -> Vec<u8> {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "shop", "namespace": "default"},
    });
    for (name, value) in fields.as_object().into_iter().flatten() {
        pod[name] = value.clone();
    }
    let body = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1", "operation": "CREATE", "namespace": "default", "object": pod,
            "resource": {"group": "", "version": "v1", "resource": "pods"},
        },
    });
    let body = body.to_string();
    [head(body.len()).as_bytes(), body.as_bytes()].concat()
}

/// Returns the head of a request with a body of this length.
pub fn head(length: usize) -> String {
    format!(
        "POST /inject?timeout=5s HTTP/1.1\r\nHost: {NAME}\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: {length}\r\n\r\n"
    )
}
