//! The command `undrain`.

use serving::runtime;
use tokio::runtime::Builder;
use tokio::time::Instant;

use super::{LocalCallResult, post};
use crate::args::UndrainArgs;
use agent_output::exit::Failure;
use agent_server::local_server::UNDRAIN;

/// Requests that the agent reverses a drain. A missing agent is a failure, because nothing then
/// serves.
pub fn run(args: &UndrainArgs) -> Result<(), Failure> {
    let call = async { Ok(post(&args.url, UNDRAIN, Instant::now() + args.timeout).await) };
    match runtime::block_on(&mut Builder::new_current_thread(), call)? {
        LocalCallResult::Done => Ok(()),
        LocalCallResult::NotRunning => {
            Err(Failure::Unavailable(format!("undrain failed: no agent listens at {}", args.url.authority)))
        }
        LocalCallResult::Failed(reason) => Err(Failure::Unavailable(format!("undrain failed: {reason}"))),
    }
}
