//! Tests of probes while iptables rules redirect the machine's traffic into Envoy, in a new network
//! namespace with real rules.

use std::net::{IpAddr, SocketAddr};

use kit::app::{App, answer};
use kit::container_tools;
use kit::not_tested;
use kit::reserved_port::ReservedPort;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::geteuid;
use serde_json::json;

use crate::prober_support::{AgentConfig, OK, accepted, single_failure_probe};

/// The IPv4 address of the machine, which is on `lo` because only this machine connects to it.
const V4: &str = "10.77.0.7";
const V6: &str = "fd77::7";
/// The port to which the rules redirect connections.
const INBOUND: u16 = 15006;

fn run(line: &str) -> bool {
    let words: Vec<&str> = line.split(' ').collect();
    let output = container_tools::command(words[0]).args(&words[1..]).output();
    output.is_ok_and(|output| output.status.success())
}

/// Moves this thread into a new network namespace with these addresses and rules.
fn namespace() -> bool {
    let rules = |tables: &str, source: &str, own: &str| {
        run(&format!("{tables} -t nat -A OUTPUT -o lo -s {source} -j RETURN"))
            && run(&format!(
                "{tables} -t nat -A OUTPUT -o lo -d {own} -p tcp -j REDIRECT --to-ports {INBOUND}"
            ))
    };
    unshare(CloneFlags::CLONE_NEWNET).is_ok()
        && run("ip link set lo up")
        && run(&format!("ip address add {V4}/32 dev lo"))
        && run(&format!("ip -6 address add {V6}/128 dev lo nodad"))
        && rules("iptables", "127.0.0.6/32", V4)
        && rules("ip6tables", "::6/128", V6)
}

#[test]
fn captured_probes_reach_the_application() {
    // A separate thread, because the namespace applies to this thread only and ends with it.
    let test = std::thread::spawn(|| {
        if !geteuid().is_root() || container_tools::find("iptables").is_none() {
            not_tested::report("probes under capture rules", "needs root and iptables");
            return;
        }
        assert!(namespace(), "root can create a network namespace with rules");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(probes());
    });
    test.join().expect("probes under capture rules");
}

async fn probes() {
    let (v4, v6): (IpAddr, IpAddr) = (V4.parse().expect("an address"), V6.parse().expect("an address"));
    // Accepts every connection, as Envoy does.
    let envoy = App::routes("[::]:15006".parse().expect("an address"), None, |_| answer(OK)).await;
    let app = App::routes(SocketAddr::new(v4, 0), None, |_| answer(OK)).await;
    let app6 = App::routes(SocketAddr::new(v6, 0), None, |_| answer(OK)).await;
    let reserved = ReservedPort::new(v4);
    let closed = reserved.port();
    let verdict = async |ip: IpAddr, capture: &str, handler: &str, port: u16| {
        let plan = AgentConfig::new(&format!("vm-capture-{capture}-{handler}-{port}"));
        // The agent's own ports are on another address, so the probe names its target.
        let flags = ["--capture", capture];
        let mut fields = json!({ "port": port });
        if handler != "grpc" {
            fields["host"] = ip.to_string().into();
        }
        let vm = if handler == "grpc" { plan.targeting(ip) } else { plan };
        vm.args(&flags).start(&single_failure_probe(handler, fields)).verdict().await
    };
    for handler in ["tcpSocket", "httpGet"] {
        assert_eq!(
            verdict(v4, "off", handler, closed).await,
            "Healthy",
            "{handler}: without --capture the rules redirect the probe"
        );
    }
    for handler in ["tcpSocket", "httpGet", "grpc"] {
        let refused = format!("ConnectionRefused: {V4}:{closed}: connection refused");
        assert_eq!(verdict(v4, "on", handler, closed).await, refused, "{handler}");
    }
    let before = accepted(&envoy).await.len();
    for handler in ["tcpSocket", "httpGet"] {
        assert_eq!(verdict(v4, "on", handler, app.port()).await, "Healthy", "{handler}");
    }
    let seen = app.seen_at_least(2).await;
    assert!(seen.iter().all(|seen| seen.peer.ip().to_string() == "127.0.0.6"), "{seen:?}");
    let missing = "CannotRun: --capture on probes from ::6, which is not an address of this machine: ip -6 address add ::6/128 dev lo";
    assert_eq!(verdict(v6, "on", "tcpSocket", app6.port()).await, missing);
    assert!(run("ip -6 address add ::6/128 dev lo nodad"));
    assert_eq!(verdict(v6, "on", "httpGet", app6.port()).await, "Healthy");
    let seen = app6.seen_at_least(1).await;
    assert!(seen.iter().all(|seen| seen.peer.ip().to_string() == "::6"), "{seen:?}");
    // The connection that `accepted` opened itself is the only new one.
    assert_eq!(accepted(&envoy).await.len(), before + 1, "no probe must go through Envoy");
}
