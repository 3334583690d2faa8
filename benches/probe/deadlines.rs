//! Measures how soon a refused connection is answered, and how precisely a timeout is kept.

use std::io::{Error, Result};
use std::time::Duration;

use kit::report::{Row, median, quantile};

use crate::setup::{SILENT, Setup};

/// Bounds for the shipped listener, in milliseconds: a refused port is answered within 10 ms, a
/// timeout within 50 ms of the declared one.
const REFUSED_BAR: f64 = 10.0;
const TIMEOUT_BAR: f64 = 50.0;
/// The declared timeout of the silent probers.
const DECLARED: Duration = Duration::from_secs(1);
const REFUSED_PROBES: usize = 1000;
/// Timeouts to measure for each silent prober, in sequence.
const TIMEOUTS: usize = 5;

pub(crate) fn measure(setup: &Setup) -> Result<Vec<Row>> {
    let refused = setup.prober("refused");
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let answers = (0..REFUSED_PROBES).map(|_| refused.ask(502).map(millis)).collect::<Result<Vec<_>>>()?;

    let late = std::thread::scope(|scope| {
        let askers: Vec<_> = (0..SILENT * 2)
            .map(|number| {
                let caller = setup.prober(&format!("silent-{}", number % SILENT));
                scope.spawn(move || {
                    let late = |took: Duration| millis(took.abs_diff(DECLARED));
                    (0..TIMEOUTS).map(|_| caller.ask(504).map(late)).collect::<Result<Vec<_>>>()
                })
            })
            .collect();
        let mut all = Vec::new();
        for asker in askers {
            all.extend(asker.join().map_err(|_| Error::other("a thread panicked"))??);
        }
        Ok::<_, Error>(all)
    })?;
    Ok(vec![
        Row::new("refused port, p50", median(&answers), "ms"),
        Row::new("refused port, p99", quantile(&answers, 0.99), "ms").at_most(REFUSED_BAR),
        Row::new("refused port, slowest", quantile(&answers, 1.0), "ms"),
        Row::new("timeout over the declared 1 s, p50", median(&late), "ms"),
        Row::new("timeout over the declared 1 s, worst", quantile(&late, 1.0), "ms").at_most(TIMEOUT_BAR),
    ])
}
