//! The main loop of `run`: Envoy's lives one after another, signals, orders of the local port, and the drain. What to do when is
//! decided by values ([`Drain`], `Backoff`); here it is done.

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
use crate::children::Children;
use crate::drain::{Drain, Settings, Step};
use crate::exit::Failure;
use crate::log::Repeated;
use crate::readiness::poller::Observer;
use crate::readiness::{Observation, Ready};
use crate::signals::{Signalled, Signals};
use asking::{Answer, Asking};
use backoff::Backoff;
use life::{Event, Judging, Life, Then};

/// What Envoy gets between SIGTERM and SIGKILL.
const ENVOY_END: Duration = Duration::from_secs(3);
/// What the local port may order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Drain Envoy, and stay.
    Drain,
    /// End without a drain.
    Quit,
}

/// What the loop is made of.
pub struct Parts {
    /// Hears of starts, ends, drains.
    pub observer: Arc<Observer>,
    /// Envoy's admin port; the path does not matter.
    pub admin: HttpUrl,
    /// How Envoy is drained.
    pub drain: Settings,
    /// Absent: somebody else's Envoy, which is told to drain and nothing more.
    pub envoy: Option<(EnvoyCommand, EnvoyRestart)>,
    /// From the local port.
    pub orders: mpsc::Receiver<Order>,
    /// From the system.
    pub signals: Signals,
    /// Those that other parts wait for.
    pub children: Children,
}

/// Starts Envoy and returns when it has ended: as asked, or with a reason. `broken` is another part's failure, which ends Envoy in
/// order.
pub async fn run(parts: Parts, broken: impl Future<Output = Failure>) -> Result<(), Failure> {
    let Parts { observer, admin, drain, envoy, orders, signals, children } = parts;
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
        children,
        hang_ups: Repeated::default(),
    };
    let ended = supervisor.watch(broken).await;
    supervisor.observer.tell(Observation::Terminating);
    let grace = if ended.as_ref().is_ok_and(|end| *end == End::Now) { Duration::ZERO } else { ENVOY_END };
    supervisor.end_envoy(grace).await;
    ended.map(|_| ())
}

/// How the loop ended, as asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// Envoy may end in order.
    InOrder,
    /// A second signal: at once.
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
    children: Children,
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

    /// Starts an Envoy, after its configuration was judged if need be.
    fn begin(&mut self) -> Result<(), Failure> {
        let is_judged = self.command.as_ref().is_some_and(|command| command.judge_first);
        if is_judged && self.judge(Then::Start) { Ok(()) } else { self.start() }
    }

    /// `false`: nobody can be started who would judge it.
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
                let failure = Failure::Machine(format!("cannot start Envoy, {binary}: {error}"));
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

    /// What kept an Envoy from its start ends the agent if it was the first one. Later it may pass, as a want of descriptors does.
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
        info!(seconds = pause.as_secs_f64(), "envoy will be started again");
        self.observer.tell(Observation::Restarting);
        self.life = Life::Next(self.observer.now() + pause);
    }

    /// `Some`: the loop is over.
    fn signalled(&mut self, signal: Signalled) -> Option<End> {
        match signal {
            Signalled::End(name) if self.drain.is_leaving() => {
                warn!(signal = name, "a second signal: the drain is cut short");
                return Some(End::Now);
            }
            Signalled::End(name)
                if !self.observer.look(Ready::was_ready) || matches!(self.life, Life::Judged(_)) =>
            {
                info!(signal = name, "terminating; envoy was not ready yet, so nothing is drained");
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
                    info!(times, "SIGHUP is ignored: the configuration is read at the start alone");
                }
            }
            Signalled::Child => self.reap(),
        }
        None
    }

    fn announce_drain(&self, why: &str) {
        info!(why, "draining");
        self.observer.tell(Observation::Draining);
    }

    fn reap(&self) {
        reap_strangers(&[self.life.pids(), self.children.pids()].concat());
    }

    /// Envoy is gone, or the script that started it. `Some`: that was to be expected.
    fn ended(&mut self, ended: Ended) -> Result<Option<End>, Failure> {
        let lived = match std::mem::replace(&mut self.life, Life::None) {
            Life::Running(process, since) => {
                // An Envoy behind a script would keep the ports, beside the next one and for ever.
                process.signal(Signal::SIGKILL);
                self.observer.now().saturating_sub(since)
            }
            _ => Duration::ZERO,
        };
        self.observer.tell(Observation::Exited);
        self.observer.metrics().envoy_ended(ended, self.drain.is_leaving());
        self.reap();
        if self.drain.is_leaving() {
            info!(%ended, "envoy ended during the drain");
            return Ok(Some(End::InOrder));
        }
        error!(%ended, seconds = lived.as_secs_f64(), "envoy ended unasked");
        let is_judged = self.command.as_ref().is_some_and(|command| command.judge_first);
        let was_live = self.observer.look(Ready::was_live);
        if !was_live && !is_judged && self.judge(Then::Over(ended, lived)) {
            return Ok(None);
        }
        self.over(ended, lived)
    }

    /// Whether Envoy takes its configuration is known now, if it can be.
    fn judged(&mut self, refusal: Option<String>) -> Result<Option<End>, Failure> {
        let judged = std::mem::replace(&mut self.life, Life::None);
        self.reap();
        let refused = |words| Failure::Usage(format!("Envoy refuses its configuration: {words}"));
        match (judged, refusal) {
            (Life::Judged(Judging { then: Then::Over(ended, lived), .. }), None) => self.over(ended, lived),
            (Life::Judged(Judging { then: Then::Over(..), .. }), Some(words)) => Err(refused(words)),
            (_, Some(words)) => self.not_started(refused(words)).map(|()| None),
            (_, None) => self.start().map(|()| None),
        }
    }

    /// A life ended unasked.
    fn over(&mut self, ended: Ended, lived: Duration) -> Result<Option<End>, Failure> {
        match self.restart {
            EnvoyRestart::Never => Err(Failure::Ended(format!("Envoy ended unasked, {ended}"))),
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
                    warn!("envoy admin was told to drain the listeners, and did not answer");
                }
                self.drain.told(*understood);
            }
            Answer::Counted(connections) => {
                info!(?connections, "open connections of the application");
                self.drain.counted(*connections, self.observer.now());
            }
        }
    }

    async fn end_envoy(&mut self, grace: Duration) {
        let Life::Running(process, _) = &mut self.life else { return };
        if let Some(ended) = life::end(process, grace, &mut self.signals).await {
            self.observer.metrics().envoy_ended(ended, true);
            info!(%ended, "envoy ended");
        }
    }
}

async fn until(wake: Option<Duration>, now: Duration) {
    match wake {
        Some(at) => sleep(at.saturating_sub(now)).await,
        None => std::future::pending().await,
    }
}
