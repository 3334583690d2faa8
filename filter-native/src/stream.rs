//! One HTTP stream.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use app_health_filter::config::Config;
use app_health_filter::decision::{CalloutSize, Decision};
use app_health_filter::effects::{self, FilterStatus};
use app_health_filter::metrics::{Definition, Metric};
use app_health_filter::stream::Stream;

use crate::abi::{EnvoyFilter, Headers};
use crate::callout::Callout;
use crate::envoy::Envoy;
use crate::module_config::{ModuleConfig, take_rejected};
use crate::worker;

/// One HTTP stream. Envoy may call a hook of it, or end it, during one of the calls that the module makes
/// in another hook. Such a hook finds the state in use and does nothing.
pub(crate) struct HttpStream {
    config: Option<Rc<Config>>,
    module: Arc<ModuleConfig>,
    state: RefCell<State>,
}

struct State {
    stream: Stream,
    started: Instant,
    callout: Callout,
}

impl HttpStream {
    /// Without plans, the stream continues and Envoy finds no route for a probe.
    pub(crate) fn new(module: &Arc<ModuleConfig>, config: Option<Rc<Config>>) -> Self {
        Self {
            config,
            module: Arc::clone(module),
            state: RefCell::new(State {
                stream: Stream::default(),
                started: worker::now(),
                callout: Callout::default(),
            }),
        }
    }

    pub(crate) fn on_request_headers(&self, filter: EnvoyFilter, end_of_stream: bool) -> FilterStatus {
        let Some(config) = &self.config else { return FilterStatus::Continue };
        let rejected = take_rejected();
        if rejected > 0 {
            let Definition { id, .. } = self.module.ids.remember(Metric::ConfigRejectedTotal);
            filter.increment_counter(id, std::iter::empty(), rejected);
        }
        self.step(filter, None, &|stream, envoy| stream.on_request_headers(config, envoy, !end_of_stream))
    }

    pub(crate) fn on_response_headers(&self, filter: EnvoyFilter) -> FilterStatus {
        self.step(filter, None, &Stream::on_response_headers)
    }

    pub(crate) fn on_response_body(&self, filter: EnvoyFilter, end_of_stream: bool) -> FilterStatus {
        let Ok(mut state) = self.state.try_borrow_mut() else { return FilterStatus::Continue };
        let State { stream, started, .. } = &mut *state;
        let mut envoy = Envoy { filter, ids: self.module.ids, started: *started, callout: None };
        effects::edit_chunk(stream, &mut envoy, filter.response_chunk_size(), end_of_stream)
    }

    pub(crate) fn on_callout_headers(&self, headers: Headers) {
        self.with_callout(|callout| callout.headers = headers);
    }

    pub(crate) fn on_callout_data(&self, filter: EnvoyFilter, id: u64, chunks: &[Vec<u8>]) {
        let fits = self.with_callout(|callout| chunks.iter().all(|chunk| callout.on_data(chunk)));
        if fits == Some(false) {
            filter.reset_http_stream(id);
        }
    }

    pub(crate) fn on_callout_trailers(&self, trailers: Headers) {
        self.with_callout(|callout| callout.trailers = trailers);
    }

    /// The response is complete, or Envoy has given up.
    pub(crate) fn on_callout_end(&self, filter: EnvoyFilter, id: u64, is_complete: bool) {
        let callout = self.with_callout(std::mem::take).unwrap_or_default();
        let size = if is_complete { callout.size() } else { CalloutSize::default() };
        self.step(filter, Some(&callout), &|stream, envoy| match stream.awaits(id) {
            true => stream.on_callout_response(size, envoy),
            false => Decision::Continue,
        });
    }

    fn with_callout<T>(&self, act: impl FnOnce(&mut Callout) -> T) -> Option<T> {
        self.state.try_borrow_mut().ok().map(|mut state| act(&mut state.callout))
    }

    /// Passes an event to the state machine. `callout` is the response that the event is about.
    fn step<'c>(
        &self,
        filter: EnvoyFilter,
        callout: Option<&'c Callout>,
        event: &dyn for<'a> Fn(&'a mut Stream, &Envoy<'c>) -> Decision<'a>,
    ) -> FilterStatus {
        let Ok(mut state) = self.state.try_borrow_mut() else { return FilterStatus::Continue };
        let State { stream, started, .. } = &mut *state;
        let mut envoy = Envoy { filter, ids: self.module.ids, started: *started, callout };
        worker::with_recorder(|recorder| effects::run(stream, &mut envoy, recorder, event))
    }
}
