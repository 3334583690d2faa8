//! One container of the daemon.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;

use super::{BUSYBOX, Daemon};
use crate::agent::Outcome;
use crate::caller::{self, Answer};

/// A container that was started; it goes with the daemon.
pub struct Container<'a> {
    daemon: &'a Daemon,
    /// The long number.
    pub id: String,
}

impl Daemon {
    /// `docker run --detach` with these words behind it.
    pub fn run(&self, words: &[&str]) -> Container<'_> {
        Container { daemon: self, id: self.ask(&[&["run", "--detach"], words].concat()) }
    }

    /// The container with this name.
    pub fn named(&self, name: &str) -> Container<'_> {
        Container { daemon: self, id: name.to_owned() }
    }
}

impl Container<'_> {
    /// How another container shares a namespace with this one: `container:ID`.
    pub fn namespace(&self) -> String {
        format!("container:{}", self.id)
    }

    /// A part of what `docker inspect` says, by its JSON pointer.
    pub fn inspect(&self, pointer: &str) -> Value {
        let text = self.daemon.ask(&["inspect", "--format", "{{json .}}", &self.id]);
        let all: Value = serde_json::from_str(&text).expect("JSON");
        all.pointer(pointer).cloned().unwrap_or_default()
    }

    /// Where it listens.
    pub fn address(&self, port: u16) -> SocketAddr {
        let ip = self.inspect("/NetworkSettings/Networks/bridge/IPAddress");
        let ip = ip.as_str().and_then(|ip| ip.parse().ok());
        SocketAddr::new(ip.unwrap_or_else(|| panic!("it has no address\n{}", self.logs())), port)
    }

    /// All that it wrote, standard error first.
    pub fn logs(&self) -> String {
        let outcome = self.daemon.docker(&["logs", &self.id]);
        outcome.stderr + &outcome.stdout
    }

    /// `docker exec`.
    pub fn exec(&self, words: &[&str]) -> Outcome {
        self.daemon.docker(&[&["exec", &self.id], words].concat())
    }

    /// Runs a script of busybox among its processes, as root.
    pub fn among_processes(&self, script: &str) -> String {
        let namespace = self.namespace();
        self.daemon.ask(&["run", "--rm", "--pid", &namespace, BUSYBOX, "sh", "-c", script])
    }

    /// Sends a signal to its first process.
    pub fn signal(&self, signal: &str) {
        self.daemon.ask(&["kill", "--signal", signal, &self.id]);
    }

    /// Asks until the answer has this status.
    ///
    /// # Panics
    /// When it never comes; with the log.
    pub async fn until(&self, port: u16, path: &str, status: u16) -> Answer {
        let address = self.address(port);
        let mut last = Answer::default();
        for _ in 0..1500 {
            last = caller::get(address, path, &[]).await;
            if last.status == status {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(40)).await;
        }
        panic!("{status} of {path} never came, but {}: {}\n{}", last.status, last.text(), self.logs());
    }

    /// Asks until the sidecar in it is ready.
    pub async fn until_ready(&self) {
        self.until(15021, "/healthz/ready", 200).await;
    }

    /// Waits for its end: the exit code.
    ///
    /// # Panics
    /// When it does not come.
    pub async fn end(&self) -> i64 {
        for _ in 0..1500 {
            if self.inspect("/State/Running") == false {
                return self.inspect("/State/ExitCode").as_i64().expect("a code");
            }
            tokio::time::sleep(Duration::from_millis(40)).await;
        }
        panic!("it does not end\n{}", self.logs());
    }
}
