//! Runs `app-health-agent run` with a separate Envoy on a separate loopback address.

use std::cell::Cell;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};

use crate::agent;
use crate::caller::{self, Answer};
use crate::envoy::{self, Version};
use crate::net;
use crate::process;
use crate::wait;

/// A running agent, killed on drop.
pub struct Sidecar {
    /// The address on which all its ports listen.
    pub ip: IpAddr,
    /// The folder of the test, with the state directory `state` and the log `agent.log`.
    pub folder: PathBuf,
    child: Child,
}

/// Settings of a sidecar before its start.
pub struct Builder {
    /// The address on which all its ports will listen.
    pub ip: IpAddr,
    /// The folder of the test.
    pub folder: PathBuf,
    command: Command,
    instance_ip: IpAddr,
    envoy_args: Vec<String>,
}

impl Builder {
    /// Uses the newest Envoy; `name` is that of the test.
    pub fn new(name: &str) -> Self {
        Self::of(name, Version::Newest)
    }

    /// Uses this version of Envoy.
    pub fn of(name: &str, version: Version) -> Self {
        let binary = version.binary();
        Self::bare(name).args(&["--envoy", binary.to_str().expect("a path")])
    }

    /// Sets no flag about Envoy.
    pub fn bare(name: &str) -> Self {
        Self::bare_at(name, net::loopback())
    }

    /// Like [`Builder::new`], at the address of an earlier agent of this test, whose files it uses.
    pub fn again(name: &str, ip: IpAddr) -> Self {
        let binary = Version::Newest.binary();
        Self::bare_at(name, ip).args(&["--envoy", binary.to_str().expect("a path")])
    }

    /// Like [`Builder::bare`], at this address. If it is that of an earlier agent of this test, it uses the files
    /// of that one.
    pub fn bare_at(name: &str, ip: IpAddr) -> Self {
        let folder = envoy::folder(name);
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

    /// Uses an external Envoy with that admin port; its probe listener is not checked.
    #[must_use]
    pub fn watching(self, admin: SocketAddr) -> Self {
        self.args(&["--no-envoy", "--admin", &admin.to_string(), "--data-path", "off"])
    }

    /// Sets `--instance-ip` to another address than the one on which the ports listen.
    #[must_use]
    pub fn instance_ip(mut self, ip: IpAddr) -> Self {
        self.instance_ip = ip;
        self
    }

    #[must_use]
    pub fn args(mut self, args: &[&str]) -> Self {
        self.command.args(args);
        self
    }

    /// Limits the number of open file descriptors of the agent and its Envoy.
    #[must_use]
    pub fn descriptors(self, most: u32) -> Self {
        self.inside(&["sh", "-c", &format!("ulimit -n {most}; exec \"$0\" \"$@\"")])
    }

    /// Runs the agent by another program, which gets the agent's command line after `words` and
    /// either executes it or exits with the same code.
    ///
    /// # Panics
    /// If `words` is empty.
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

    /// Adds an environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    /// Adds flags of Envoy; without any, its log level is raised.
    #[must_use]
    pub fn envoy_args(mut self, args: &[&str]) -> Self {
        self.envoy_args = args.iter().map(|arg| (*arg).to_owned()).collect();
        self
    }

    /// Starts the agent with the configured flags.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start(self) -> Sidecar {
        let quiet = ["--log-level".to_owned(), "warning".to_owned()];
        let args = if self.envoy_args.is_empty() { quiet.to_vec() } else { self.envoy_args };
        let mut command = self.command;
        command.arg("--instance-ip").arg(self.instance_ip.to_string()).arg("--").args(args);
        Self::spawn(command, self.ip, self.folder)
    }

    /// Starts the agent without any flags for Envoy.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn start_plain(mut self) -> Sidecar {
        self.command.arg("--instance-ip").arg(self.instance_ip.to_string());
        Self::spawn(self.command, self.ip, self.folder)
    }

    fn spawn(mut command: Command, ip: IpAddr, folder: PathBuf) -> Sidecar {
        // A file is used because an unread pipe would block the agent.
        let log = std::fs::File::create(folder.join("agent.log")).expect("a writable folder");
        let child = command.stdout(Stdio::null()).stderr(log).spawn().expect("the agent starts");
        Sidecar { ip, folder, child }
    }
}

impl Sidecar {
    /// Returns the address of the readiness port.
    pub fn ready_address(&self) -> SocketAddr {
        SocketAddr::new(self.ip, 15021)
    }

    /// Returns the address of the local admin port.
    pub fn local_address(&self) -> SocketAddr {
        SocketAddr::new(self.ip, 15004)
    }

    /// Sends `GET /healthz/ready`.
    pub async fn ready(&self, query: &str) -> Answer {
        caller::get(self.ready_address(), &format!("/healthz/ready{query}"), &[]).await
    }

    /// Sends requests until the response has this status and this body.
    ///
    /// # Panics
    /// If that does not happen in time; the message contains the log.
    pub async fn until(&self, status: u16, body: &str) {
        let last = Cell::new((0, String::new()));
        let what = || {
            let (its_status, its_body) = last.take();
            format!("the agent answers {status} {body:?}, not {its_status} {its_body:?}\n{}", self.log())
        };
        wait::until_or(what, async || {
            let answer = self.ready("").await;
            last.set((answer.status, answer.text().trim().to_owned()));
            answer.status == status && answer.text().trim() == body
        })
        .await;
    }

    /// Sends a request to the local admin port; `lines` are header lines.
    pub async fn local(&self, request: &str, lines: &str) -> Answer {
        let request = format!("{request} HTTP/1.1\r\n{lines}\r\n");
        caller::send(self.local_address(), request.as_bytes()).await
    }

    /// Returns the sum of the agent's own metrics whose names start with `prefix`, over all labels.
    pub async fn metric(&self, prefix: &str) -> f64 {
        let text = self.local("GET /metrics", "Host: localhost\r\n").await.text();
        let samples = text.lines().filter(|line| line.starts_with(prefix));
        samples.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    }

    /// Waits until the agent has completed `requests` more readiness requests to the probe listener.
    pub async fn until_data_path_requests(&self, requests: f64) {
        const REQUESTS: &str = "app_health_agent_data_path_";
        let before = self.metric(REQUESTS).await;
        let what = || format!("the agent sends {requests} requests to the probe listener\n{}", self.log());
        wait::until_or(what, async || self.metric(REQUESTS).await >= before + requests).await;
    }

    /// Returns the log so far, including that of Envoy.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("agent.log")).unwrap_or_default()
    }

    /// Returns the PID of the agent.
    ///
    /// # Panics
    /// If it has exited.
    pub fn pid(&self) -> Pid {
        let pid = self.child.id().and_then(|pid| i32::try_from(pid).ok());
        Pid::from_raw(pid.unwrap_or_else(|| panic!("the agent has exited\n{}", self.log())))
    }

    /// Returns the PID of the running Envoy, which is the agent's only child once it is ready.
    ///
    /// # Panics
    /// If the agent has no child, or several.
    pub fn envoy_pid(&self) -> Pid {
        let children = process::children(self.pid());
        let [envoy] = children[..] else { panic!("not one child: {children:?}\n{}", self.log()) };
        envoy
    }

    /// Sends a signal to the agent.
    ///
    /// # Panics
    /// If it has exited.
    pub fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("the agent runs");
    }

    /// Waits until the agent exits and returns its exit code and log.
    ///
    /// # Panics
    /// If it does not exit in time.
    pub async fn end(mut self) -> (Option<i32>, String) {
        let ended = tokio::time::timeout(wait::timeout(), self.child.wait()).await;
        let status =
            ended.unwrap_or_else(|_| panic!("the agent does not exit\n{}", self.log())).expect("a child");
        (status.code(), self.log())
    }
}
