//! The contexts of one wasm VM, which is one Envoy worker.

use std::cell::RefCell;
use std::rc::Rc;

use proxy_wasm::hostcalls;
use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::{self, Action, BufferType, ContextType};

use super::envoy::Envoy;
use crate::config::Config;
use crate::decision::CalloutSize;
use crate::effects::{self, FilterStatus};
use crate::host::{Host as _, LogLevel};
use crate::metrics::{self, Metric, MetricsHost as _};
use crate::recorder::Recorder;
use crate::stream::{Orphans, Stream};

proxy_wasm::main! {{
    proxy_wasm::set_log_level(types::LogLevel::Info);
    proxy_wasm::set_root_context(|_| Box::new(Root { config: None }));
}}

thread_local! {
    static WORKER: Rc<RefCell<Worker>> = Rc::default();
}

/// What all contexts share.
#[derive(Debug, Default)]
struct Worker {
    envoy: Envoy,
    recorder: Recorder,
    orphans: Orphans,
}

/// Calls `act` with the worker's state, and returns `otherwise` if Envoy calls the filter during
/// one of the filter's own calls.
fn with_worker<T>(otherwise: T, act: impl FnOnce(&mut Worker) -> T) -> T {
    let worker = WORKER.with(Rc::clone);
    let Ok(mut worker) = worker.try_borrow_mut() else { return otherwise };
    act(&mut worker)
}

/// A plugin configuration.
struct Root {
    config: Option<Rc<Config>>,
}

impl Context for Root {}

impl RootContext for Root {
    fn on_configure(&mut self, size: usize) -> bool {
        with_worker(false, |Worker { envoy, .. }| match read_config(size) {
            Ok(config) => {
                for warning in &config.warnings {
                    envoy.log(LogLevel::Warn, warning);
                }
                for probe in config.probes() {
                    metrics::define_initial(probe, envoy);
                }
                self.config = Some(Rc::new(config));
                true
            }
            Err(text) => {
                envoy.log(LogLevel::Error, &format!("plugin configuration rejected: {text}"));
                envoy.count(Metric::ConfigRejectedTotal);
                false
            }
        })
    }

    fn create_http_context(&self, _context: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(HttpStream { config: self.config.clone(), stream: Stream::default() }))
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}

fn read_config(size: usize) -> Result<Config, String> {
    let bytes = match size {
        0 => Vec::new(),
        _ => hostcalls::get_buffer(BufferType::PluginConfiguration, 0, size)
            .map_err(|_| "configuration: Envoy cannot read it")?
            .unwrap_or_default(),
    };
    if bytes.len() != size {
        return Err("configuration: Envoy returned fewer bytes than announced".into());
    }
    Config::parse(&bytes).map_err(|error| error.to_string())
}

struct HttpStream {
    /// `None` if Envoy creates streams of a rejected configuration.
    config: Option<Rc<Config>>,
    stream: Stream,
}

impl Context for HttpStream {
    fn on_http_call_response(&mut self, token: u32, headers: usize, body: usize, trailers: usize) {
        if !self.stream.awaits(u64::from(token)) {
            return;
        }
        let size = CalloutSize { headers, body, trailers };
        with_worker((), |Worker { envoy, recorder, .. }| {
            effects::run(&mut self.stream, envoy, recorder, &|stream, envoy| {
                stream.on_callout_response(size, envoy)
            });
        });
    }
}

impl HttpContext for HttpStream {
    fn on_http_request_headers(&mut self, _headers: usize, end_of_stream: bool) -> Action {
        let Some(config) = &self.config else { return Action::Continue };
        let stream = &mut self.stream;
        action(with_worker(FilterStatus::Continue, |Worker { envoy, recorder, orphans }| {
            orphans.expire(|| envoy.now());
            effects::run(stream, envoy, recorder, &|stream, envoy| {
                stream.on_request_headers(config, envoy, !end_of_stream)
            })
        }))
    }

    fn on_http_response_headers(&mut self, _headers: usize, _end_of_stream: bool) -> Action {
        action(with_worker(FilterStatus::Continue, |Worker { envoy, recorder, .. }| {
            effects::run(&mut self.stream, envoy, recorder, &Stream::on_response_headers)
        }))
    }

    fn on_http_response_body(&mut self, size: usize, end_of_stream: bool) -> Action {
        action(with_worker(FilterStatus::Continue, |Worker { envoy, .. }| {
            effects::edit_chunk(&mut self.stream, envoy, size, end_of_stream)
        }))
    }
}

impl Drop for HttpStream {
    fn drop(&mut self) {
        let stream = std::mem::take(&mut self.stream);
        with_worker((), |Worker { envoy, orphans, .. }| orphans.add(stream, || envoy.now()));
    }
}

fn action(status: FilterStatus) -> Action {
    match status {
        FilterStatus::Continue => Action::Continue,
        FilterStatus::Pause => Action::Pause,
    }
}
