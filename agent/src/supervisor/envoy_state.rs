//! The supervised Envoy process or validation, its events, and how it is stopped.

use std::pin::Pin;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tokio::time::{sleep, timeout};
use tracing::warn;

use crate::envoy::one_shot::Validation;
use crate::envoy::process::{Ended, EnvoyCommand, EnvoyProcess, reap_strangers};
use crate::signals::Signals;

/// Time for the kernel to end Envoy after SIGKILL.
const KILLED: Duration = Duration::from_secs(1);
/// Interval between two checks of the process group of a script that has exited.
const GROUP: Duration = Duration::from_millis(20);

/// State of the supervised Envoy.
pub(super) enum Life {
    /// No Envoy runs, or Envoy is external.
    None,
    /// Envoy runs since this time.
    Running(EnvoyProcess, Duration),
    /// A validation of the configuration runs.
    Judged(Judging),
    /// Envoy is started again at this time.
    Next(Duration),
}

/// Validation of the configuration.
pub(super) struct Judging {
    pid: Pid,
    refusal: Pin<Box<dyn Future<Output = Option<String>> + Send>>,
    /// Action after the validation.
    pub(super) then: Then,
}

/// Action if the validation does not reject the configuration.
#[derive(Debug, Clone, Copy)]
pub(super) enum Then {
    Start,
    /// Handle the exit of Envoy, which had another cause, given its exit status and run time.
    Over(Ended, Duration),
}

/// Event of the supervised process.
pub(super) enum Event {
    Ended(Ended),
    /// The validation ended, with Envoy's error message if it rejected the configuration.
    Judged(Option<String>),
}

impl Life {
    /// Starts a validation of the configuration of `command`; `None` if no process can be started.
    pub(super) fn judged(command: &EnvoyCommand, then: Then) -> Option<Self> {
        let validation = Validation::start(command).ok()?;
        Some(Self::Judged(Judging { pid: validation.pid(), refusal: Box::pin(validation.refusal()), then }))
    }

    /// Returns the processes that this state waits for.
    pub(super) fn pids(&self) -> Vec<Pid> {
        match self {
            Self::Running(process, _) => vec![process.pid()],
            Self::Judged(judging) => vec![judging.pid],
            Self::None | Self::Next(_) => Vec::new(),
        }
    }

    /// Returns the time at which Envoy is started again.
    pub(super) fn due(&self) -> Option<Duration> {
        match self {
            Self::Next(at) => Some(*at),
            _ => None,
        }
    }

    /// Waits for the next event. The future is cancel safe.
    pub(super) async fn event(&mut self) -> Event {
        match self {
            Self::Running(process, _) => Event::Ended(process.ended().await),
            Self::Judged(judging) => Event::Judged(judging.refusal.as_mut().await),
            Self::None | Self::Next(_) => std::future::pending().await,
        }
    }
}

/// Stops Envoy with SIGTERM, and with SIGKILL after `grace` or when a signal requests termination.
/// `None` means that it was killed.
pub(super) async fn end(process: &mut EnvoyProcess, grace: Duration, signals: &mut Signals) -> Option<Ended> {
    if !grace.is_zero() {
        let own = [process.pid()];
        process.signal(Signal::SIGTERM);
        let ended = tokio::select! {
            ended = timeout(grace, whole_group_ended(process)) => ended.ok(),
            () = signals.end(|| reap_strangers(&own)) => None,
        };
        if ended.is_some() {
            return ended;
        }
    }
    warn!("envoy killed with SIGKILL");
    process.signal(Signal::SIGKILL);
    let _ = timeout(KILLED, process.ended()).await;
    None
}

/// Waits until all processes of the group have exited.
async fn whole_group_ended(process: &mut EnvoyProcess) -> Ended {
    let ended = process.ended().await;
    while process.has_group() {
        sleep(GROUP).await;
        reap_strangers(&[]);
    }
    ended
}
