//! Credentials of the API server and its clients as files: tokens, certificates, kubeconfigs.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::KeyPair;
use serde_json::json;

use super::components::SERVICE_IP;
use kit::authority::Authority;

/// The names in the API server's certificate.
const NAMES: [&str; 6] = [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
    "localhost",
    SERVICE_IP,
];

/// Kubeconfig name (also used as the token), user, and group. The users of the manifests are named
/// like the ServiceAccounts there.
const USERS: [(&str, &str, &str); 5] = [
    ("admin", "admin", "system:masters"),
    // The controllers share one identity instead of separate ServiceAccounts.
    ("controller-manager", "system:kube-controller-manager", "system:masters"),
    ("scheduler", "system:kube-scheduler", ""),
    ("webhook", "system:serviceaccount:app-health-system:app-health-webhook", ""),
    ("discovery", "system:serviceaccount:app-health-system:app-health-discovery", ""),
];

/// Writes all files; `server` is the address of the API server.
pub(super) fn write(folder: &Path, authority: &Authority, server: SocketAddr) {
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("a writable folder");
    let ip = server.ip().to_string();
    let issued = authority.sign_all(&[&[ip.as_str()][..], &NAMES].concat());
    write("ca.pem", &authority.pem());
    write("api-server.pem", &issued.certificate);
    write("api-server-key.pem", &issued.key);
    let key = KeyPair::generate().expect("a key");
    write("service-accounts-key.pem", &key.serialize_pem());
    write("service-accounts.pem", &key.public_key_pem());
    let tokens = USERS.map(|(name, user, group)| match group {
        "" => format!("{name},{user},{name}\n"),
        group => format!("{name},{user},{name},\"{group}\"\n"),
    });
    write("tokens", &tokens.concat());
    for (user, ..) in USERS {
        let cluster = json!({
            "server": format!("https://{server}"), "certificate-authority-data": STANDARD.encode(authority.pem()),
        });
        let config = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": user}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
        });
        write(&format!("{user}.kubeconfig"), &config.to_string());
    }
}
