//! One container of the daemon.

use std::cell::Cell;
use std::net::SocketAddr;

use serde_json::Value;

use super::{BUSYBOX, Daemon};
use crate::agent::Outcome;
use crate::caller::{self, Answer};
use crate::wait;

/// A started container; it is removed with the daemon.
pub struct Container<'a> {
    daemon: &'a Daemon,
    /// The full container ID.
    pub id: String,
}

impl Daemon {
    /// Runs `docker run --detach` with these arguments.
    pub fn run(&self, words: &[&str]) -> Container<'_> {
        Container { daemon: self, id: self.ask(&[&["run", "--detach"], words].concat()) }
    }

    pub fn named(&self, name: &str) -> Container<'_> {
        Container { daemon: self, id: name.to_owned() }
    }
}

impl Container<'_> {
    /// Returns the value with which another container shares a namespace of this one:
    /// `container:ID`.
    pub fn namespace(&self) -> String {
        format!("container:{}", self.id)
    }

    /// Returns a part of the output of `docker inspect`, by its JSON pointer.
    pub fn inspect(&self, pointer: &str) -> Value {
        let text = self.daemon.ask(&["inspect", "--format", "{{json .}}", &self.id]);
        let all: Value = serde_json::from_str(&text).expect("JSON");
        all.pointer(pointer).cloned().unwrap_or_default()
    }

    /// Returns the address of a port of the container.
    pub fn address(&self, port: u16) -> SocketAddr {
        let ip = self.inspect("/NetworkSettings/Networks/bridge/IPAddress");
        let ip = ip.as_str().and_then(|ip| ip.parse().ok());
        SocketAddr::new(ip.unwrap_or_else(|| panic!("the container has no address\n{}", self.logs())), port)
    }

    /// Returns all output, standard error first.
    pub fn logs(&self) -> String {
        let outcome = self.daemon.docker(&["logs", &self.id]);
        outcome.stderr + &outcome.stdout
    }

    /// Runs `docker exec`.
    pub fn exec(&self, words: &[&str]) -> Outcome {
        self.daemon.docker(&[&["exec", &self.id], words].concat())
    }

    /// Runs a busybox script as root in the PID namespace of the container, and returns its output.
    ///
    /// # Panics
    /// If the script fails.
    pub fn among_processes(&self, script: &str) -> String {
        let outcome = self.run_among_processes(script);
        assert_eq!(outcome.code, Some(0), "{script}: {outcome:?}");
        outcome.stdout.trim().to_owned()
    }

    /// Like [`Self::among_processes`], for a script that may fail.
    pub fn run_among_processes(&self, script: &str) -> Outcome {
        let namespace = self.namespace();
        self.daemon.docker(&["run", "--rm", "--pid", &namespace, BUSYBOX, "sh", "-c", script])
    }

    /// Sends a signal to the first process.
    pub fn signal(&self, signal: &str) {
        self.daemon.ask(&["kill", "--signal", signal, &self.id]);
    }

    /// Sends requests until the response has this status.
    ///
    /// # Panics
    /// If that does not happen in time; the message contains the log.
    pub async fn until(&self, port: u16, path: &str, status: u16) -> Answer {
        let address = self.address(port);
        let last = Cell::new(0);
        let what = || format!("{path} answers {status}, not {}\n{}", last.get(), self.logs());
        wait::until_some(what, async || {
            let answer = caller::get(address, path, &[]).await;
            last.set(answer.status);
            (answer.status == status).then_some(answer)
        })
        .await
    }

    /// Waits until the sidecar in the container is ready.
    pub async fn until_ready(&self) {
        self.until(15021, "/healthz/ready", 200).await;
    }

    /// Waits until the log contains `text`, which Docker may append some time after the container
    /// has written it, and returns the log.
    ///
    /// # Panics
    /// If it does not in time.
    pub async fn until_logged(&self, text: &str) -> String {
        let what = || format!("the container logs {text:?}\n{}", self.logs());
        wait::until_some(what, async || Some(self.logs()).filter(|log| log.contains(text))).await
    }

    /// Waits until the container exits and returns the exit code.
    ///
    /// # Panics
    /// If it does not exit in time.
    pub async fn end(&self) -> i64 {
        let what = || format!("the container exits\n{}", self.logs());
        wait::until_or(what, async || self.inspect("/State/Running") == false).await;
        self.inspect("/State/ExitCode").as_i64().expect("a code")
    }
}
