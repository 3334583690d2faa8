//! Starts, validates and restarts Envoy, and handles its exit.

use std::time::Duration;

use nix::sys::signal::Signal;
use tracing::{error, info};

use super::envoy_state::{AfterValidation, EnvoyState};
use super::{Stop, Supervisor};
use crate::args::EnvoyRestart;
use crate::envoy::process::{ExitReason, reap_orphans};
use crate::exit::Failure;
use crate::random;
use crate::readiness::{Observation, Readiness};

impl Supervisor {
    /// Starts Envoy, after a validation of its configuration if required.
    pub(super) fn begin(&mut self) -> Result<(), Failure> {
        let is_validated = self.command.as_ref().is_some_and(|command| command.validate_first);
        if is_validated && self.validate(AfterValidation::Start) { Ok(()) } else { self.start() }
    }

    /// Returns false if the validation cannot be started.
    fn validate(&mut self, then: AfterValidation) -> bool {
        let envoy = self.command.as_ref().and_then(|command| EnvoyState::validate(command, then));
        let is_validated = envoy.is_some();
        self.envoy = envoy.unwrap_or(EnvoyState::Stopped);
        is_validated
    }

    fn start(&mut self) -> Result<(), Failure> {
        let Some(command) = &self.command else { return Ok(()) };
        let process = match command.start() {
            Ok(process) => process,
            Err(error) => {
                let binary = command.binary.display();
                let failure = Failure::Os(format!("cannot start Envoy {binary}: {error}"));
                return self.not_started(failure);
            }
        };
        info!(pid = process.pid().as_raw(), binary = %command.binary.display(), "envoy started");
        self.was_started = true;
        self.state.apply(Observation::Started);
        self.envoy = EnvoyState::Running(process, self.state.now());
        Ok(())
    }

    pub(super) fn start_if_due(&mut self) -> Result<(), Failure> {
        let is_due = self.envoy.due().is_some_and(|at| self.state.now() >= at);
        if is_due { self.begin() } else { Ok(()) }
    }

    /// Handles a failure to start Envoy. The first start must succeed; a later failure may be
    /// temporary, such as a lack of file descriptors.
    fn not_started(&mut self, failure: Failure) -> Result<(), Failure> {
        if !self.was_started {
            return Err(failure);
        }
        error!("{failure}");
        self.start_later(Duration::ZERO);
        Ok(())
    }

    fn start_later(&mut self, run_time: Duration) {
        self.backoff.reset_after(run_time);
        let pause = self.backoff.next_with_jitter(Duration::ZERO, random::generator().f64());
        info!(seconds = pause.as_secs_f64(), "envoy restart scheduled");
        self.state.apply(Observation::Restarting);
        self.envoy = EnvoyState::Restarting(self.state.now() + pause);
    }

    pub(super) fn reap(&self) {
        reap_orphans(&[self.envoy.pids(), self.awaited_pids.pids()].concat());
    }

    /// Handles the exit of Envoy, or of the script that started it. `Some` means that the exit was
    /// expected.
    pub(super) fn on_exit(&mut self, reason: ExitReason) -> Result<Option<Stop>, Failure> {
        let run_time = match std::mem::replace(&mut self.envoy, EnvoyState::Stopped) {
            EnvoyState::Running(process, since) => {
                // An Envoy that a script started would otherwise keep the ports, next to its
                // successor.
                process.signal(Signal::SIGKILL);
                self.state.now().saturating_sub(since)
            }
            _ => Duration::ZERO,
        };
        self.state.apply(Observation::Exited);
        self.state.metrics().envoy_exited(reason, self.drain.is_shutting_down());
        self.reap();
        if self.drain.is_shutting_down() {
            info!(status = %reason, "envoy exited during the drain");
            return Ok(Some(Stop::Graceful));
        }
        error!(status = %reason, seconds = run_time.as_secs_f64(), "envoy exited unexpectedly");
        let is_validated = self.command.as_ref().is_some_and(|command| command.validate_first);
        let was_live = self.state.with_readiness(Readiness::was_live);
        if !was_live && !is_validated && self.validate(AfterValidation::HandleExit(reason, run_time)) {
            return Ok(None);
        }
        self.on_unexpected_exit(reason, run_time)
    }

    /// Handles the end of a validation; without a result the configuration counts as valid.
    pub(super) fn on_validated(&mut self, error: Option<String>) -> Result<Option<Stop>, Failure> {
        let state = std::mem::replace(&mut self.envoy, EnvoyState::Stopped);
        self.reap();
        let then = match state {
            EnvoyState::Validating(validation) => validation.then,
            _ => AfterValidation::Start,
        };
        let error = error.map(|error| Failure::Usage(format!("Envoy rejected its configuration: {error}")));
        match (then, error) {
            (AfterValidation::HandleExit(reason, run_time), None) => {
                self.on_unexpected_exit(reason, run_time)
            }
            (AfterValidation::HandleExit(..), Some(error)) => Err(error),
            (AfterValidation::Start, Some(error)) => self.not_started(error).map(|()| None),
            (AfterValidation::Start, None) => self.start().map(|()| None),
        }
    }

    fn on_unexpected_exit(
        &mut self,
        reason: ExitReason,
        run_time: Duration,
    ) -> Result<Option<Stop>, Failure> {
        match self.restart {
            EnvoyRestart::Never => Err(Failure::Software(format!("Envoy exited unexpectedly, {reason}"))),
            EnvoyRestart::Always => {
                self.start_later(run_time);
                Ok(None)
            }
        }
    }
}
