//! Rejects the configuration of a virtual machine in a build without virtual machines.

use agent_output::exit::Failure;

use crate::args::VmArgs;

pub(super) fn reject_vm_flags(args: VmArgs) -> Result<(), Failure> {
    let flags = [("--workload-group", args.workload_group), ("--discovery", args.discovery)];
    match flags.into_iter().find(|(_, value)| value.is_some()) {
        Some((flag, _)) => Err(Failure::Usage(format!(
            "{flag}: this app-health-agent was built for Pods, without the feature `vm`; \
             install the one for virtual machines, which `./justw release-vm` builds"
        ))),
        None => Ok(()),
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
        reject_vm_flags(args.vm)
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
