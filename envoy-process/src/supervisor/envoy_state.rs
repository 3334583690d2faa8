//! The supervised Envoy process or validation, its events, and how it is stopped.

use std::pin::Pin;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tokio::time::{sleep, timeout};
use tracing::warn;

use crate::one_shot::Validation;
use crate::process::{EnvoyCommand, EnvoyProcess, reap_orphans};
use crate::signals::Signals;
use agent_state::exit_reason::ExitReason;

/// Time for the kernel to end Envoy after SIGKILL.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);
/// Interval between two checks of the process group of a script that has exited.
const GROUP_POLL_INTERVAL: Duration = Duration::from_millis(20);

pub(super) enum EnvoyState {
    /// No Envoy runs, or Envoy is external.
    Stopped,
    /// Envoy runs since this time.
    Running(EnvoyProcess, Duration),
    Validating(PendingValidation),
    /// Envoy is started again at this time.
    Restarting(Duration),
}

pub(super) struct PendingValidation {
    pid: Pid,
    error: Pin<Box<dyn Future<Output = Option<String>> + Send>>,
    pub(super) then: AfterValidation,
}

/// Action if the validation does not reject the configuration.
#[derive(Debug, Clone, Copy)]
pub(super) enum AfterValidation {
    Start,
    /// Handle the exit of Envoy, which had another cause, given its exit status and run time.
    HandleExit(ExitReason, Duration),
}

pub(super) enum Event {
    Exited(ExitReason),
    /// The validation ended, with Envoy's error message if it rejected the configuration.
    Validated(Option<String>),
}

impl EnvoyState {
    /// Starts a validation of the configuration of `command`; `None` if no process can be started.
    pub(super) fn validate(command: &EnvoyCommand, then: AfterValidation) -> Option<Self> {
        let validation = Validation::start(command).ok()?;
        Some(Self::Validating(PendingValidation {
            pid: validation.pid(),
            error: Box::pin(validation.error()),
            then,
        }))
    }

    pub(super) fn pids(&self) -> Vec<Pid> {
        match self {
            Self::Running(process, _) => vec![process.pid()],
            Self::Validating(validation) => vec![validation.pid],
            Self::Stopped | Self::Restarting(_) => Vec::new(),
        }
    }

    pub(super) fn due(&self) -> Option<Duration> {
        match self {
            Self::Restarting(at) => Some(*at),
            _ => None,
        }
    }

    /// Waits for the next event. The future is cancel safe.
    pub(super) async fn event(&mut self) -> Event {
        match self {
            Self::Running(process, _) => Event::Exited(process.wait().await),
            Self::Validating(validation) => Event::Validated(validation.error.as_mut().await),
            Self::Stopped | Self::Restarting(_) => std::future::pending().await,
        }
    }
}

/// Stops Envoy with SIGTERM, and with SIGKILL after `grace` or when a signal requests termination.
/// `None` means that it was killed.
pub(super) async fn stop(
    process: &mut EnvoyProcess,
    grace: Duration,
    signals: &mut Signals,
) -> Option<ExitReason> {
    if !grace.is_zero() {
        let own = [process.pid()];
        process.signal(Signal::SIGTERM);
        let reason = tokio::select! {
            reason = timeout(grace, wait_for_group(process)) => reason.ok(),
            _ = signals.wait_for_termination(|| reap_orphans(&own)) => None,
        };
        if reason.is_some() {
            return reason;
        }
    }
    warn!("envoy killed with SIGKILL");
    process.signal(Signal::SIGKILL);
    let _ = timeout(KILL_TIMEOUT, process.wait()).await;
    None
}

async fn wait_for_group(process: &mut EnvoyProcess) -> ExitReason {
    let reason = process.wait().await;
    while process.has_group() {
        sleep(GROUP_POLL_INTERVAL).await;
        reap_orphans(&[]);
    }
    reason
}
