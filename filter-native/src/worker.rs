//! The state of one of Envoy's worker threads.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Weak};
use std::time::Instant;

use app_health_filter::config::Config;
use app_health_filter::recorder::Recorder;

use crate::module_config::ModuleConfig;

thread_local! {
    static WORKER: RefCell<Worker> = RefCell::default();
}

#[derive(Default)]
struct Worker {
    recorder: Recorder,
    /// The plans of each configuration that a stream of this worker has used and that is still served.
    configs: Vec<(Weak<ModuleConfig>, Rc<Config>)>,
}

/// Returns this worker's plans of a configuration.
pub(crate) fn plans(module: &Arc<ModuleConfig>) -> Option<Rc<Config>> {
    WORKER.with(|worker| {
        let configs = &mut worker.try_borrow_mut().ok()?.configs;
        let found = configs.iter().find(|(other, _)| std::ptr::eq(other.as_ptr(), Arc::as_ptr(module)));
        if let Some((_, config)) = found {
            return Some(Rc::clone(config));
        }
        configs.retain(|(other, _)| other.strong_count() > 0);
        let config = Rc::new(Config::parse(&module.json).ok()?);
        configs.push((Arc::downgrade(module), Rc::clone(&config)));
        Some(config)
    })
}

/// Calls `act` with this worker's recorder, or a new one if it is in use, as it is if Envoy calls the
/// module during one of the module's own calls.
pub(crate) fn with_recorder<T>(act: impl FnOnce(&mut Recorder) -> T) -> T {
    let mut recorder = WORKER.with(|worker| {
        worker.try_borrow_mut().map(|mut worker| std::mem::take(&mut worker.recorder)).unwrap_or_default()
    });
    let result = act(&mut recorder);
    WORKER.with(|worker| {
        if let Ok(mut worker) = worker.try_borrow_mut() {
            worker.recorder = recorder;
        }
    });
    result
}

/// Returns the time since the first call on this thread, in nanoseconds.
pub(crate) fn nanoseconds() -> u64 {
    thread_local! {
        static START: Instant = now();
    }
    u64::try_from(START.with(Instant::elapsed).as_nanos()).unwrap_or(u64::MAX)
}

#[expect(clippy::disallowed_methods, reason = "the ABI offers no clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}
