//! Starts, validates and restarts Envoy, and handles its exit.

use std::time::Duration;

use nix::sys::signal::Signal;
use tracing::{error, info, warn};

use super::envoy_state::{AfterValidation, EnvoyState};

use super::{Stop, Supervisor};
use crate::envoy_files::{EnvoyFiles, Fallback};
use crate::process::reap_orphans;
use crate::random;
use crate::restart_policy::Decision;
use agent_output::exit::Failure;
use agent_state::exit_reason::ExitReason;
use agent_state::metrics::ExitCause;
use readiness::{Observation, Readiness};

impl Supervisor {
    /// Starts Envoy, after a validation of its configuration if required.
    pub(super) fn begin(&mut self) -> Result<(), Failure> {
        let validates_first = self.command.as_ref().is_some_and(|command| command.validate_first);
        if validates_first && self.validate(AfterValidation::Start) { Ok(()) } else { self.start() }
    }

    /// Returns false if the validation cannot be started.
    fn validate(&mut self, then: AfterValidation) -> bool {
        let envoy = self.command.as_ref().and_then(|command| EnvoyState::validate(command, then));
        let is_started = envoy.is_some();
        self.envoy = envoy.unwrap_or(EnvoyState::Stopped);
        is_started
    }

    fn start(&mut self) -> Result<(), Failure> {
        let Some(command) = &self.command else { return Ok(()) };
        let process = match command.start(self.state.metrics()) {
            Ok(process) => process,
            Err(error) => {
                let binary = command.binary.display();
                let failure = Failure::Os(format!("cannot start Envoy {binary}: {error}"));
                return self.not_started(failure);
            }
        };
        info!(pid = process.pid().as_raw(), binary = %command.binary.display(), "envoy started");
        self.was_started = true;
        self.is_hung = false;
        self.is_replaced = false;
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
        self.restart_or(Duration::ZERO, |_| failure)
    }

    /// Schedules the next start of Envoy after one that ran for `run_time`, or returns the failure,
    /// given the number of restarts that preceded.
    fn restart_or(
        &mut self,
        run_time: Duration,
        failure: impl FnOnce(usize) -> Failure,
    ) -> Result<(), Failure> {
        let now = self.state.now();
        match self.restarts.after_exit(run_time, now, random::generator().f64()) {
            Decision::GiveUp(restarts) => Err(failure(restarts)),
            Decision::Restart(pause) => {
                info!(seconds = pause.as_secs_f64(), "envoy restart scheduled");
                self.state.apply(Observation::Restarting);
                self.envoy = EnvoyState::Restarting(now + pause);
                Ok(())
            }
        }
    }

    /// Kills an Envoy that does not respond; what follows is that of any other exit.
    pub(super) fn kill_hung(&mut self) {
        let EnvoyState::Running(process, _) = &self.envoy else { return };
        error!(
            pid = process.pid().as_raw(),
            seconds = self.hang_limit.unwrap_or_default().as_secs(),
            "envoy killed: neither its probe listener nor its admin interface responded; --envoy-hang-seconds is the limit"
        );
        process.signal(Signal::SIGKILL);
        self.is_hung = true;
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
        self.state.envoy_exited(match () {
            () if self.is_hung => ExitCause::Hung,
            () if self.is_replaced || self.drain.is_shutting_down() => ExitCause::Requested,
            () => ExitCause::Unexpected(reason),
        });
        self.reap();
        if self.drain.is_shutting_down() {
            info!(status = %reason, "envoy exited during the drain");
            return Ok(Some(Stop::Graceful));
        }
        if self.is_replaced && !self.is_hung {
            info!(status = %reason, "envoy stopped to reverse its drain");
            return self.begin().map(|()| None);
        }
        error!(status = %reason, seconds = run_time.as_secs_f64(), "envoy exited unexpectedly");
        let validates_first = self.command.as_ref().is_some_and(|command| command.validate_first);
        let was_live = self.state.with_readiness(Readiness::was_live);
        if was_live {
            // Envoy has accepted this form of the filter, so a later error has another cause.
            self.fallback = None;
        }
        if !was_live && !validates_first && self.validate(AfterValidation::HandleExit(reason, run_time)) {
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
        if let Some(error) = &error
            && let Some(fallback) = self.fallback.take()
        {
            warn!(error, "envoy rejected its configuration, trying the wasm form of the filter");
            self.fall_back(fallback)?;
            return self.begin().map(|()| None);
        }
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

    fn fall_back(&mut self, fallback: Fallback) -> Result<(), Failure> {
        let EnvoyFiles { arguments, debug_info } = fallback.write()?;
        if let Some(choice) = debug_info.filter {
            self.state.metrics().filter_chosen(choice);
        }
        if let Some(command) = &mut self.command {
            command.configuration = arguments;
        }
        self.debug_info.send_replace(debug_info);
        Ok(())
    }

    fn on_unexpected_exit(
        &mut self,
        reason: ExitReason,
        run_time: Duration,
    ) -> Result<Option<Stop>, Failure> {
        let what = match self.hang_limit.filter(|_| self.is_hung) {
            Some(limit) => format!("Envoy did not respond for {} s and was killed", limit.as_secs()),
            None => format!("Envoy exited unexpectedly, {reason}"),
        };
        let failure = |restarts| {
            Failure::Software(match restarts {
                0 => what,
                _ => format!(
                    "{what}, after {restarts} restarts; the log of this container has the cause of each"
                ),
            })
        };
        self.restart_or(run_time, failure).map(|()| None)
    }
}
