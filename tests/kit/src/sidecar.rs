//! `app-health-agent run` with an Envoy of its own, on a loopback address of its own.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

use crate::agent;
use crate::caller::{self, Answer};
use crate::envoy::{self, Version};
use crate::net;

/// Nothing that the agent does takes longer than this.
const PATIENCE: Duration = Duration::from_secs(40);

/// A running agent, killed on drop.
pub struct Sidecar {
    /// Where everything listens.
    pub ip: IpAddr,
    /// Of the test; the state directory is `state` in it, the log `agent.log`.
    pub folder: PathBuf,
    child: Child,
}

/// A sidecar to be started.
pub struct Builder {
    /// Where everything will listen.
    pub ip: IpAddr,
    /// Of the test.
    pub folder: PathBuf,
    command: Command,
    instance_ip: IpAddr,
    envoy_args: Vec<String>,
}

impl Builder {
    /// With the real Envoy. `name` is the test's.
    pub fn new(name: &str) -> Self {
        Self::of(name, Version::Newest)
    }

    /// With that Envoy.
    pub fn of(name: &str, version: Version) -> Self {
        let binary = version.binary();
        Self::bare(name).args(&["--envoy", binary.to_str().expect("a path")])
    }

    /// With no word of which Envoy.
    pub fn bare(name: &str) -> Self {
        let (ip, folder) = (net::loopback(), envoy::folder(name));
        let mut command = agent::command(&["run"]);
        command.env("APP_HEALTH_LOCAL_ADDRESS", SocketAddr::new(ip, 15004).to_string());
        for (flag, port) in
            [("--probe-address", 15020), ("--ready-address", 15021), ("--stats-address", 15090)]
        {
            command.arg(flag).arg(SocketAddr::new(ip, port).to_string());
        }
        command.arg("--state-dir").arg(folder.join("state"));
        Self { ip, folder, command, instance_ip: ip, envoy_args: Vec::new() }
    }

    /// Beside somebody else's Envoy, which answers at that admin port; its probe listener is not asked.
    #[must_use]
    pub fn watching(self, admin: SocketAddr) -> Self {
        self.args(&["--no-envoy", "--admin", &admin.to_string(), "--data-path", "off"])
    }

    /// With another address of the machine than the one where everything listens.
    #[must_use]
    pub fn instance_ip(mut self, ip: IpAddr) -> Self {
        self.instance_ip = ip;
        self
    }

    /// More flags.
    #[must_use]
    pub fn args(mut self, args: &[&str]) -> Self {
        self.command.args(args);
        self
    }

    /// With so many descriptors at most, its Envoy too.
    #[must_use]
    pub fn descriptors(self, most: u32) -> Self {
        self.inside(&["sh", "-c", &format!("ulimit -n {most}; exec \"$0\" \"$@\"")])
    }

    /// By another program, which gets the agent's command line behind `words` and becomes it in the end, or ends as it
    /// does.
    ///
    /// # Panics
    /// Without a word.
    #[must_use]
    pub fn inside(mut self, words: &[&str]) -> Self {
        let (program, first) = words.split_first().expect("a program");
        let inner = self.command.as_std();
        let mut command = Command::new(program);
        command.args(first).arg(inner.get_program()).args(inner.get_args()).env_clear();
        command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.stdin(Stdio::null()).kill_on_drop(true);
        self.command = command;
        self
    }

    /// A variable of its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// A flag of Envoy; without any its log is quiet.
    #[must_use]
    pub fn envoy_args(mut self, args: &[&str]) -> Self {
        self.envoy_args = args.iter().map(|arg| (*arg).to_owned()).collect();
        self
    }

    /// Starts it.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(self) -> Sidecar {
        let quiet = ["--log-level".to_owned(), "warning".to_owned()];
        let args = if self.envoy_args.is_empty() { quiet.to_vec() } else { self.envoy_args };
        let mut command = self.command;
        command.arg("--instance-ip").arg(self.instance_ip.to_string()).arg("--").args(args);
        Self::spawn(command, self.ip, self.folder)
    }

    /// Starts it without a word to Envoy.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start_plain(mut self) -> Sidecar {
        self.command.arg("--instance-ip").arg(self.instance_ip.to_string());
        Self::spawn(self.command, self.ip, self.folder)
    }

    fn spawn(mut command: Command, ip: IpAddr, folder: PathBuf) -> Sidecar {
        // A file, since a pipe that nobody reads would hold it up.
        let log = std::fs::File::create(folder.join("agent.log")).expect("a writable folder");
        let child = command.stdout(Stdio::null()).stderr(log).spawn().expect("the agent starts");
        Sidecar { ip, folder, child }
    }
}

impl Sidecar {
    /// Its readiness port.
    pub fn ready_address(&self) -> SocketAddr {
        SocketAddr::new(self.ip, 15021)
    }

    /// Its local port.
    pub fn local_address(&self) -> SocketAddr {
        SocketAddr::new(self.ip, 15004)
    }

    /// `GET /healthz/ready`.
    pub async fn ready(&self, query: &str) -> Answer {
        caller::get(self.ready_address(), &format!("/healthz/ready{query}"), &[]).await
    }

    /// Asks until the answer has this status and this body.
    ///
    /// # Panics
    /// When it never comes; with the log.
    pub async fn until(&self, status: u16, body: &str) {
        let mut last = Answer::default();
        for _ in 0..2000 {
            last = self.ready("").await;
            if last.status == status && last.text().trim() == body {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{status} {body:?} never came, but {} {:?}\n{}", last.status, last.text(), self.log());
    }

    /// A request to the local port, with these lines of a head behind the first one.
    pub async fn local(&self, request: &str, lines: &str) -> Answer {
        let request = format!("{request} HTTP/1.1\r\n{lines}\r\n");
        caller::send(self.local_address(), request.as_bytes()).await
    }

    /// Its log so far, Envoy's within it.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("agent.log")).unwrap_or_default()
    }

    /// The number of the process.
    ///
    /// # Panics
    /// When it has ended.
    pub fn pid(&self) -> Pid {
        let pid = self.child.id().and_then(|pid| i32::try_from(pid).ok());
        Pid::from_raw(pid.unwrap_or_else(|| panic!("it has ended\n{}", self.log())))
    }

    /// The number of the Envoy that was started last.
    ///
    /// # Panics
    /// When none was started.
    pub fn envoy(&self) -> Pid {
        let log = self.log();
        let pid =
            log.rsplit("envoy started pid=").next().and_then(|rest| rest.split(' ').next()?.parse().ok());
        Pid::from_raw(pid.unwrap_or_else(|| panic!("no Envoy was started\n{log}")))
    }

    /// Sends a signal to the agent.
    ///
    /// # Panics
    /// When it has ended.
    pub fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("the agent runs");
    }

    /// Waits for its end: the code and the log.
    ///
    /// # Panics
    /// When it does not come.
    pub async fn end(mut self) -> (Option<i32>, String) {
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        let status = ended.unwrap_or_else(|_| panic!("it does not end\n{}", self.log())).expect("a child");
        (status.code(), self.log())
    }
}

/// Is there such a process, and not only what is left of it?
pub fn is_alive(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.trim().starts_with('Z'))
}
