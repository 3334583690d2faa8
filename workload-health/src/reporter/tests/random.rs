use proptest::prelude::*;

use super::*;

/// Events of a server, of either kind, that loses streams, reports and acknowledgements.
#[derive(Debug, Clone)]
enum ServerEvent {
    Transition(bool),
    Connects { app_health: bool },
    Breaks,
    Acknowledges,
    Waits(u16),
}

fn server_event() -> impl Strategy<Value = ServerEvent> {
    prop_oneof![
        any::<bool>().prop_map(ServerEvent::Transition),
        any::<bool>().prop_map(|app_health| ServerEvent::Connects { app_health }),
        Just(ServerEvent::Breaks),
        Just(ServerEvent::Acknowledges),
        (0u16..40_000).prop_map(ServerEvent::Waits),
    ]
}

/// A reporter with simulated time.
struct Simulation {
    reporter: Reporter,
    now: Duration,
    open: bool,
    generation: u64,
    /// State and generation of the last report that the server received on this stream.
    heard: Option<(bool, u64)>,
    healthy: bool,
    app_health: bool,
}

impl Simulation {
    fn step(&mut self, input: Input) {
        for effect in self.reporter.step(self.now, input, &mut || 0.3) {
            match effect {
                Effect::Send(Report::Istio { healthy, .. }, _) => {
                    self.heard = Some((healthy, self.generation))
                }
                Effect::Send(Report::AppHealth(report), _) => {
                    self.heard = Some((report.state == State::Healthy, report.generation));
                }
                Effect::Unresponsive => (self.open, self.heard) = (false, None),
                _ => {}
            }
        }
    }

    fn wait(&mut self, until: Duration) {
        while let Some(due) = self.reporter.next_due().filter(|due| *due <= until) {
            assert!(
                due >= self.now || due + secs(60.0) > self.now,
                "the next due time must not be in the past"
            );
            self.now = self.now.max(due);
            self.step(Input::Tick);
        }
        self.now = until;
    }

    fn apply(&mut self, event: ServerEvent) {
        match event {
            ServerEvent::Transition(is_healthy) => {
                self.generation += 1;
                self.healthy = is_healthy;
                self.step(if is_healthy { healthy(self.generation) } else { unhealthy(self.generation) });
            }
            ServerEvent::Connects { app_health } if !self.open => {
                (self.open, self.app_health) = (true, app_health);
                self.step(Input::Opened);
                if app_health {
                    self.step(hello(self.generation + 1));
                }
            }
            ServerEvent::Breaks if self.open => {
                (self.open, self.heard) = (false, None);
                self.step(Input::Closed);
            }
            ServerEvent::Acknowledges if self.open && self.app_health => {
                if let Some((_, generation)) = self.heard {
                    self.step(acked(generation));
                }
            }
            ServerEvent::Waits(millis) => self.wait(self.now + Duration::from_millis(millis.into())),
            _ => {}
        }
    }
}

proptest! {
    /// After any sequence of events, a connected server has received the current state, and without one
    /// nothing is due.
    #[test]
    fn the_current_state_is_reported(events in prop::collection::vec(server_event(), 0..120)) {
        let Input::Status(first) = healthy(1) else { panic!("expected a status") };
        let mut world = Simulation {
            reporter: Reporter::new(settings(), first),
            now: Duration::ZERO,
            open: false,
            generation: 1,
            heard: None,
            healthy: true,
            app_health: false,
        };
        world.wait(Duration::ZERO);
        for event in events {
            world.apply(event);
            if world.open {
                prop_assert_eq!(world.heard, Some((world.healthy, world.generation)));
            } else {
                prop_assert_eq!(world.reporter.next_due(), None);
            }
        }
    }

    /// Shutdown never takes longer than the final-report timeout, regardless of what the server does.
    #[test]
    fn shutdown_is_bounded(events in prop::collection::vec(server_event(), 0..40), more in prop::collection::vec(server_event(), 0..10)) {
        let Input::Status(first) = healthy(1) else { panic!("expected a status") };
        let mut reporter = Reporter::new(settings(), first);
        let mut now = Duration::ZERO;
        for (index, event) in events.iter().chain(&more).enumerate() {
            if index == events.len() {
                reporter.step(now, Input::Shutdown, &mut || 0.9);
                reporter.step(now, draining(u64::MAX), &mut || 0.9);
            }
            let input = match event {
                ServerEvent::Connects { .. } => Input::Opened,
                ServerEvent::Breaks => Input::Closed,
                ServerEvent::Acknowledges => acked(u64::MAX),
                ServerEvent::Transition(_) => hello(2),
                ServerEvent::Waits(millis) => {
                    now += Duration::from_millis(u64::from(*millis) / 20);
                    Input::Tick
                }
            };
            reporter.step(now, input, &mut || 0.9);
        }
        reporter.step(now, Input::Shutdown, &mut || 0.9);
        let left = reporter.step(now + secs(2.0), Input::Tick, &mut || 0.9);
        prop_assert!(reporter.next_due().is_none(), "{left:?}");
    }
}
