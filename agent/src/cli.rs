//! The commands `drain` and `quit`, which send a request to the admin server of the running agent.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use crate::address::HttpUrl;
use crate::config::{DrainConfig, QuitConfig};
use crate::exit::{self, Failure};
use crate::http_client;
use crate::local_server;
use crate::runtime;

/// Maximum number of bytes that are read of a response body.
const ANSWER: usize = 4 * 1024;
/// Interval between two attempts of `quit`.
const AGAIN: Duration = Duration::from_millis(100);

/// Requests a drain of Envoy. A missing agent is reported on stderr but is not a failure, because a
/// preStop hook must tolerate it (istio#51883).
pub fn drain(config: &DrainConfig) -> Result<(), Failure> {
    let wait = config.wait.as_millis();
    let path = if wait == 0 {
        local_server::DRAIN.to_owned()
    } else {
        format!("{}?wait={wait}", local_server::DRAIN)
    };
    let within = config.timeout + config.wait;
    match runtime::block_on(async { Ok(post(&config.url, &path, Instant::now() + within).await) })? {
        Answer::Done => Ok(()),
        Answer::Nobody => {
            exit::stderr_line(&format!("nothing to drain: no agent listens at {}", config.url.authority));
            Ok(())
        }
        Answer::Not(why) => Err(Failure::Unavailable(format!("drain failed: {why}"))),
    }
}

/// Requests that the agent exits. It retries until the timeout, because a short Job may finish
/// before its sidecar listens.
pub fn quit(config: &QuitConfig) -> Result<(), Failure> {
    runtime::block_on(async {
        let end = Instant::now() + config.timeout;
        loop {
            match post(&config.url, local_server::QUIT, end).await {
                Answer::Done => return Ok(()),
                Answer::Nobody if Instant::now() + AGAIN < end => sleep(AGAIN).await,
                Answer::Nobody => {
                    return Err(Failure::Unavailable(format!(
                        "no agent listened at {} for {}s",
                        config.url.authority,
                        config.timeout.as_secs()
                    )));
                }
                Answer::Not(why) => return Err(Failure::Unavailable(format!("quit failed: {why}"))),
            }
        }
    })
}

#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Done,
    /// No process accepts connections at the address.
    Nobody,
    /// The request failed for this reason.
    Not(String),
}

async fn post(url: &HttpUrl, path: &str, end: Instant) -> Answer {
    let silent = || Answer::Not("no response in time".to_owned());
    let found = match timeout_at(end, http_client::resolve(&url.endpoint)).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => return Answer::Not(error.to_string()),
        Err(_) => return Answer::Not("name not resolved".to_owned()),
    };
    let connection = match timeout_at(end, found.dial()).await {
        Ok(Ok(connection)) => connection,
        Ok(Err(_)) => return Answer::Nobody,
        Err(_) => return silent(),
    };
    match timeout_at(end, connection.post(&url.authority, path, ANSWER)).await {
        Ok(Ok(answer)) if answer.status == 200 => Answer::Done,
        Ok(Ok(answer)) => Answer::Not(format!("HTTP status {}", answer.status)),
        Ok(Err(error)) => Answer::Not(error.to_string()),
        Err(_) => silent(),
    }
}

#[cfg(test)]
mod tests;
