use clap::Parser;

use super::*;
use crate::args::{Args, Command};
use envoy_process::state_dir::EmbeddedFilter;

fn machine() -> Machine {
    Machine {
        ipv6: true,
        probe_source4: true,
        probe_source6: false,
        gateways: vec!["10.0.0.1".parse().unwrap()],
        address: Some("10.0.0.9".parse().unwrap()),
    }
}

fn bootstrap(flags: &str, environment: &Environment, machine: &Machine) -> Result<SidecarConfig, Failure> {
    let words = ["app-health-agent", "bootstrap"].into_iter().chain(flags.split_whitespace());
    let Command::Bootstrap(mut args) = Args::try_parse_from(words).unwrap().command else {
        panic!("bootstrap")
    };
    if !flags.contains("--filter-wasm") {
        // This crate's build uses the same variable to locate the filter, so a developer's shell
        // may set it.
        args.sidecar.filter_wasm = None;
    }
    BootstrapConfig::on(*args, environment, machine).map(|config| config.sidecar)
}

#[test]
fn the_instance_address() {
    let none = Environment::default();
    let istio = Environment::from([("INSTANCE_IP", "10.0.0.7, fd00::7")]);
    let bare = Machine { address: None, ..machine() };
    for (flags, environment, machine, expected) in [
        ("--instance-ip 10.0.0.5", &istio, machine(), "10.0.0.5"),
        ("--instance-ip fd00::5,10.0.0.5", &none, machine(), "fd00::5"),
        ("", &istio, machine(), "10.0.0.7"),
        ("", &none, machine(), "10.0.0.9"),
        ("", &none, bare, "127.0.0.1"),
    ] {
        let config = bootstrap(flags, environment, &machine).unwrap();
        assert_eq!(config.bootstrap.instance_ip.to_string(), expected, "{flags} {environment:?}");
    }
}

#[test]
fn clients_of_probes_and_hooks() {
    let node = "--node-ip 192.0.2.1,fd00::1";
    let of_node = vec!["192.0.2.1", "fd00::1", "10.0.0.1"];
    for (flags, all, hooks, knows_node) in [
        (String::new(), vec![], None, false),
        (node.into(), vec![], Some(of_node.clone()), true),
        ("--allow-from 10.1.0.0/16".into(), vec!["10.1.0.0/16"], None, false),
        (format!("{node} --allow-from 10.1.0.0/16"), vec!["10.1.0.0/16"], None, true),
        (
            format!("{node} --allow-from node --allow-from 10.1.0.0/16"),
            vec!["192.0.2.1", "fd00::1", "10.0.0.1", "10.1.0.0/16"],
            None,
            true,
        ),
    ] {
        let config = bootstrap(&flags, &Environment::default(), &machine()).unwrap().bootstrap;
        let all: Vec<Cidr> = all.into_iter().map(|block| block.parse().unwrap()).collect();
        assert_eq!(config.allow_from, all, "{flags}");
        let addresses = |words: &[&str]| words.iter().map(|word| word.parse().unwrap()).collect();
        let hooks: Option<Vec<IpAddr>> = hooks.as_deref().map(addresses);
        assert_eq!(config.hook_callers, hooks, "{flags}");
        let node: Vec<IpAddr> = if knows_node { addresses(&of_node) } else { Vec::new() };
        assert_eq!(config.node, node, "{flags}");
    }
    let error = bootstrap("--allow-from node", &Environment::default(), &machine()).unwrap_err();
    let text = "--allow-from = node: the node's addresses are unknown, set --node-ip (status.hostIP)";
    assert_eq!(error.to_string(), text);
}

#[test]
fn sources_match_the_family_of_the_instance_address() {
    let six = Machine { probe_source6: true, ..machine() };
    let neither = Machine { probe_source4: false, ..machine() };
    let none = Environment::default();
    for (flags, machine, expected) in [
        ("--instance-ip 10.0.0.5", machine(), Some(vec!["127.0.0.6"])),
        ("--instance-ip 10.0.0.5", six.clone(), Some(vec!["127.0.0.6", "::6"])),
        ("--instance-ip 10.0.0.5", neither.clone(), Some(vec![])),
        ("--instance-ip 10.0.0.5 --source-bind on", neither, Some(vec!["127.0.0.6"])),
        ("--instance-ip 10.0.0.5 --source-bind off", six.clone(), Some(vec![])),
        ("--instance-ip fd00::5", machine(), Some(vec![])),
        ("--instance-ip fd00::5", six, Some(vec!["127.0.0.6", "::6"])),
        ("--instance-ip fd00::5 --source-bind on", machine(), None),
    ] {
        let found = bootstrap(flags, &none, &machine).ok();
        let found =
            found.map(|config| config.bootstrap.sources.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(found, expected.map(|list| list.into_iter().map(str::to_owned).collect()), "{flags}");
    }
}

#[test]
fn filter_source() {
    let none = Environment::default();
    let config = |flags: &str| bootstrap(flags, &none, &machine()).unwrap();
    let in_state_dir = |filter: &EmbeddedFilter| PathBuf::from("/s").join(filter.file_name);
    let (wasm, module) = (&state_dir::WASM, &state_dir::MODULE);
    for (flags, code, embedded) in [
        ("", FilterCode::File(in_state_dir(wasm)), Some(wasm)),
        ("--envoy-version 1.38", FilterCode::File(in_state_dir(wasm)), Some(wasm)),
        ("--envoy-version 1.40", FilterCode::Module(in_state_dir(module)), Some(module)),
        ("--filter native", FilterCode::Module(in_state_dir(module)), Some(module)),
        ("--filter wasm --envoy-version 1.40", FilterCode::File(in_state_dir(wasm)), Some(wasm)),
        ("--filter-wasm /f.wasm --envoy-version 1.40", FilterCode::File("/f.wasm".into()), None),
        ("--inline-filter --envoy-version 1.40", FilterCode::Inline(wasm.bytes()), None),
    ] {
        let found = config(&format!("--state-dir /s {flags}"));
        assert_eq!((found.bootstrap.filter, found.embedded), (Some(code), embedded), "{flags}");
        assert_eq!(found.bootstrap.admin.to_string(), "unix:/s/admin.sock");
    }
    for flags in ["--filter native --filter-wasm /f.wasm", "--filter native --inline-filter"] {
        let failure = bootstrap(flags, &none, &machine()).unwrap_err();
        assert_eq!(failure.code(), 64, "{flags}");
        assert!(failure.to_string().contains("mutually exclusive"), "{failure}");
    }
}

#[test]
fn the_state_directory_is_created_if_it_is_used() {
    for (flags, expected) in [
        ("", true),
        ("--inline-filter", true),
        ("--filter-wasm /f.wasm", true),
        ("--admin 127.0.0.1:15000", true),
        ("--inline-filter --admin 127.0.0.1:15000", false),
        ("--inline-filter --admin unix:/elsewhere/admin.sock", false),
        ("--inline-filter --admin unix:/s/other.sock", true),
    ] {
        let flags = format!("--state-dir /s {flags}");
        let config = bootstrap(&flags, &Environment::default(), &machine()).unwrap();
        assert_eq!(config.create_state_dir || config.embedded.is_some(), expected, "{flags}");
    }
}

#[test]
fn rejected_settings() {
    let table = |table| Environment::from([("ISTIO_KUBE_APP_PROBERS", table)]);
    let none = Environment::default();
    let long = format!("--state-dir /{}", "x".repeat(100));
    for (flags, environment, text) in [
        ("--probe-address [::]:0", &none, "--probe-address = [::]:0: the port must be 1 to 65535"),
        ("--stats-address 0.0.0.0:0", &none, "--stats-address = 0.0.0.0:0: the port must be 1 to 65535"),
        (
            "--probe-address 127.0.0.1:15090",
            &none,
            "--stats-address = [::]:15090: overlaps with --probe-address = 127.0.0.1:15090;",
        ),
        (
            "--admin 127.0.0.1:15004",
            &none,
            "--admin = 127.0.0.1:15004: overlaps with --local-address = 127.0.0.1:15004;",
        ),
        (
            "--admin unix:/s/a --local-address unix:/s/a",
            &none,
            "--admin = unix:/s/a: overlaps with --local-address = unix:/s/a;",
        ),
        (&long, &none, "the path of a Unix socket is at most 107 bytes long, this one is 112"),
        (
            "--inline-filter --filter-wasm /nonexistent",
            &none,
            "--filter-wasm = \"/nonexistent\": No such file",
        ),
        (
            "",
            &Environment::from([("INSTANCE_IP", "app")]),
            "INSTANCE_IP = \"app\": must be an IPv4 or IPv6 address",
        ),
        ("", &table("{"), "probers = "),
        (
            "--stats-address [::]:25090",
            &table(r#"{"/app-health/app/livez": {"tcpSocket": {"port": 25090}}}"#),
            r#"probers["/app-health/app/livez"].tcpSocket.port = 25090: is a port of the proxy"#,
        ),
        (
            "--reserved-port 8443 --reserved-port 9000,25021",
            &table(r#"{"/app-health/app/livez": {"tcpSocket": {"port": 25021}}}"#),
            r#"probers["/app-health/app/livez"].tcpSocket.port = 25021: is a port of the proxy"#,
        ),
    ] {
        let failure = bootstrap(flags, environment, &machine()).unwrap_err();
        assert!(failure.to_string().contains(text), "{failure}");
        assert_eq!(failure.code(), 64);
    }
}
