//! Tests of many agents that end on request at the same time, as an upgrade of all machines ends them.

use super::fleet::Fleet;
use super::*;

/// Ends an agent on request: it sends a final report and closes its stream.
fn end(fleet: &mut Fleet, machine: u64) {
    // The second one repeats the first, as a heartbeat does.
    fleet.report(machine, "2", "Terminating");
    fleet.report(machine, "2", "Terminating");
    fleet.close([machine]);
}

/// As after an upgrade of the agents on all machines at the same time.
#[test]
fn agents_that_end_at_once_keep_their_endpoints_until_they_return() {
    let mut fleet = Fleet::new(10);
    for (machine, expected) in [(1, (9, 0, 10)), (2, (8, 0, 10)), (3, (10, 3, 10)), (4, (10, 4, 10))] {
        end(&mut fleet, machine);
        assert_eq!(fleet.counts(), expected);
    }
    (5..=10).for_each(|machine| end(&mut fleet, machine));
    fleet.wait(2);
    assert_eq!(fleet.counts(), (10, 10, 10));
    for machine in 1..=10 {
        fleet.open(machine, machine + 20, true);
        fleet.report(machine + 20, "0", "Awaiting");
        assert_eq!(fleet.counts().0, 10, "an agent that has no verdict yet keeps its endpoint");
    }
    fleet.wait(5);
    (21..=30).for_each(|stream| fleet.report(stream, "1", "Healthy"));
    assert_eq!(fleet.counts(), (10, 0, 10));
    fleet.wait(1000);
    assert_eq!(fleet.counts(), (10, 0, 10));
}

#[test]
fn agents_that_end_at_once_and_do_not_return_are_removed() {
    let mut fleet = Fleet::new(10);
    (1..=6).for_each(|machine| end(&mut fleet, machine));
    fleet.wait(9);
    assert_eq!(fleet.counts(), (10, 6, 10));
    fleet.wait(2);
    assert_eq!(fleet.counts(), (4, 0, 4));
}

/// A machine that was not an endpoint is none because its agent ends.
#[test]
fn unhealthy_and_draining_machines_that_end_at_once_are_removed() {
    for word in ["Unhealthy", "Draining"] {
        let mut fleet = Fleet::new(10);
        for machine in 1..=6 {
            fleet.report(machine, "2", word);
            fleet.report(machine, "3", "Terminating");
            fleet.report(machine, "4", "Terminating");
            fleet.close([machine]);
        }
        assert_eq!(fleet.counts().0, 4, "{word}");
    }
}

#[test]
fn agents_that_end_at_once_can_be_released() {
    let mut fleet = Fleet::new(10);
    (1..=6).for_each(|machine| end(&mut fleet, machine));
    fleet.input(Input::Release { namespace: None, group: None });
    assert_eq!(fleet.counts().0, 4);
}
