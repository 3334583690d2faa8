use super::*;

const LIMITED: RestartMode = RestartMode::Limited { limit: 3, window: Duration::from_secs(600) };

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Returns how many of the exits, each of an Envoy that ran since the previous one, were followed by
/// a restart, and the restarts that preceded the last decision if it was to give up.
fn restarts(mode: RestartMode, exits: &[u64]) -> (usize, Option<usize>) {
    let mut policy = RestartPolicy::new(mode);
    let mut started = 0;
    for (restarts, exit) in exits.iter().enumerate() {
        if let Decision::GiveUp(preceding) = policy.after_exit(seconds(exit - started), seconds(*exit), 1.0) {
            return (restarts, Some(preceding));
        }
        started = *exit;
    }
    (exits.len(), None)
}

#[test]
fn exits_until_the_agent_gives_up() {
    for (what, mode, exits, expected) in [
        ("never", RestartMode::Never, vec![5], (0, Some(0))),
        ("always", RestartMode::Always, (1..100).collect(), (99, None)),
        ("as many as allowed", LIMITED, vec![1, 2, 3], (3, None)),
        ("one more", LIMITED, vec![1, 2, 3, 4], (3, Some(3))),
        ("one more, at the end of the window", LIMITED, vec![1, 2, 3, 600], (3, Some(3))),
        ("after the window of the first", LIMITED, vec![1, 2, 3, 601], (4, None)),
        ("and then too many", LIMITED, vec![1, 2, 3, 601, 601], (4, Some(3))),
        ("one in five minutes", LIMITED, (1..50).map(|exit| exit * 300).collect(), (49, None)),
        ("a limit of 0", RestartMode::Limited { limit: 0, window: seconds(600) }, vec![1], (0, Some(0))),
    ] {
        assert_eq!(restarts(mode, &exits), expected, "{what}");
    }
}

#[test]
fn pauses_double_until_envoy_runs_for_long() {
    for mode in [RestartMode::Always, RestartMode::Limited { limit: 99, window: seconds(600) }] {
        let mut policy = RestartPolicy::new(mode);
        let pauses = [1, 1, 1, 1, 1, 1, 1, 1, 29, 30, 1].map(|run_time| {
            match policy.after_exit(seconds(run_time), seconds(0), 1.0) {
                Decision::Restart(pause) => pause.as_millis(),
                Decision::GiveUp(_) => panic!("{mode:?}"),
            }
        });
        assert_eq!(pauses, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000, 30_000, 500, 1000]);
        assert_eq!(policy.after_exit(seconds(1), seconds(0), 0.0), Decision::Restart(Duration::ZERO));
    }
}

#[test]
fn memory_is_bounded_by_the_limit() {
    let mut policy = RestartPolicy::new(LIMITED);
    for exit in 0..1000 {
        policy.after_exit(seconds(1), seconds(exit), 0.5);
        assert!(policy.restarts.len() <= 3);
    }
}
