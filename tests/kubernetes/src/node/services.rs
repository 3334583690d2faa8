//! kube-proxy and CoreDNS, which make Services reachable by address and by name.

use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::json;

use super::NAME;
use super::linux_namespaces::{LinuxNamespaces, descendant};
use crate::{Process, tool};

/// The address of the DNS server, which kubelet writes into the `resolv.conf` of Pods.
pub const DNS: &str = "10.96.0.10";

/// A name that is not one of Kubernetes, and its address.
pub const FORWARDED_NAME: &str = "forwarded.example";
pub const FORWARDED_ADDRESS: &str = "192.0.2.99";

pub(super) struct Services {
    proxy: Process,
    dns: Process,
}

const PROXY_LOG: &str = "kube-proxy.log";
const DNS_LOG: &str = "dns.log";

impl Services {
    /// Returns the log of a program that has exited.
    pub(super) fn ended(&self) -> Option<&'static str> {
        let all = [(&self.proxy, PROXY_LOG), (&self.dns, DNS_LOG)];
        all.into_iter().find_map(|(process, log)| process.has_ended().then_some(log))
    }

    /// Sends a signal to the DNS server.
    pub(super) fn signal_dns(&self, signal: Signal) {
        // The started process is nsenter, which waits for the server as its child.
        let entered = self.dns.pid().as_raw().unsigned_abs();
        let server = descendant(entered, 1).expect("the DNS server runs");
        kill(Pid::from_raw(server.cast_signed()), signal).expect("the DNS server runs");
    }
}

/// Starts both on the node.
///
/// # Panics
/// If one cannot be started.
pub(super) fn start(namespaces: &LinuxNamespaces, folder: &Path, kubeconfig: &Path) -> Services {
    let run = |program: &Path, arguments: &[&str], log: &str| {
        let mut command = namespaces.command(program.to_str().expect("UTF-8"));
        Process::start(command.args(arguments), &folder.join("log").join(log))
    };
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).expect("a writable folder");
        path.to_str().expect("UTF-8").to_owned()
    };
    let kubeconfig = kubeconfig.to_str().expect("UTF-8");
    let address = ["address", "add", &format!("{DNS}/32"), "dev", "lo"];
    let added = namespaces.command("ip").args(address).status().expect("nsenter starts");
    assert!(added.success(), "the address of the DNS server cannot be added");
    let proxy = write("kube-proxy.json", proxy_configuration(kubeconfig).to_string());
    let dns = write("Corefile", corefile(kubeconfig));
    Services {
        proxy: run(&tool("kube-proxy"), &["--config", &proxy], PROXY_LOG),
        dns: run(&tool("dns"), &["-conf", &dns], DNS_LOG),
    }
}

/// Connections to Services are masqueraded, because responses within one bridge would not pass the
/// rules that translate them back. Kernel settings of connection tracking are the machine's.
fn proxy_configuration(kubeconfig: &str) -> serde_json::Value {
    json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration",
        "mode": "iptables", "hostnameOverride": NAME, "clientConnection": {"kubeconfig": kubeconfig},
        "iptables": {"masqueradeAll": true}, "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        "healthzBindAddress": "127.0.0.1:10256", "metricsBindAddress": "127.0.0.1:10249",
    })
}

fn corefile(kubeconfig: &str) -> String {
    format!(
        ".:53 {{
    bind {DNS}
    errors
    hosts {{
        {FORWARDED_ADDRESS} {FORWARDED_NAME}
        fallthrough
    }}
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {kubeconfig}
    }}
}}
"
    )
}
