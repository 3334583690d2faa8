//! Tests of the shipped images in real containers, run by a Docker daemon that the test starts.
//! Without root or the programs, the test reports NOT TESTED and runs no case.

use kit::docker::Daemon;

use crate::control_plane::control_plane;
use crate::{compose, life, units};

#[test]
fn the_image_in_real_containers() {
    let Some(daemon) = Daemon::start("containers") else { return };
    let failed = std::thread::scope(|scope| {
        let cases = [
            daemon.spawn(scope, "probes", life::probes),
            daemon.spawn(scope, "image", life::image),
            daemon.spawn(scope, "drained", life::drained),
            daemon.spawn(scope, "told", life::told),
            daemon.spawn(scope, "killed", life::killed),
            daemon.spawn(scope, "restarted", life::restarted),
            daemon.spawn(scope, "orphans", life::orphans),
            daemon.spawn(scope, "small", life::small),
            daemon.spawn(scope, "state", life::state),
            daemon.spawn(scope, "wrong", life::wrong),
            daemon.spawn(scope, "held", life::held),
            daemon.spawn(scope, "compose", compose::both_files),
            daemon.spawn(scope, "control plane", control_plane),
            daemon.spawn(scope, "units", units::units),
        ];
        let failed = |case: std::thread::ScopedJoinHandle<'_, ()>| {
            let name = case.thread().name().unwrap_or_default().to_owned();
            case.join().is_err().then_some(name)
        };
        cases.into_iter().filter_map(failed).collect::<Vec<_>>()
    });
    assert_eq!(failed, Vec::<String>::new(), "these cases failed; their panic messages are printed above");
}
