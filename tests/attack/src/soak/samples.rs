//! Samples of what each process uses, once per second.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::task::AbortOnDropHandle;

use super::system::Pids;
use crate::resources::{Trend, Usage};

const PERIOD: Duration = Duration::from_secs(1);
/// The samples at the beginning that do not count: caches fill, and connections are opened.
const WARM_UP: usize = 20;

/// The samples of each role, in their order.
type ByRole = BTreeMap<&'static str, Vec<Usage>>;

pub(super) struct Samples {
    samples: Arc<Mutex<ByRole>>,
    _sampling: AbortOnDropHandle<()>,
}

impl Samples {
    /// Samples the processes of these roles, which may change.
    pub(super) fn start(pids: Pids) -> Self {
        let samples = Arc::<Mutex<ByRole>>::default();
        let shared = Arc::clone(&samples);
        let sampling = tokio::spawn(async move {
            loop {
                sample(&pids, &shared);
                sleep(PERIOD).await;
            }
        });
        Self { samples, _sampling: AbortOnDropHandle::new(sampling) }
    }

    /// Returns the trend of each process since the warm-up.
    pub(super) fn trends(&self) -> BTreeMap<&'static str, Trend> {
        let samples = self.samples.lock().expect("the mutex is not poisoned");
        let trends =
            samples.iter().filter_map(|(role, samples)| Some((*role, Trend::of(samples.get(WARM_UP..)?)?)));
        trends.collect()
    }
}

fn sample(pids: &Pids, samples: &Mutex<ByRole>) {
    let now = pids.lock().expect("the mutex is not poisoned").clone();
    let mut samples = samples.lock().expect("the mutex is not poisoned");
    for (role, pid) in now {
        // A process that is being restarted has no sample.
        samples.entry(role).or_default().extend(Usage::of(pid));
    }
}
