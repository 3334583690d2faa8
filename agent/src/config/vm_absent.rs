//! Rejects the configuration of a virtual machine in a build without virtual machines.

use std::net::IpAddr;
use std::path::Path;

use super::Environment;
use crate::args::VmArgs;
use crate::bootstrap::XdsSocket;
use crate::exit::Failure;
use crate::vm::VmConfig;

impl VmConfig {
    pub(super) fn new(
        args: VmArgs,
        _instance_ip: IpAddr,
        _state_dir: &Path,
        _proxy_ports: &[u16],
        _environment: &Environment,
    ) -> Result<(Self, Vec<String>), Failure> {
        let flags = [("--workload-group", args.workload_group), ("--discovery", args.discovery)];
        match flags.into_iter().find(|(_, value)| value.is_some()) {
            Some((flag, _)) => Err(Failure::Usage(format!(
                "{flag}: this app-health-agent was built for Pods, without the feature `vm`; \
                 install the one for virtual machines, which `./justw release-vm` builds"
            ))),
            None => Ok((Self, Vec::new())),
        }
    }

    pub(super) fn xds_socket(&self) -> Option<XdsSocket> {
        None
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Args, Command};

    fn check(flags: &[&str]) -> Result<(), Failure> {
        let words = ["app-health-agent", "run"].iter().chain(flags);
        let Command::Run(args) = Args::try_parse_from(words).unwrap().command else { panic!("run") };
        let ip = "10.0.0.7".parse().unwrap();
        VmConfig::new(args.vm, ip, Path::new("/"), &[], &Environment::from([])).map(drop)
    }

    #[test]
    fn configurations_of_virtual_machines_are_rejected() {
        check(&[]).unwrap();
        for flag in ["--discovery", "--workload-group"] {
            let failure = check(&[flag, "x"]).unwrap_err();
            assert_eq!(failure.code(), 64);
            assert!(
                failure.to_string().starts_with(&format!("{flag}: this app-health-agent was built for Pods"))
            );
        }
    }
}
