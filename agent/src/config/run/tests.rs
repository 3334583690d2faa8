use clap::Parser;

use super::*;
use crate::args::{Args, Command};

fn run_in(flags: &str, environment: &Environment) -> Result<RunConfig, Failure> {
    let words = ["app-health-agent", "run"].into_iter().chain(flags.split_whitespace());
    let Command::Run(mut args) = Args::try_parse_from(words).unwrap().command else { panic!("run") };
    // This crate's build uses the same variable to locate the filter, so a developer's shell may
    // set it.
    args.sidecar.filter_wasm = None;
    let machine = Machine {
        ipv6: true,
        probe_source4: true,
        probe_source6: false,
        gateways: Vec::new(),
        address: None,
    };
    RunConfig::on(*args, environment, &machine)
}

fn run(flags: &str) -> Result<RunConfig, Failure> {
    run_in(flags, &Environment::from([("PATH", "/nonexistent:/bin")]))
}

#[test]
fn rejected_settings() {
    let both = "are mutually exclusive";
    for (flags, words) in [
        ("--envoy-config /dev/null --user-config /dev/null", both),
        ("--no-envoy --envoy /bin/sh", both),
        ("--no-envoy -- -l debug", both),
        ("--no-envoy --user-config /dev/null", both),
        ("", "`envoy` is not found on the PATH \"/nonexistent:/bin\""),
        ("--envoy /bin", "not executable"),
        ("--envoy sh -- --mode validate", "-- --mode: the agent sets this flag"),
        ("--envoy sh -- --concurrency=3", "-- --concurrency=3:"),
        ("--envoy sh -- -c x", "-- -c:"),
        ("--envoy sh --envoy-config /nonexistent", "--envoy-config = \"/nonexistent\": No such file"),
        ("--no-envoy --drain-seconds 26", "--drain-seconds = 26: longer than"),
        ("--no-envoy --ready-address 127.0.0.1:15004", "overlaps with --local-address"),
        ("--no-envoy --local-group root", "--local-group = \"root\": only a Unix socket has a group"),
        ("--no-envoy --local-address unix:/s --local-group nobody-s", "\"nobody-s\": no such group"),
        ("--envoy sh --ready-address [::]:15090", "overlaps with --stats-address"),
    ] {
        let failure = run(flags).unwrap_err();
        assert_eq!(failure.code(), 64, "{flags}");
        assert!(failure.to_string().contains(words), "{flags}: {failure}");
    }
}

#[cfg(feature = "vm")]
#[test]
fn the_xds_proxy_needs_a_control_plane() {
    for flags in ["--no-envoy --proxy-xds", "--envoy sh --proxy-xds --group payments --namespace shop"] {
        let failure = run(flags).unwrap_err();
        assert_eq!(failure.code(), 64, "{flags}");
        let text = "--proxy-xds: set --discovery to the control plane that Envoy's xDS comes from";
        assert_eq!(failure.to_string(), text, "{flags}");
    }
    let group = "--discovery 127.0.0.1:15010 --discovery-plaintext --group payments";
    let config = run(&format!("--envoy sh --proxy-xds --xds delta {group}")).unwrap();
    let envoy = config.envoy.expect("an Envoy");
    let xds = envoy
        .files
        .sidecar()
        .expect("a rendered bootstrap")
        .bootstrap
        .xds
        .as_ref()
        .expect("the rendered bootstrap uses the socket");
    assert!(xds.is_delta && xds.path.ends_with("xds.sock"), "{xds:?}");
}

#[test]
fn probes_cannot_target_the_readiness_port() {
    let table = r#"{"/app-health/app/livez": {"tcpSocket": {"port": 25021}}}"#;
    let environment = Environment::from([("PATH", "/bin"), ("ISTIO_KUBE_APP_PROBERS", table)]);
    let failure = run_in("--envoy sh --ready-address [::]:25021", &environment).unwrap_err();
    assert!(failure.to_string().contains("25021: is a port of the proxy"), "{failure}");
    let given = run_in("--envoy sh --envoy-config /dev/null --ready-address [::]:25021", &environment);
    assert!(given.is_ok(), "the table is not read: {given:?}");
}

#[test]
fn admin_and_data_path_addresses() {
    let listener = "127.0.0.1:15020";
    for (flags, admin, data_path) in [
        ("--no-envoy", "127.0.0.1:15000", Some(listener)),
        ("--envoy sh --envoy-config /dev/null", "127.0.0.1:15000", Some(listener)),
        ("--envoy sh --state-dir /s", "unix:/s/admin.sock", Some(listener)),
        ("--envoy sh --probe-address 127.1.2.3:20 --admin localhost:1", "127.0.0.1:1", Some("127.1.2.3:20")),
        ("--no-envoy --data-path off --admin unix:/a", "unix:/a", None),
        ("--no-envoy --data-path http://127.0.0.1:1", "127.0.0.1:15000", Some("127.0.0.1:1")),
    ] {
        let config = run(flags).unwrap();
        assert_eq!(config.admin.to_string(), admin, "{flags}");
        assert_eq!(config.data_path.as_ref().map(|url| url.authority.as_str()), data_path, "{flags}");
        assert!(config.data_path.is_none_or(|url| url.path == DATA_PATH), "{flags}");
    }
    let own = run("--no-envoy --data-path http://127.0.0.1:1/x").unwrap().data_path.unwrap();
    assert_eq!(own.path, "/x");
}

#[test]
fn drains() {
    let istio = |value| Environment::from([("MINIMUM_DRAIN_DURATION", value)]);
    for (flags, environment, minimum) in [
        ("", Environment::default(), 5),
        ("", istio("7s"), 7),
        ("", istio("1m"), 25),
        ("--drain-seconds 0", istio("7s"), 0),
        ("--drain-deadline-seconds 3", Environment::default(), 3),
    ] {
        let config = run_in(&format!("--no-envoy {flags}"), &environment).unwrap();
        assert_eq!(config.drain.minimum, Duration::from_secs(minimum), "{flags} {environment:?}");
    }
    assert!(run_in("--no-envoy", &istio("7")).is_err());
}

#[test]
fn liveness_is_off_by_default() {
    assert_eq!(run("--no-envoy --live-admin-seconds 9").unwrap().live, None);
    assert_eq!(run("--no-envoy --live").unwrap().live, Some(LivenessConfig { admin: None }));
    let nine = Some(LivenessConfig { admin: Some(Duration::from_secs(9)) });
    assert_eq!(run("--no-envoy --live --live-admin-seconds 9").unwrap().live, nine);
}

#[test]
fn the_logger_that_any_client_can_use_is_quiet() {
    for (given, expected) in [
        ("", "--component-log-level misc:error"),
        (" -- -l debug", "-l debug --component-log-level misc:error"),
        (" -- --component-log-level wasm:info", "--component-log-level wasm:info,misc:error"),
        (" -- --component-log-level=wasm:info", "--component-log-level=wasm:info,misc:error"),
        (" -- --component-log-level misc:debug,wasm:info", "--component-log-level misc:debug,wasm:info"),
        (" -- --component-log-level", "--component-log-level"),
    ] {
        let config = run(&format!("--envoy sh{given}")).unwrap();
        let args = args_of(config);
        assert_eq!(args, expected.split(' ').map(std::ffi::OsString::from).collect::<Vec<_>>(), "{given}");
    }
    let config = run("--envoy sh --envoy-config /dev/null").unwrap();
    assert!(args_of(config).is_empty(), "deprecation warnings about the user's configuration");
}

/// Envoy's flags after those that the agent always sets.
fn args_of(config: RunConfig) -> Vec<std::ffi::OsString> {
    let flags = config.envoy.unwrap().flags;
    let last = flags.iter().position(|flag| flag == "--drain-time-s").unwrap() + 2;
    flags[last..].to_vec()
}

#[test]
fn the_agent_serves_the_metrics_of_an_envoy_that_it_configures() {
    for (words, expected) in [
        ("--envoy sh", Some(15090)),
        ("--envoy sh --stats-address 127.0.0.1:9090", Some(9090)),
        ("--envoy sh --stats-address off", None),
        ("--envoy sh --envoy-config /dev/null", None),
        ("--no-envoy", None),
    ] {
        let config = run(words).unwrap();
        assert_eq!(config.stats_address.map(|address| address.port()), expected, "{words}");
        let sidecar = config.envoy.as_ref().and_then(|envoy| envoy.files.sidecar());
        if let (Some(sidecar), Some(port)) = (sidecar, expected) {
            assert!(sidecar.bootstrap.proxy_ports().contains(&port), "no probe may target it");
            assert_eq!(sidecar.bootstrap.stats_address, None);
        }
    }
}
