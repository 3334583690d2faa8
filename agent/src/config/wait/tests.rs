use clap::Parser;

use super::*;
use crate::args::{Args, Command};

fn wait(flags: &str, environment: &Environment) -> WaitConfig {
    let words = ["app-health-agent", "wait"].into_iter().chain(flags.split_whitespace());
    let Command::Wait(args) = Args::try_parse_from(words).unwrap().command else { panic!("wait") };
    WaitConfig::new(args, environment)
}

#[test]
fn no_sidecar() {
    for (value, expected) in [
        ("", None),
        ("0", None),
        ("false", None),
        ("FALSE", None),
        ("1", Some(NO_SIDECAR)),
        ("yes", Some(NO_SIDECAR)),
    ] {
        assert_eq!(wait("", &Environment::from([("NO_SIDECAR", value)])).no_sidecar, expected, "{value:?}");
    }
    assert_eq!(wait("--no-sidecar", &Environment::default()).no_sidecar, Some("--noSidecar"));
}
