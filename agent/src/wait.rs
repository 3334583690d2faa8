//! The command `wait`: asks until the sidecar is ready, then ends or becomes the application.

mod attempt;
mod command;

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::args::OnTimeout;
use crate::config::WaitConfig;
use crate::exit::{self, Failure};
use crate::runtime;
use crate::shutdown::Shutdown;
use attempt::{ANSWER_TIME, Attempt, Attempts};

/// Between two lines about reasons at least.
const LINE: Duration = Duration::from_secs(1);
/// After a refusal: it costs nobody anything, and the sidecar may be there any moment.
const REFUSED_PAUSE: Duration = Duration::from_millis(10);
/// After an early answer, doubling to the period.
const FIRST_PAUSE: Duration = Duration::from_millis(25);

/// Waits, says on stderr why not yet and how it ended, and becomes the command if there is one. Returns an error if the application
/// must not start.
pub fn run(config: WaitConfig) -> Result<(), Failure> {
    // First, so that a mistake shows at once and not after a minute.
    if let Some(file) = config.command.first() {
        command::look_up(file, &config.path)?;
    }
    if let Some(name) = config.no_sidecar {
        exit::stderr_line(&format!("not waiting: {name} says that there is no sidecar"));
        return command::become_it(&config.command);
    }
    let waited = runtime::block_on(async {
        let mut shutdown = Shutdown::new().map_err(|error| Failure::Machine(format!("signals: {error}")))?;
        tokio::select! {
            waited = wait(&config, exit::stderr_line) => waited,
            (signal, number) = shutdown.signalled() => Err(Failure::Signal(signal, number)),
        }
    })?;
    exit::stderr_line(&waited);
    command::become_it(&config.command)
}

/// The wait itself. `say` gets each new reason, once a second at most. The result is the line that tells how it ended.
async fn wait(config: &WaitConfig, mut say: impl FnMut(&str)) -> Result<String, Failure> {
    let started = Instant::now();
    let mut attempts = Attempts::new(&config.url);
    let mut pauses = Pauses::new(config.period);
    let mut accepted = false;
    let mut said: Option<(String, Instant)> = None;
    let mut before: Option<String> = None;
    loop {
        let left = config.timeout.saturating_sub(started.elapsed());
        // One try alone has no other end than its own.
        let within =
            if config.timeout.is_zero() { config.request_timeout } else { config.request_timeout.min(left) };
        let attempt = attempts.next(within).await;
        let Some(reason) = attempt.reason() else {
            return Ok(format!("ready after {:.1}s", started.elapsed().as_secs_f64()));
        };
        // A question that the end cut short says less than the one before it.
        let cut_short = within < config.request_timeout && matches!(attempt, Attempt::Silent(_));
        let reason = before.take().filter(|_| cut_short).unwrap_or(reason);
        accepted |= attempt.accepted();
        let elapsed = started.elapsed();
        if let Some(end) = end(config, accepted, elapsed, &reason) {
            return end;
        }
        let is_news = said.as_ref().is_none_or(|(before, at)| *before != reason && at.elapsed() >= LINE);
        if is_news {
            say(&reason);
            said = Some((reason.clone(), Instant::now()));
        }
        let mut ends = vec![last_try(config.timeout, elapsed)];
        ends.extend(config.optional.filter(|optional| !accepted && *optional > elapsed));
        let left = ends.into_iter().map(|end| end.saturating_sub(elapsed)).min().unwrap_or_default();
        sleep(pauses.after(&attempt).min(left)).await;
        // No time is left for another question.
        let elapsed = started.elapsed();
        if elapsed >= config.timeout
            && let Some(end) = end(config, accepted, elapsed, &reason)
        {
            return end;
        }
        before = Some(reason);
    }
}

/// How the wait ends after `elapsed`, if it does: there is no sidecar, or the time is over.
fn end(
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
        OnTimeout::Continue => Ok(format!("{line}; going on all the same")),
    })
}

/// When a pause is over at the latest: early enough for a last answer before the end, or at the end.
fn last_try(timeout: Duration, elapsed: Duration) -> Duration {
    let last = timeout.saturating_sub(ANSWER_TIME);
    if elapsed < last { last } else { timeout }
}

/// How long to wait before the next attempt.
struct Pauses {
    period: Duration,
    next: Duration,
}

impl Pauses {
    fn new(period: Duration) -> Self {
        Self { period, next: FIRST_PAUSE.min(period) }
    }

    fn after(&mut self, attempt: &Attempt) -> Duration {
        match attempt {
            Attempt::Ready
            | Attempt::NotReady { held: true, .. }
            | Attempt::Silent(_)
            | Attempt::KeyRefused(_) => {
                self.next = FIRST_PAUSE.min(self.period);
                Duration::ZERO
            }
            Attempt::Refused | Attempt::Closed => REFUSED_PAUSE.min(self.period),
            // A resolver that hangs is asked by one thread more each time.
            Attempt::UnknownName | Attempt::NotResolved => self.period,
            Attempt::NotReady { held: false, .. } | Attempt::Answers(_) | Attempt::NotHttp => {
                let pause = self.next;
                self.next = (pause * 2).min(self.period);
                pause
            }
        }
    }
}

#[cfg(test)]
mod tests;
