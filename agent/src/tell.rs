//! The commands `drain` and `quit`, which ask the local port of the agent that runs.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use crate::address::HttpUrl;
use crate::config::{DrainConfig, QuitConfig};
use crate::exit::{self, Failure};
use crate::http_client;
use crate::local;
use crate::runtime;

/// How much of an answer is read, in bytes.
const ANSWER: usize = 4 * 1024;
/// Between two tries of `quit`.
const AGAIN: Duration = Duration::from_millis(100);

/// Tells the agent to drain Envoy. Nobody there is said and is no failure: a preStop hook has to bear that (istio#51883).
pub fn drain(config: &DrainConfig) -> Result<(), Failure> {
    let wait = config.wait.as_millis();
    let path = if wait == 0 { local::DRAIN.to_owned() } else { format!("{}?wait={wait}", local::DRAIN) };
    let within = config.timeout + config.wait;
    match runtime::block_on(async { Ok(post(&config.url, &path, Instant::now() + within).await) })? {
        Answer::Done => Ok(()),
        Answer::Nobody => {
            exit::stderr_line(&format!("nothing to drain: no agent listens at {}", config.url.authority));
            Ok(())
        }
        Answer::Not(why) => Err(Failure::Unavailable(format!("not drained: {why}"))),
    }
}

/// Tells the agent to end. Tries until its time is over, since a quick Job may end before its sidecar listens.
pub fn quit(config: &QuitConfig) -> Result<(), Failure> {
    runtime::block_on(async {
        let end = Instant::now() + config.timeout;
        loop {
            match post(&config.url, local::QUIT, end).await {
                Answer::Done => return Ok(()),
                Answer::Nobody if Instant::now() + AGAIN < end => sleep(AGAIN).await,
                Answer::Nobody => {
                    return Err(Failure::Unavailable(format!(
                        "no agent listened at {} for {}s",
                        config.url.authority,
                        config.timeout.as_secs()
                    )));
                }
                Answer::Not(why) => return Err(Failure::Unavailable(format!("not ended: {why}"))),
            }
        }
    })
}

/// What came of a question.
#[derive(Debug, PartialEq, Eq)]
enum Answer {
    Done,
    /// Nobody accepts connections there.
    Nobody,
    /// Why not.
    Not(String),
}

async fn post(url: &HttpUrl, path: &str, end: Instant) -> Answer {
    let silent = || Answer::Not("no answer in time".to_owned());
    let found = match timeout_at(end, http_client::look_up(&url.endpoint)).await {
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
        Ok(Ok(answer)) => Answer::Not(format!("answers {}", answer.status)),
        Ok(Err(error)) => Answer::Not(error.to_string()),
        Err(_) => silent(),
    }
}

#[cfg(test)]
mod tests;
