//! The command `quit`.

use std::time::Duration;

use serving::runtime;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep};

use super::{LocalCallResult, post};
use crate::args::QuitArgs;
use agent_output::exit::Failure;
use agent_server::local_server::QUIT;

const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Requests that the agent exits. It retries until the timeout, because a short Job may finish
/// before its sidecar listens.
pub fn run(args: &QuitArgs) -> Result<(), Failure> {
    runtime::block_on(&mut Builder::new_current_thread(), async {
        let deadline = Instant::now() + args.timeout;
        loop {
            match post(&args.url, QUIT, deadline).await {
                LocalCallResult::Done => return Ok(()),
                LocalCallResult::NotRunning if Instant::now() + RETRY_INTERVAL < deadline => {
                    sleep(RETRY_INTERVAL).await;
                }
                LocalCallResult::NotRunning => {
                    return Err(Failure::Unavailable(format!(
                        "no agent listened at {} for {}s",
                        args.url.authority,
                        args.timeout.as_secs()
                    )));
                }
                LocalCallResult::Failed(reason) => {
                    return Err(Failure::Unavailable(format!("quit failed: {reason}")));
                }
            }
        }
    })
}
