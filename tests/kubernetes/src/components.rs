//! The command lines of the components.

use std::path::Path;
use std::process::Command;

use super::options::Options;
use super::process::command;
use super::tool;

/// The address of the Service `kubernetes`: the first one of the range.
pub(super) const SERVICE_IP: &str = "10.96.0.1";
const SERVICES: &str = "10.96.0.0/16";

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().expect("UTF-8").to_owned()
}

/// Returns the command for etcd, which serves clients at `url` and other members at `peer`.
pub(super) fn etcd(folder: &Path, url: &str, peer: &str) -> Command {
    let mut command = command(&tool("etcd"));
    command
        .args(["--name", "test", "--data-dir", &path(folder, "etcd")])
        .args(["--listen-client-urls", url, "--advertise-client-urls", url])
        .args(["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer])
        .args(["--initial-cluster", &format!("test={peer}"), "--unsafe-no-fsync"]);
    command
}

/// Returns the command for the API server on `port`, with etcd at `etcd`.
pub(super) fn api_server(folder: &Path, options: &Options, port: u16, etcd: &str) -> Command {
    let path = |name: &str| path(folder, name);
    // Without a default route the API server finds no address to advertise; no client uses the
    // advertised one.
    let advertised =
        if options.bind.is_unspecified() { "127.0.0.1".to_owned() } else { options.bind.to_string() };
    let mut command = command(&tool("kube-apiserver"));
    command
        .arg(format!("--etcd-servers={etcd}"))
        .arg(format!("--bind-address={}", options.bind))
        .arg(format!("--advertise-address={advertised}"))
        .arg(format!("--secure-port={port}"))
        .arg(format!("--tls-cert-file={}", path("api-server.pem")))
        .arg(format!("--tls-private-key-file={}", path("api-server-key.pem")))
        .arg(format!("--token-auth-file={}", path("tokens")))
        .arg(format!("--service-account-signing-key-file={}", path("service-accounts-key.pem")))
        .arg(format!("--service-account-key-file={}", path("service-accounts.pem")))
        .arg(format!("--service-cluster-ip-range={SERVICES}"))
        .args([
            "--service-account-issuer=https://test",
            "--authorization-mode=RBAC",
            "--allow-privileged=true",
        ])
        .args(["--endpoint-reconciler-type=none", "--v=1"]);
    if !options.service_accounts {
        command.arg("--disable-admission-plugins=ServiceAccount");
    }
    command.args(&options.api_server_flags);
    command
}

/// Returns the command for the controller manager. Its health is not checked: a test fails if it
/// does not do its work.
pub(super) fn controller_manager(folder: &Path) -> Command {
    let mut command = command(&tool("kube-controller-manager"));
    command
        .arg(format!("--kubeconfig={}", path(folder, "controller-manager.kubeconfig")))
        .arg(format!("--service-account-private-key-file={}", path(folder, "service-accounts-key.pem")))
        .arg(format!("--root-ca-file={}", path(folder, "ca.pem")))
        .args([
            "--leader-elect=false",
            "--use-service-account-credentials=false",
            "--secure-port=0",
            "--v=1",
        ]);
    command
}

/// Returns the command for the scheduler, whose health is not checked either.
pub(super) fn scheduler(folder: &Path) -> Command {
    let mut command = command(&tool("kube-scheduler"));
    command.arg(format!("--kubeconfig={}", path(folder, "scheduler.kubeconfig"))).args([
        "--leader-elect=false",
        "--secure-port=0",
        "--v=1",
    ]);
    command
}
