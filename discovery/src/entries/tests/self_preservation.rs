//! Tests of endpoints that are preserved because too many machines became silent, with real snapshots.

use super::fleet::Fleet;
use super::*;

#[test]
fn lost_network_removes_no_machine() {
    let mut fleet = Fleet::new(10);
    assert_eq!(fleet.counts(), (10, 0, 10));
    // The streams are lost one after the other, as PINGs find out.
    for machine in 1..=4 {
        fleet.close([machine]);
        fleet.wait(2);
        assert_eq!(fleet.counts(), (10, 0, 10));
    }
    fleet.wait(1000);
    assert_eq!(fleet.counts(), (10, 4, 10));
    // Two return. The others get another window.
    fleet.connect(1, 21);
    fleet.connect(2, 22);
    assert_eq!(fleet.counts(), (10, 2, 10));
    fleet.wait(119);
    assert_eq!(fleet.counts(), (10, 2, 10));
    fleet.connect(3, 23);
    fleet.wait(2);
    assert_eq!(fleet.counts(), (9, 0, 9));
}

/// The system clock is set while machines become silent, and after that.
#[test]
fn clock_changes_release_no_machine() {
    for change in [0, 3_600, -3_600, 86_400 * 365] {
        let mut fleet = Fleet::new(10);
        for machine in 1..=4 {
            fleet.close([machine]);
            fleet.wait(5);
            fleet.clock_change += change;
            fleet.wait(5);
        }
        fleet.wait(20);
        assert_eq!(fleet.counts(), (10, 4, 10), "{change}");
        fleet.clock_change -= 2 * change;
        fleet.wait(1000);
        assert_eq!(fleet.counts(), (10, 4, 10), "{change}");
        fleet.connect(1, 21);
        fleet.connect(2, 22);
        fleet.wait(130);
        assert_eq!(fleet.counts(), (8, 0, 8), "{change}");
    }
}

#[test]
fn slow_loss_puts_removed_machines_back() {
    let mut fleet = Fleet::new(10);
    // As with an expired certificate, which ends each stream at its next heartbeat.
    for (machine, expected) in [(1, (9, 0, 10)), (2, (8, 0, 10)), (3, (10, 3, 10)), (4, (10, 4, 10))] {
        fleet.close([machine]);
        fleet.wait(15);
        assert_eq!(fleet.counts(), expected);
    }
    fleet.wait(20);
    assert_eq!(fleet.counts(), (10, 4, 10));
}

#[test]
fn single_machines_are_removed() {
    let mut fleet = Fleet::new(10);
    fleet.close([1, 2]);
    fleet.wait(11);
    assert_eq!(fleet.counts(), (8, 0, 10), "they may still be preserved");
    fleet.wait(120);
    assert_eq!(fleet.counts(), (8, 0, 8));
    // These are in another window.
    fleet.close([3, 4]);
    fleet.wait(11);
    assert_eq!(fleet.counts(), (6, 0, 8));
}

#[test]
fn explicit_reports_count_as_before() {
    let mut fleet = Fleet::new(4);
    for machine in 1..=4 {
        fleet.report(machine, "2", "Unhealthy");
    }
    assert_eq!(fleet.counts(), (0, 0, 4));
    fleet.close(1..=4);
    fleet.wait(11);
    assert_eq!(fleet.counts(), (0, 0, 0));
}

#[test]
fn silent_agents_with_open_streams_are_preserved() {
    let mut fleet = Fleet::new(4);
    fleet.pass(1000);
    assert_eq!(fleet.counts(), (4, 4, 4));
    for machine in 1..=4 {
        fleet.report(machine, "1", "Healthy");
    }
    assert_eq!(fleet.counts(), (4, 0, 4));
}

#[test]
fn operator_releases_preserved_machines() {
    let mut fleet = Fleet::new(4);
    fleet.close(1..=4);
    fleet.wait(1000);
    assert_eq!(fleet.counts(), (4, 4, 4));
    let release = |group: &str| Input::Release { namespace: None, group: Some(group.to_owned()) };
    fleet.input(release("orders"));
    assert_eq!(fleet.counts(), (4, 4, 4));
    fleet.input(release("payments"));
    assert_eq!(fleet.counts(), (0, 0, 0));
    fleet.connect(1, 11);
    assert_eq!(fleet.counts(), (1, 0, 1));
}

#[test]
fn preserved_machines_survive_a_restart() {
    let mut fleet = Fleet::new(4);
    fleet.close(1..=4);
    fleet.wait(1000);
    fleet.restart();
    let preserved = fleet.publish();
    fleet.input(preserved);
    fleet.wait(1000);
    assert_eq!(fleet.counts(), (4, 4, 4));
}

/// After a restart, the others of a preserved set have the restart grace to return.
#[test]
fn restart_delays_the_release() {
    let mut fleet = Fleet::new(4);
    fleet.settings.restart_grace = Duration::from_secs(300);
    fleet.close(1..=4);
    fleet.wait(1000);
    fleet.restart();
    fleet.connect(1, 11);
    fleet.connect(2, 12);
    fleet.wait(290);
    assert_eq!(fleet.counts(), (4, 2, 4));
    fleet.wait(20);
    assert_eq!(fleet.counts().0, 2);
}

/// The window of the others ends while a restarted agent waits for its first probe result.
#[test]
fn a_machine_that_has_just_returned_is_not_released() {
    for app_health in [true, false] {
        let mut fleet = Fleet::new(10);
        fleet.close(1..=4);
        fleet.wait(1000);
        fleet.connect(1, 21);
        fleet.connect(2, 22);
        assert_eq!(fleet.counts(), (10, 2, 10));
        fleet.wait(118);
        fleet.open(3, 23, app_health);
        if app_health {
            fleet.report(23, "0", "Awaiting");
        }
        fleet.wait(4);
        assert_eq!(fleet.counts().0, 9, "of the others only 4 is released: {app_health}");
        if app_health {
            fleet.report(23, "1", "Unhealthy");
        } else {
            let report = Report::Istio { healthy: false, message: "HTTP status 503".to_owned() };
            fleet.input(Input::Report { stream: 23, report });
        }
        assert_eq!(fleet.counts().0, 8, "{app_health}");
    }
}

/// Istio's agent opens its stream again, and never reports.
#[test]
fn a_machine_that_returns_without_a_report_is_released_later() {
    let mut fleet = Fleet::new(10);
    fleet.close(1..=4);
    fleet.wait(1000);
    fleet.connect(1, 21);
    fleet.connect(2, 22);
    fleet.wait(118);
    fleet.open(3, 23, false);
    fleet.alive.remove(&23);
    fleet.wait(300);
    assert_eq!(fleet.counts().0, 8);
}

/// The times in the store are in the future after a restart.
#[test]
fn clock_set_back_before_a_restart_neither_preserves_for_ever_nor_releases() {
    for change in [-600, -86_400, -86_400 * 365] {
        let mut fleet = Fleet::new(10);
        fleet.close(1..=4);
        fleet.wait(100);
        assert_eq!(fleet.counts(), (10, 4, 10));
        fleet.clock_change = change;
        fleet.restart();
        (5..=10).for_each(|machine| fleet.connect(machine, machine + 20));
        fleet.wait(1000);
        assert_eq!(fleet.counts(), (10, 4, 10), "{change}: the same four are still silent");
        // A machine that is lost now has nothing to do with the two of them that have not returned.
        fleet.connect(1, 41);
        fleet.connect(2, 42);
        fleet.pass(20);
        fleet.close([25]);
        fleet.wait(300);
        assert_eq!(fleet.counts(), (7, 0, 7), "{change}");
    }
}

/// The others of the set become silent after the restart.
#[test]
fn clock_set_back_during_a_mass_silence() {
    let mut fleet = Fleet::new(10);
    fleet.close(1..=2);
    fleet.wait(11);
    fleet.clock_change = -86_400;
    fleet.restart();
    (5..=10).for_each(|machine| fleet.connect(machine, machine + 20));
    fleet.wait(1000);
    assert_eq!(fleet.counts(), (10, 4, 10));
}

#[test]
fn discovery_stopped_for_a_minute() {
    let mut fleet = Fleet::new(10);
    // It finds that all streams were closed meanwhile, and no agent can reconnect.
    fleet.now += Duration::from_secs(60);
    fleet.input(Input::ProcessResumed);
    fleet.close(1..=10);
    fleet.wait(1000);
    assert_eq!(fleet.counts(), (10, 10, 10));
}
