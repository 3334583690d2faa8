//! Handles the callbacks of the proxy-wasm ABI: passes each event to the [`Stream`] of its context
//! and carries out the effect.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::abi::{self, Action, BufferType, LogLevel, Status};
use crate::config::Config;
use crate::decision::{CalloutSize, ChunkEdit, SPACES};
use crate::stats;
use crate::stream::{Effect, Orphans, Stream};

mod effects;
mod envoy;
mod metrics;

use effects::{Done, execute, reset};
use envoy::Envoy;
use metrics::Metrics;

thread_local! {
    static WORKER: RefCell<Worker> = RefCell::default();
}

/// The state of one wasm VM, which is one Envoy worker.
#[derive(Default)]
struct Worker {
    roots: BTreeMap<u32, Option<Rc<Config>>>,
    /// The streams with their root contexts.
    streams: BTreeMap<u32, (u32, Stream)>,
    orphans: Orphans,
    metrics: Metrics,
}

pub(crate) fn on_create(context: u32, parent: u32) {
    with((), |worker| {
        if parent == 0 {
            worker.roots.insert(context, None);
        } else {
            worker.streams.insert(context, (parent, Stream::default()));
        }
    });
}

pub(crate) fn on_delete(context: u32) {
    with((), |worker| {
        if let Some((_, stream)) = worker.streams.remove(&context) {
            worker.orphans.add(stream, || abi::now().ok());
        }
        worker.roots.remove(&context);
    });
}

pub(crate) fn on_configure(root: u32, size: usize) -> bool {
    with(false, |worker| worker.configure(root, size))
}

pub(crate) fn on_request_headers(context: u32, end_of_stream: bool) -> Action {
    with(Action::Continue, |worker| {
        let root = worker.streams.get(&context).map(|(root, _)| root);
        let Some(Some(config)) = root.and_then(|root| worker.roots.get(root)).cloned() else {
            return Action::Continue;
        };
        worker.orphans.expire(|| abi::now().ok());
        worker.step(context, |stream| stream.on_request_headers(&config, &Envoy, !end_of_stream))
    })
}

pub(crate) fn on_response_headers(context: u32) -> Action {
    with(Action::Continue, |worker| worker.step(context, |stream| stream.on_response_headers(&Envoy)))
}

pub(crate) fn on_response_body(context: u32, size: usize, end_of_stream: bool) -> Action {
    with(Action::Continue, |worker| {
        let Some((_, stream)) = worker.streams.get_mut(&context) else { return Action::Continue };
        let spaces = match stream.on_response_body(size, end_of_stream) {
            ChunkEdit::Keep => return Action::Continue,
            ChunkEdit::Clear => 0,
            ChunkEdit::Spaces => SPACES,
        };
        match abi::set_buffer(BufferType::ResponseBody, size, &vec![b' '; spaces]) {
            Ok(()) => Action::Continue,
            Err(_) => reset(),
        }
    })
}

pub(crate) fn on_call_response(context: u32, token: u32, size: CalloutSize) {
    with((), |worker| {
        worker.orphans.end(token);
        let awaits = |id: &u32| worker.streams.get(id).is_some_and(|(_, stream)| stream.awaits(token));
        let stream = Some(context).filter(awaits);
        let Some(stream) = stream.or_else(|| worker.streams.keys().copied().find(awaits)) else { return };
        // Host calls act on the context of this callback. If it is another one, switch; if that
        // fails, the next host call fails too.
        if stream != context {
            let _ = abi::set_effective_context(stream);
        }
        worker.step(stream, |stream| stream.on_callout_response(size, &Envoy));
    });
}

/// Calls `act` with the worker's state, and returns `otherwise` if the state is borrowed already or
/// destroyed.
fn with<T: Copy>(otherwise: T, act: impl FnOnce(&mut Worker) -> T) -> T {
    let done = WORKER.try_with(|worker| worker.try_borrow_mut().ok().map(|mut worker| act(&mut worker)));
    done.ok().flatten().unwrap_or(otherwise)
}

impl Worker {
    fn configure(&mut self, root: u32, size: usize) -> bool {
        let bytes =
            if size == 0 { Ok(Vec::new()) } else { abi::buffer(BufferType::PluginConfiguration, size) };
        let config = match bytes {
            Ok(bytes) if bytes.len() == size => Config::parse(&bytes).map_err(|error| error.to_string()),
            Ok(_) => Err("configuration: Envoy returned fewer bytes than announced".into()),
            Err(Status(status)) => Err(format!("configuration: read failed with status {status}")),
        };
        match config {
            Ok(config) => {
                for warning in &config.warnings {
                    abi::log(LogLevel::Warn, warning);
                }
                for probe in config.probes() {
                    self.metrics.define_initial(probe);
                }
                self.roots.insert(root, Some(Rc::new(config)));
                true
            }
            Err(text) => {
                abi::log(LogLevel::Error, &format!("plugin configuration rejected: {text}"));
                self.metrics.increment(stats::CONFIG_REJECTED_TOTAL);
                false
            }
        }
    }

    /// Carries out the effect of a step, and the effect of its failure.
    fn step(&mut self, context: u32, step: impl FnOnce(&mut Stream) -> Effect<'_>) -> Action {
        let Some((_, stream)) = self.streams.get_mut(&context) else { return Action::Continue };
        let done = execute(step(stream), &mut self.metrics);
        match done {
            Ok(Done::Action(action)) => action,
            Ok(Done::Called(token)) => {
                stream.callout_started(token);
                Action::Pause
            }
            Err(Status(status)) => {
                let _ = execute(stream.on_failure(status), &mut self.metrics);
                Action::Pause
            }
        }
    }
}
