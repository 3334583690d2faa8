//! One request of an honest client, and how its response is judged.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use kit::caller::Answer;
use kit::load::{connect, read_answer};
use rustls::pki_types::ServerName;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// A TLS client, and the name of its server.
#[derive(Clone)]
pub struct Tls {
    pub connector: TlsConnector,
    pub server: ServerName<'static>,
}

/// A request on a new connection.
#[derive(Clone)]
pub struct Request {
    pub source: IpAddr,
    pub address: SocketAddr,
    pub tls: Option<Tls>,
    pub bytes: Vec<u8>,
    /// The timeout of the client. A request without a complete response in this time is lost.
    pub deadline: Duration,
    pub expectation: Arc<Expectation>,
}

/// The verdict on a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Expected,
    /// A response other than the expected one.
    Changed(String),
    /// No complete response.
    Lost(String),
    /// The expectation changed between request and response, so any response is correct.
    Unknown,
}

impl Request {
    /// Sends the request and judges the response.
    pub async fn send(&self) -> Verdict {
        let before = self.expectation.version();
        let found = match timeout(self.deadline, self.exchange()).await {
            Ok(Ok(answer)) if answer.complete => Ok(answer),
            Ok(Ok(answer)) => Err(format!("incomplete response, status {}", answer.status)),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no response within {:?}", self.deadline)),
        };
        self.expectation.judge(before, found)
    }

    async fn exchange(&self) -> std::io::Result<Answer> {
        let mut stream = connect(Some(self.source), self.address).await?;
        stream.set_nodelay(true)?;
        let Some(tls) = &self.tls else {
            stream.write_all(&self.bytes).await?;
            return read_answer(&mut stream).await;
        };
        let mut stream = tls.connector.connect(tls.server.clone(), stream).await?;
        stream.write_all(&self.bytes).await?;
        stream.flush().await?;
        read_answer(&mut stream).await
    }
}

/// The response that is correct now.
#[derive(Debug)]
pub struct Expectation(Mutex<State>);

#[derive(Debug)]
struct State {
    /// Increases with each change.
    version: u64,
    /// `None`: any response, or none, is correct.
    status: Option<u16>,
    /// Text that the body contains.
    body: &'static str,
}

impl Expectation {
    pub fn status(status: u16) -> Arc<Self> {
        Self::body(status, "")
    }

    /// Expects this status, and a body that contains `body`.
    pub fn body(status: u16, body: &'static str) -> Arc<Self> {
        Arc::new(Self(Mutex::new(State { version: 0, status: Some(status), body })))
    }

    /// Changes the expected status; `None`: any response, or none, is correct.
    pub fn set(&self, status: Option<u16>) {
        let mut state = self.state();
        state.version += 1;
        state.status = status;
    }

    fn version(&self) -> u64 {
        self.state().version
    }

    fn judge(&self, before: u64, found: Result<Answer, String>) -> Verdict {
        let state = self.state();
        let Some(status) = state.status.filter(|_| state.version == before) else { return Verdict::Unknown };
        match found {
            Err(why) => Verdict::Lost(why),
            Ok(answer) if answer.status != status => {
                Verdict::Changed(format!("{} instead of {status}: {}", answer.status, answer.text().trim()))
            }
            Ok(answer) if !answer.text().contains(state.body) => {
                Verdict::Changed(format!("{status} without {:?}", state.body))
            }
            Ok(_) => Verdict::Expected,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().expect("the mutex is not poisoned")
    }
}

#[cfg(test)]
mod tests;
