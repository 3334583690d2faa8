use proptest::prelude::*;

use super::*;

/// Events of a server, of either kind, that loses streams, reports and acknowledgements.
#[derive(Debug, Clone)]
enum Fate {
    Flip(bool),
    Connects { ours: bool },
    Breaks,
    Acknowledges,
    Waits(u16),
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        any::<bool>().prop_map(Fate::Flip),
        any::<bool>().prop_map(|ours| Fate::Connects { ours }),
        Just(Fate::Breaks),
        Just(Fate::Acknowledges),
        (0u16..40_000).prop_map(Fate::Waits),
    ]
}

/// A reporter with simulated time.
struct World {
    reporter: Reporter,
    now: Duration,
    asked: bool,
    open: bool,
    generation: u64,
    /// State and generation of the last report that the server received on this stream.
    heard: Option<(bool, u64)>,
    healthy: bool,
    ours: bool,
}

impl World {
    fn step(&mut self, input: Input) {
        for effect in self.reporter.step(self.now, input, &mut || 0.3) {
            match effect {
                Effect::Connect => self.asked = true,
                Effect::Send(Report::Plain { healthy, .. }, _) => {
                    self.heard = Some((healthy, self.generation))
                }
                Effect::Send(Report::AppHealth(report), _) => {
                    self.heard = Some((report.state == State::Healthy, report.generation));
                }
                Effect::Close => (self.open, self.heard) = (false, None),
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

    fn live(&mut self, fate: Fate) {
        match fate {
            Fate::Flip(is_healthy) => {
                self.generation += 1;
                self.healthy = is_healthy;
                self.step(if is_healthy { healthy(self.generation) } else { unhealthy(self.generation) });
            }
            Fate::Connects { ours } if self.asked && !self.open => {
                (self.asked, self.open, self.ours) = (false, true, ours);
                self.step(Input::Opened);
                if ours {
                    self.step(hello(self.generation + 1));
                }
            }
            Fate::Breaks if self.asked || self.open => {
                (self.asked, self.open, self.heard) = (false, false, None);
                self.step(BROKEN);
            }
            Fate::Acknowledges if self.open && self.ours => {
                if let Some((_, generation)) = self.heard {
                    self.step(acked(generation));
                }
            }
            Fate::Waits(millis) => self.wait(self.now + Duration::from_millis(millis.into())),
            _ => {}
        }
    }
}

proptest! {
    /// After any sequence of events, a connected server has received the current state, and
    /// otherwise the next attempt is at most 30 s away.
    #[test]
    fn the_level_arrives(fates in prop::collection::vec(fate(), 0..120)) {
        let Input::Level(first) = healthy(1) else { panic!("expected a level") };
        let mut world = World {
            reporter: Reporter::new(settings(), first),
            now: Duration::ZERO,
            asked: false,
            open: false,
            generation: 1,
            heard: None,
            healthy: true,
            ours: false,
        };
        world.wait(Duration::ZERO);
        for fate in fates {
            world.live(fate);
            if world.open {
                prop_assert_eq!(world.heard, Some((world.healthy, world.generation)));
            } else if !world.asked {
                let due = world.reporter.next_due();
                prop_assert!(due.is_some_and(|due| due <= world.now + secs(30.0)), "{due:?}");
            }
        }
    }

    /// Shutdown never takes longer than the goodbye timeout, regardless of what the server does.
    #[test]
    fn the_end_comes_in_time(fates in prop::collection::vec(fate(), 0..40), more in prop::collection::vec(fate(), 0..10)) {
        let Input::Level(first) = healthy(1) else { panic!("expected a level") };
        let mut reporter = Reporter::new(settings(), first);
        let mut now = Duration::ZERO;
        for (index, fate) in fates.iter().chain(&more).enumerate() {
            if index == fates.len() {
                reporter.step(now, Input::Leave, &mut || 0.9);
                reporter.step(now, draining(u64::MAX), &mut || 0.9);
            }
            let input = match fate {
                Fate::Connects { .. } => Input::Opened,
                Fate::Breaks => BROKEN,
                Fate::Acknowledges => acked(u64::MAX),
                Fate::Flip(_) => hello(2),
                Fate::Waits(millis) => {
                    now += Duration::from_millis(u64::from(*millis) / 20);
                    Input::Tick
                }
            };
            reporter.step(now, input, &mut || 0.9);
        }
        reporter.step(now, Input::Leave, &mut || 0.9);
        let left = reporter.step(now + secs(2.0), Input::Tick, &mut || 0.9);
        prop_assert!(reporter.next_due().is_none(), "{left:?}");
    }
}
