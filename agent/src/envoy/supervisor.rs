//! The main loop of `run`: it starts and restarts Envoy, handles signals and the orders of the
//! admin server, and performs the drain. [`Drain`] and `Backoff` decide what to do and when.

mod asking;
mod backoff;
mod life;

use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tracing::{error, info, warn};

use super::process::{Ended, EnvoyCommand, reap_strangers};
use crate::address::HttpUrl;
use crate::args::EnvoyRestart;
use crate::awaited_pids::AwaitedPids;
use crate::drain::{Drain, Settings, Step};
use crate::exit::Failure;
use crate::log::Repeated;
use crate::readiness::poller::Observer;
use crate::readiness::{Observation, Ready};
use crate::signals::{Signalled, Signals};
use asking::{Answer, Asking};
use backoff::Backoff;
use life::{Event, Judging, Life, Then};

/// Time for Envoy to exit between SIGTERM and SIGKILL.
const ENVOY_END: Duration = Duration::from_secs(3);
/// Order of the admin server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Drain Envoy and keep running.
    Drain,
    /// Exit without a drain.
    Quit,
}

/// Inputs of the supervisor.
pub struct Parts {
    /// Receives starts, exits and drains.
    pub observer: Arc<Observer>,
    /// URL of Envoy's admin interface; its path is ignored.
    pub admin: HttpUrl,
    pub drain: Settings,
    /// `None` for an external Envoy, which is drained but never started or stopped.
    pub envoy: Option<(EnvoyCommand, EnvoyRestart)>,
    pub orders: mpsc::Receiver<Order>,
    pub signals: Signals,
    /// Child processes that other tasks wait for.
    pub awaited_pids: AwaitedPids,
}

/// Starts Envoy and returns when it has exited, either on request or with a failure. `broken` is
/// the failure of another task, upon which Envoy is stopped gracefully.
pub async fn run(parts: Parts, broken: impl Future<Output = Failure>) -> Result<(), Failure> {
    let Parts { observer, admin, drain, envoy, orders, signals, awaited_pids } = parts;
    let (command, restart) = match envoy {
        Some((command, restart)) => (Some(command), restart),
        None => (None, EnvoyRestart::Never),
    };
    let mut supervisor = Supervisor {
        observer,
        admin,
        path: drain.path(),
        drain: Drain::new(drain),
        command,
        restart,
        life: Life::None,
        was_started: false,
        backoff: Backoff::default(),
        orders,
        signals,
        awaited_pids,
        hang_ups: Repeated::default(),
    };
    let ended = supervisor.watch(broken).await;
    supervisor.observer.tell(Observation::Terminating);
    let grace = if ended.as_ref().is_ok_and(|end| *end == End::Now) { Duration::ZERO } else { ENVOY_END };
    supervisor.end_envoy(grace).await;
    ended.map(|_| ())
}

/// How Envoy is stopped after the loop ended on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Send SIGTERM and wait before SIGKILL.
    InOrder,
    /// Send SIGKILL immediately, because a second signal was received.
    Now,
}

struct Supervisor {
    observer: Arc<Observer>,
    admin: HttpUrl,
    path: &'static str,
    drain: Drain,
    command: Option<EnvoyCommand>,
    restart: EnvoyRestart,
    life: Life,
    was_started: bool,
    backoff: Backoff,
    orders: mpsc::Receiver<Order>,
    signals: Signals,
    awaited_pids: AwaitedPids,
    hang_ups: Repeated,
}

impl Supervisor {
    async fn watch(&mut self, broken: impl Future<Output = Failure>) -> Result<End, Failure> {
        let mut broken = std::pin::pin!(broken);
        let mut asking = Asking::default();
        self.begin()?;
        loop {
            let now = self.observer.now();
            let step = self.drain.next(now);
            let mut wake = self.life.due();
            match step {
                Step::End => return Ok(End::InOrder),
                Step::Wait(until) => wake = Some(wake.map_or(until, |at| at.min(until))),
                Step::Tell | Step::Count => asking.ask(step, &self.admin, self.path),
                Step::Rest => {}
            }
            tokio::select! {
                failure = &mut broken => return Err(failure),
                signal = self.signals.next() => {
                    if let Some(end) = self.signalled(signal) {
                        return Ok(end);
                    }
                }
                Some(order) = self.orders.recv() => match order {
                    Order::Drain => {
                        self.announce_drain("POST /drain");
                        self.drain.begin(self.observer.now());
                    }
                    Order::Quit => return Ok(End::InOrder),
                },
                event = self.life.event() => {
                    let end = match event {
                        Event::Ended(ended) => self.ended(ended)?,
                        Event::Judged(refusal) => self.judged(refusal)?,
                    };
                    if let Some(end) = end {
                        return Ok(end);
                    }
                }
                answer = asking.answer() => self.answered(&answer),
                () = until(wake, now) => self.start_if_due()?,
            }
        }
    }

    /// Starts Envoy, after a validation of its configuration if required.
    fn begin(&mut self) -> Result<(), Failure> {
        let is_judged = self.command.as_ref().is_some_and(|command| command.judge_first);
        if is_judged && self.judge(Then::Start) { Ok(()) } else { self.start() }
    }

    /// Returns false if the validation cannot be started.
    fn judge(&mut self, then: Then) -> bool {
        let life = self.command.as_ref().and_then(|command| Life::judged(command, then));
        let is_judged = life.is_some();
        self.life = life.unwrap_or(Life::None);
        is_judged
    }

    fn start(&mut self) -> Result<(), Failure> {
        let Some(command) = &self.command else { return Ok(()) };
        let process = match command.start() {
            Ok(process) => process,
            Err(error) => {
                let binary = command.binary.display();
                let failure = Failure::Machine(format!("cannot start Envoy {binary}: {error}"));
                return self.not_started(failure);
            }
        };
        info!(pid = process.pid().as_raw(), binary = %command.binary.display(), "envoy started");
        self.was_started = true;
        self.observer.tell(Observation::Started);
        self.life = Life::Running(process, self.observer.now());
        Ok(())
    }

    fn start_if_due(&mut self) -> Result<(), Failure> {
        let is_due = self.life.due().is_some_and(|at| self.observer.now() >= at);
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

    fn start_later(&mut self, lived: Duration) {
        let pause = self.backoff.next(lived, backoff::random());
        info!(seconds = pause.as_secs_f64(), "envoy restart scheduled");
        self.observer.tell(Observation::Restarting);
        self.life = Life::Next(self.observer.now() + pause);
    }

    /// Handles a signal; `Some` ends the loop.
    fn signalled(&mut self, signal: Signalled) -> Option<End> {
        match signal {
            Signalled::End(name) if self.drain.is_leaving() => {
                warn!(signal = name, "second signal received, aborting drain");
                return Some(End::Now);
            }
            Signalled::End(name)
                if !self.observer.look(Ready::was_ready) || matches!(self.life, Life::Judged(_)) =>
            {
                info!(signal = name, "termination requested before Envoy was ready, skipping drain");
                return Some(End::InOrder);
            }
            Signalled::End(name) => {
                self.announce_drain(name);
                self.drain.leave(self.observer.now());
            }
            Signalled::ReopenLogs => {
                if let Life::Running(process, _) = &self.life {
                    process.signal(Signal::SIGUSR1);
                }
            }
            Signalled::HangUp => {
                if let Some(times) = self.hang_ups.came(Instant::now()) {
                    info!(times, "SIGHUP ignored: the configuration is read only at startup");
                }
            }
            Signalled::Child => self.reap(),
        }
        None
    }

    fn announce_drain(&self, why: &str) {
        info!(why, "drain started");
        self.observer.tell(Observation::Draining);
    }

    fn reap(&self) {
        reap_strangers(&[self.life.pids(), self.awaited_pids.pids()].concat());
    }

    /// Handles the exit of Envoy, or of the script that started it. `Some` means that the exit was
    /// expected.
    fn ended(&mut self, ended: Ended) -> Result<Option<End>, Failure> {
        let lived = match std::mem::replace(&mut self.life, Life::None) {
            Life::Running(process, since) => {
                // An Envoy that a script started would otherwise keep the ports, next to its
                // successor.
                process.signal(Signal::SIGKILL);
                self.observer.now().saturating_sub(since)
            }
            _ => Duration::ZERO,
        };
        self.observer.tell(Observation::Exited);
        self.observer.metrics().envoy_ended(ended, self.drain.is_leaving());
        self.reap();
        if self.drain.is_leaving() {
            info!(%ended, "envoy exited during the drain");
            return Ok(Some(End::InOrder));
        }
        error!(%ended, seconds = lived.as_secs_f64(), "envoy exited unexpectedly");
        let is_judged = self.command.as_ref().is_some_and(|command| command.judge_first);
        let was_live = self.observer.look(Ready::was_live);
        if !was_live && !is_judged && self.judge(Then::Over(ended, lived)) {
            return Ok(None);
        }
        self.over(ended, lived)
    }

    /// Handles the end of a validation; without a result the configuration counts as valid.
    fn judged(&mut self, refusal: Option<String>) -> Result<Option<End>, Failure> {
        let judged = std::mem::replace(&mut self.life, Life::None);
        self.reap();
        let refused = |words| Failure::Usage(format!("Envoy rejected its configuration: {words}"));
        match (judged, refusal) {
            (Life::Judged(Judging { then: Then::Over(ended, lived), .. }), None) => self.over(ended, lived),
            (Life::Judged(Judging { then: Then::Over(..), .. }), Some(words)) => Err(refused(words)),
            (_, Some(words)) => self.not_started(refused(words)).map(|()| None),
            (_, None) => self.start().map(|()| None),
        }
    }

    /// Handles an unexpected exit of Envoy.
    fn over(&mut self, ended: Ended, lived: Duration) -> Result<Option<End>, Failure> {
        match self.restart {
            EnvoyRestart::Never => Err(Failure::Ended(format!("Envoy exited unexpectedly, {ended}"))),
            EnvoyRestart::Always => {
                self.start_later(lived);
                Ok(None)
            }
        }
    }

    fn answered(&mut self, answer: &Answer) {
        match answer {
            Answer::Told(understood) => {
                if !understood {
                    warn!("envoy admin did not accept the drain request");
                }
                self.drain.told(*understood);
            }
            Answer::Counted(connections) => {
                info!(?connections, "application connections counted");
                self.drain.counted(*connections, self.observer.now());
            }
        }
    }

    async fn end_envoy(&mut self, grace: Duration) {
        let Life::Running(process, _) = &mut self.life else { return };
        if let Some(ended) = life::end(process, grace, &mut self.signals).await {
            self.observer.metrics().envoy_ended(ended, true);
            info!(%ended, "envoy exited");
        }
    }
}

async fn until(wake: Option<Duration>, now: Duration) {
    match wake {
        Some(at) => sleep(at.saturating_sub(now)).await,
        None => std::future::pending().await,
    }
}
