//! The processes of the container `istio-proxy`.

use std::fs;

use nix::unistd::Pid;

/// A program in the container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// Istio's or ours.
    Agent,
    Envoy,
}

/// Returns the process of a program in a Pod's sidecar, by the environment that Istio's injector has given
/// it; `None` if it does not run.
///
/// # Panics
/// If `/proc` cannot be read.
pub fn process(pod: &str, namespace: &str, program: Program) -> Option<Pid> {
    let wanted = [format!("POD_NAME={pod}"), format!("POD_NAMESPACE={namespace}")];
    let of_pod = |entry: fs::DirEntry| {
        let process: i32 = entry.file_name().to_str()?.parse().ok()?;
        let environment = fs::read(entry.path().join("environ")).ok()?;
        let variables: Vec<&[u8]> = environment.split(|byte| *byte == 0).collect();
        let is_of_pod = wanted.iter().all(|wanted| variables.contains(&wanted.as_bytes()));
        let path = fs::read_link(entry.path().join("exe")).ok()?;
        let is_envoy = path.file_name()? == "envoy";
        (is_of_pod && is_envoy == (program == Program::Envoy)).then_some(Pid::from_raw(process))
    };
    fs::read_dir("/proc").expect("/proc is mounted").flatten().find_map(of_pod)
}

/// Returns the number of a process in the PID namespace of its container.
///
/// # Panics
/// If it does not run.
pub fn in_container(process: Pid) -> Pid {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("the process runs");
    let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).expect("a line of the kernel");
    let number = numbers.split_whitespace().last().expect("a number");
    Pid::from_raw(number.parse().expect("a number"))
}
