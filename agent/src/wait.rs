//! The command `wait`: it polls the readiness endpoint until the sidecar is ready, then exits or
//! executes the application.

mod attempt;
mod command;

use std::time::Duration;

use serving::runtime;
use serving::shutdown::Shutdown;
use tokio::runtime::Builder;
use tokio::time::{Instant, sleep};

use crate::args::OnTimeout;
use crate::config::WaitConfig;
use agent_output::exit::{self, Failure};
use attempt::{Attempt, Attempts, RESPONSE_MARGIN};

/// Minimum interval between two lines about the reason.
const LOG_INTERVAL: Duration = Duration::from_secs(1);
/// Pause after a refused connection: an attempt is cheap, and the sidecar may start at any moment.
const REFUSED_PAUSE: Duration = Duration::from_millis(10);
/// First pause after an early response; the pause doubles up to the period.
const FIRST_PAUSE: Duration = Duration::from_millis(25);

/// Waits, writes to stderr why the sidecar is not ready and how the wait ended, and executes the
/// command if there is one. Returns an error if the application must not start.
pub fn run(config: WaitConfig) -> Result<(), Failure> {
    // The command is looked up first, so that a wrong one fails at once and not after the wait.
    if let Some(file) = config.command.first() {
        command::look_up(file, &config.path)?;
    }
    if let Some(name) = config.no_sidecar {
        exit::stderr_line(&format!("not waiting: {name} declares that there is no sidecar"));
        return command::exec(&config.command);
    }
    let waited = runtime::block_on(&mut Builder::new_current_thread(), async {
        let mut shutdown = Shutdown::new().map_err(|error| Failure::Os(format!("signals: {error}")))?;
        tokio::select! {
            waited = wait(&config, exit::stderr_line) => waited,
            (signal, number) = shutdown.signalled() => Err(Failure::Signal(signal, number)),
        }
    })?;
    exit::stderr_line(&waited);
    command::exec(&config.command)
}

/// Runs the wait. `say` receives each new reason, at most once a second. Returns the line that
/// describes how the wait ended.
async fn wait(config: &WaitConfig, mut say: impl FnMut(&str)) -> Result<String, Failure> {
    let started = Instant::now();
    let mut attempts = Attempts::new(&config.url);
    let mut pauses = RetryPauses::new(config.period);
    let mut accepted = false;
    let mut last_logged: Option<(String, Instant)> = None;
    let mut before: Option<String> = None;
    loop {
        let left = config.timeout.saturating_sub(started.elapsed());
        // With `--timeoutSeconds 0` there is one attempt, which only its own timeout limits.
        let within =
            if config.timeout.is_zero() { config.request_timeout } else { config.request_timeout.min(left) };
        let attempt = attempts.next(within).await;
        let Some(reason) = attempt.reason() else {
            let note = attempt.note().map(|note| format!(", {note}")).unwrap_or_default();
            return Ok(format!("ready after {:.1}s{note}", started.elapsed().as_secs_f64()));
        };
        // An attempt that the overall timeout cut short says less than the previous one.
        let cut_short = within < config.request_timeout && matches!(attempt, Attempt::TimedOut(_));
        let reason = before.take().filter(|_| cut_short).unwrap_or(reason);
        accepted |= attempt.accepted();
        let elapsed = started.elapsed();
        if let Some(outcome) = outcome(config, accepted, elapsed, &reason) {
            return outcome;
        }
        let is_news =
            last_logged.as_ref().is_none_or(|(before, at)| *before != reason && at.elapsed() >= LOG_INTERVAL);
        if is_news {
            say(&reason);
            last_logged = Some((reason.clone(), Instant::now()));
        }
        let mut ends = vec![latest_retry(config.timeout, elapsed)];
        ends.extend(config.optional.filter(|optional| !accepted && *optional > elapsed));
        let left = ends.into_iter().map(|end| end.saturating_sub(elapsed)).min().unwrap_or_default();
        sleep(pauses.after(&attempt).min(left)).await;
        // No time is left for another attempt.
        let elapsed = started.elapsed();
        if elapsed >= config.timeout
            && let Some(outcome) = outcome(config, accepted, elapsed, &reason)
        {
            return outcome;
        }
        before = Some(reason);
    }
}

/// Returns how the wait ends after `elapsed`, if it does: there is no sidecar, or the timeout has
/// expired.
fn outcome(
    config: &WaitConfig,
    accepted: bool,
    elapsed: Duration,
    reason: &str,
) -> Option<Result<String, Failure>> {
    if config.optional.is_some_and(|optional| !accepted && elapsed >= optional) {
        return Some(Ok(format!("no sidecar: {reason} for {:.1}s", elapsed.as_secs_f64())));
    }
    if elapsed < config.timeout {
        return None;
    }
    let line = format!("not ready after {}s: {reason}", config.timeout.as_secs());
    Some(match config.on_timeout {
        OnTimeout::Fail => Err(Failure::Unavailable(line)),
        OnTimeout::Continue => Ok(format!("{line}; continuing without it")),
    })
}

/// Returns the latest end of a pause: early enough for a last response before the timeout, or at
/// the timeout.
fn latest_retry(timeout: Duration, elapsed: Duration) -> Duration {
    let last = timeout.saturating_sub(RESPONSE_MARGIN);
    if elapsed < last { last } else { timeout }
}

struct RetryPauses {
    period: Duration,
    next: Duration,
}

impl RetryPauses {
    fn new(period: Duration) -> Self {
        Self { period, next: FIRST_PAUSE.min(period) }
    }

    fn after(&mut self, attempt: &Attempt) -> Duration {
        match attempt {
            Attempt::Ready { .. }
            | Attempt::NotReady { held: true, .. }
            | Attempt::TimedOut(_)
            | Attempt::WaitParameterRejected(_) => {
                self.next = FIRST_PAUSE.min(self.period);
                Duration::ZERO
            }
            Attempt::Refused | Attempt::Closed => REFUSED_PAUSE.min(self.period),
            // Every lookup that hangs occupies one more thread.
            Attempt::UnknownName | Attempt::NotResolved => self.period,
            Attempt::NotReady { held: false, .. } | Attempt::UnexpectedStatus(_) | Attempt::NotHttp => {
                let pause = self.next;
                self.next = (pause * 2).min(self.period);
                pause
            }
        }
    }
}

#[cfg(test)]
mod tests;
