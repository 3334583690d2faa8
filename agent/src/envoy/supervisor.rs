//! The main loop of `run`: Envoy's lives one after another, signals, orders of the local port, and the drain. What to do when is
//! decided by values ([`Drain`], `Backoff`); here it is done.

mod backoff;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tracing::{error, info, warn};

use super::admin;
use super::process::{Ended, EnvoyCommand, EnvoyProcess, reap_strangers};
use super::question::Validation;
use crate::address::HttpUrl;
use crate::args::EnvoyRestart;
use crate::drain::{Drain, Settings, Step};
use crate::exit::Failure;
use crate::log::Repeated;
use crate::readiness::poller::Observer;
use crate::readiness::{Observation, Ready};
use crate::signals::{Signalled, Signals};
use backoff::Backoff;

/// Of one question of a drain to the admin port.
const DRAIN_QUESTION: Duration = Duration::from_secs(1);
/// What Envoy gets between SIGTERM and SIGKILL.
const ENVOY_END: Duration = Duration::from_secs(3);
/// What the kernel gets to take it away after SIGKILL.
const ENVOY_KILLED: Duration = Duration::from_secs(1);
/// Between two looks at what a script that has ended left in its process group.
const GROUP: Duration = Duration::from_millis(20);

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
}

/// Starts Envoy and returns when it has ended: as asked, or with a reason. `broken` is another part's failure, which ends Envoy in
/// order.
pub async fn run(parts: Parts, broken: impl Future<Output = Failure>) -> Result<(), Failure> {
    let Parts { observer, admin, drain, envoy, orders, signals } = parts;
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

/// The Envoy of this moment.
enum Life {
    /// There is none, or it is somebody else's.
    None,
    Running(EnvoyProcess, Duration),
    /// Another one judges the configuration.
    Judged(Judging),
    /// The next one is started then.
    Next(Duration),
}

struct Judging {
    pid: Pid,
    refusal: Pin<Box<dyn Future<Output = Option<String>> + Send>>,
    then: Then,
}

/// What follows if the configuration is not refused.
#[derive(Debug, Clone, Copy)]
enum Then {
    Start,
    /// Its Envoy has ended, so that something else was wrong. And how long it lived.
    Over(Ended, Duration),
}

/// What an Envoy's life comes to.
enum Event {
    Ended(Ended),
    Judged(Option<String>),
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
    hang_ups: Repeated,
}

/// An answer to a drain's question.
enum Answer {
    Told(bool),
    Counted(Option<u64>),
}

type Asking = Pin<Box<dyn Future<Output = Answer> + Send>>;

impl Supervisor {
    async fn watch(&mut self, broken: impl Future<Output = Failure>) -> Result<End, Failure> {
        let mut broken = std::pin::pin!(broken);
        let mut asking: Option<Asking> = None;
        self.begin()?;
        loop {
            let now = self.observer.now();
            let step = self.drain.next(now);
            let mut wake = match self.life {
                Life::Next(at) => Some(at),
                _ => None,
            };
            match step {
                Step::End => return Ok(End::InOrder),
                Step::Wait(until) => wake = Some(wake.map_or(until, |at| at.min(until))),
                Step::Tell | Step::Count if asking.is_none() => asking = Some(self.ask(step)),
                Step::Tell | Step::Count | Step::Rest => {}
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
                event = event(&mut self.life) => {
                    let end = match event {
                        Event::Ended(ended) => self.ended(ended)?,
                        Event::Judged(refusal) => self.judged(refusal)?,
                    };
                    if let Some(end) = end {
                        return Ok(end);
                    }
                }
                answer = answered(&mut asking) => {
                    asking = None;
                    self.answered(&answer);
                }
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
        let Some(validation) = self.command.as_ref().and_then(|command| Validation::start(command).ok())
        else {
            return false;
        };
        let pid = validation.pid();
        self.life = Life::Judged(Judging { pid, refusal: Box::pin(validation.refusal()), then });
        true
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
        match self.life {
            Life::Next(at) if self.observer.now() >= at => self.begin(),
            _ => Ok(()),
        }
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
        let own: Vec<_> = match &self.life {
            Life::Running(process, _) => vec![process.pid()],
            Life::Judged(judging) => vec![judging.pid],
            _ => Vec::new(),
        };
        reap_strangers(&own);
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

    fn ask(&self, step: Step) -> Asking {
        let (admin, path) = (self.admin.clone(), self.path);
        match step {
            Step::Count => {
                Box::pin(
                    async move { Answer::Counted(admin::open_connections(&admin, DRAIN_QUESTION).await) },
                )
            }
            _ => Box::pin(async move { Answer::Told(admin::tell(&admin, path, DRAIN_QUESTION).await) }),
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
        if !grace.is_zero() {
            let own = [process.pid()];
            process.signal(Signal::SIGTERM);
            let ended = tokio::select! {
                ended = timeout(grace, whole_group_ended(process)) => ended.ok(),
                () = self.signals.end(|| reap_strangers(&own)) => None,
            };
            if let Some(ended) = ended {
                self.observer.metrics().envoy_ended(ended, true);
                info!(%ended, "envoy ended");
                return;
            }
        }
        warn!("envoy is killed");
        process.signal(Signal::SIGKILL);
        let _ = timeout(ENVOY_KILLED, process.ended()).await;
    }
}

/// Returns when it has ended, and what it had started too.
async fn whole_group_ended(process: &mut EnvoyProcess) -> Ended {
    let ended = process.ended().await;
    while process.has_group() {
        sleep(GROUP).await;
        reap_strangers(&[]);
    }
    ended
}

async fn event(life: &mut Life) -> Event {
    match life {
        Life::Running(process, _) => Event::Ended(process.ended().await),
        Life::Judged(judging) => Event::Judged(judging.refusal.as_mut().await),
        _ => std::future::pending().await,
    }
}

async fn answered(asking: &mut Option<Asking>) -> Answer {
    match asking {
        Some(asking) => asking.await,
        None => std::future::pending().await,
    }
}

async fn until(wake: Option<Duration>, now: Duration) {
    match wake {
        Some(at) => sleep(at.saturating_sub(now)).await,
        None => std::future::pending().await,
    }
}
