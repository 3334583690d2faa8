//! The command `drain`.

use serving::runtime;
use tokio::runtime::Builder;
use tokio::time::Instant;

use super::{LocalCallResult, post};
use crate::args::DrainArgs;
use agent_output::exit::{self, Failure};
use agent_server::local_server::DRAIN;

/// Requests a drain of Envoy. A missing agent is reported on stderr but is not a failure, because a
/// preStop hook must tolerate it (istio#51883).
pub fn run(args: &DrainArgs) -> Result<(), Failure> {
    let wait = args.wait.as_millis();
    let path = if wait == 0 { DRAIN.to_owned() } else { format!("{DRAIN}?wait={wait}") };
    let timeout = args.timeout + args.wait;
    match runtime::block_on(&mut Builder::new_current_thread(), async {
        Ok(post(&args.url, &path, Instant::now() + timeout).await)
    })? {
        LocalCallResult::Done => Ok(()),
        LocalCallResult::NotRunning => {
            exit::stderr_line(&format!("nothing to drain: no agent listens at {}", args.url.authority));
            Ok(())
        }
        LocalCallResult::Failed(reason) => Err(Failure::Unavailable(format!("drain failed: {reason}"))),
    }
}
