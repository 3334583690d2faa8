use clap::Parser;

use super::*;
use crate::args::{Args, Command};

fn check(flags: &str) -> Result<(HealthConfig, Vec<String>), Failure> {
    let words = ["app-health-agent", "run"].into_iter().chain(flags.split_whitespace());
    let Command::Run(args) = Args::try_parse_from(words).unwrap().command else { panic!("run") };
    let environment = Environment::from([("PATH", "/bin"), ("HOME", "/root"), ("SECRET", "x"), ("LANG", "")]);
    health_config(args.vm.health, "10.0.0.7".parse().unwrap(), &[16021], &environment)
}

/// Calls `look` with the path of a temporary file with this content.
fn with_file<T>(name: &str, text: &str, look: impl FnOnce(&str) -> T) -> T {
    let file = std::env::temp_dir().join(format!("app-health-{}-{name}.yaml", std::process::id()));
    std::fs::write(&file, text).unwrap();
    let looked = look(file.to_str().unwrap());
    std::fs::remove_file(file).unwrap();
    looked
}

#[test]
fn defaults() {
    let (config, warnings) = check("").unwrap();
    assert!(config.group.is_none() && warnings.is_empty());
    let TargetRules { instance_ip, capture, allow_remote } = config.target;
    assert_eq!((instance_ip.to_string().as_str(), capture, allow_remote), ("10.0.0.7", false, false));
    assert!(config.envoy_readiness && !config.rules.allow_pushed_exec);
    let names: Vec<&str> = config.exec_environment.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["PATH", "HOME"]);
}

#[test]
fn every_flag() {
    let flags = "--capture on --allow-remote-probes --allow-pushed-exec --envoy-readiness off";
    let (config, _) = check(flags).unwrap();
    assert!(config.target.capture && config.target.allow_remote);
    assert!(!config.envoy_readiness && config.rules.allow_pushed_exec);
}

#[test]
fn invalid_files_are_rejected() {
    const HEAD: &str = "apiVersion: networking.istio.io/v1\nkind: WorkloadGroup\nmetadata: { name: a }\n";
    for (name, probe, words) in [
        ("port", "{ grpc: { port: 0 } }", "spec.probe.grpc.port: must be between 1 and 65535, got 0"),
        ("moved", "{ grpc: { port: 16021 } }", "spec.probe.grpc.port: 16021 belongs to the proxy"),
    ] {
        let failure = with_file(name, &format!("{HEAD}spec: {{ probe: {probe} }}\n"), |file| {
            check(&format!("--workload-group {file}")).unwrap_err()
        });
        assert_eq!(failure.code(), 64);
        assert!(failure.to_string().starts_with("--workload-group = /"), "{failure}");
        assert!(failure.to_string().ends_with(words), "{failure}");
    }
    let failure = check("--workload-group /no/such").unwrap_err();
    assert_eq!(failure.to_string(), "--workload-group = /no/such: No such file or directory (os error 2)");
    let (config, warnings) = with_file("warned", &format!("{HEAD}spec: {{ probes: 1 }}\n"), |file| {
        check(&format!("--workload-group {file}")).unwrap()
    });
    assert!(config.group.is_some_and(|group| group.group.probe.is_none()));
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].ends_with("spec.probes: unknown field, ignored"), "{warnings:?}");
}
