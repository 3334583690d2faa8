//! The functions that Envoy calls. Envoy looks for all of them by name, including those that do nothing.
//!
//! A configuration is an `Arc<ModuleConfig>` and a stream an `Rc<HttpStream>`; Envoy has a raw pointer to
//! each and returns it in every hook. Envoy 1.39 may call `on_http_filter_destroy` while another hook of
//! the same stream runs, so each hook holds a reference of its own. No panic leaves a hook.

#![expect(unsafe_code, reason = "the ABI passes pointers")]

use std::ffi::{c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::Arc;

use app_health_filter::effects::FilterStatus;

use crate::abi::{self, Buffer, EnvoyConfig, EnvoyFilter, Header, LogLevel};
use crate::module_config::ModuleConfig;
use crate::stream::HttpStream;
use crate::worker;

const CONTINUE: u32 = 0;
/// The result of a headers hook after which Envoy stops reading and keeps back the body.
const STOP_ALL_ITERATION_AND_WATERMARK: u32 = 4;
/// The result of a body hook after which Envoy drops the chunk.
const STOP_ITERATION_NO_BUFFER: u32 = 3;

/// Calls `act`, or logs that it panicked and returns `otherwise`.
fn guarded<T>(otherwise: impl FnOnce() -> T, act: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(act)).unwrap_or_else(|_| {
        abi::log(LogLevel::Error, "app-health: the filter panicked");
        otherwise()
    })
}

/// Passes an event to a stream, which lives at least as long as the hook. After a panic the stream is
/// reset: kubelet takes any response to a lifecycle hook for success.
///
/// # Safety
/// `stream` came from [`envoy_dynamic_module_on_http_filter_new`] and was not destroyed yet.
unsafe fn on_event<T>(
    filter: EnvoyFilter,
    stream: *const c_void,
    after_panic: T,
    event: impl FnOnce(&HttpStream) -> T,
) -> T {
    let stream = stream.cast::<HttpStream>();
    // SAFETY: the caller guarantees it; the pointer came from `Rc::into_raw`.
    let stream = unsafe {
        Rc::increment_strong_count(stream);
        Rc::from_raw(stream)
    };
    let reset = || {
        filter.reset();
        after_panic
    };
    guarded(reset, || event(&stream))
}

#[unsafe(no_mangle)]
extern "C" fn envoy_dynamic_module_on_program_init() -> *const c_char {
    abi::VERSION.as_ptr()
}

/// Returns null for a configuration that is rejected.
#[unsafe(no_mangle)]
unsafe extern "C" fn envoy_dynamic_module_on_http_filter_config_new(
    envoy: EnvoyConfig,
    _name: Buffer,
    config: Buffer,
) -> *const c_void {
    // SAFETY: the buffer is valid during this hook.
    let json = unsafe { config.to_vec() };
    let config = guarded(|| None, || ModuleConfig::new(json, envoy));
    config.map_or(std::ptr::null(), |config| Arc::into_raw(Arc::new(config)).cast())
}

#[unsafe(no_mangle)]
unsafe extern "C" fn envoy_dynamic_module_on_http_filter_config_destroy(config: *const c_void) {
    // SAFETY: Envoy destroys once what `config_new` returned.
    let config = unsafe { Arc::from_raw(config.cast::<ModuleConfig>()) };
    guarded(|| (), || drop(config));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn envoy_dynamic_module_on_http_filter_new(
    config: *const c_void,
    _filter: EnvoyFilter,
) -> *const c_void {
    let config = config.cast::<ModuleConfig>();
    // SAFETY: Envoy keeps what `config_new` returned while it creates streams.
    let config = unsafe {
        Arc::increment_strong_count(config);
        Arc::from_raw(config)
    };
    // Envoy 1.39 calls the hooks of a stream even if it is null, so there is always one.
    let stream =
        guarded(|| HttpStream::new(&config, None), || HttpStream::new(&config, worker::plans(&config)));
    Rc::into_raw(Rc::new(stream)).cast()
}

#[unsafe(no_mangle)]
unsafe extern "C" fn envoy_dynamic_module_on_http_filter_destroy(stream: *const c_void) {
    // SAFETY: Envoy destroys once what `new` returned.
    let stream = unsafe { Rc::from_raw(stream.cast::<HttpStream>()) };
    guarded(|| (), || drop(stream));
}

// Envoy calls the hooks below for streams that it has not destroyed, and with arrays that are valid during
// the hook.

#[unsafe(no_mangle)]
unsafe extern "C" fn envoy_dynamic_module_on_http_filter_request_headers(
    filter: EnvoyFilter,
    stream: *const c_void,
    end_of_stream: bool,
) -> u32 {
    let event = |stream: &HttpStream| stream.on_request_headers(filter, end_of_stream);
    // SAFETY: see above.
    headers_status(unsafe { on_event(filter, stream, FilterStatus::Pause, event) })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn envoy_dynamic_module_on_http_filter_response_headers(
    filter: EnvoyFilter,
    stream: *const c_void,
    _end_of_stream: bool,
) -> u32 {
    // SAFETY: see above.
    headers_status(unsafe {
        on_event(filter, stream, FilterStatus::Pause, |stream| stream.on_response_headers(filter))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn envoy_dynamic_module_on_http_filter_response_body(
    filter: EnvoyFilter,
    stream: *const c_void,
    end_of_stream: bool,
) -> u32 {
    let event = |stream: &HttpStream| stream.on_response_body(filter, end_of_stream);
    // SAFETY: see above.
    match unsafe { on_event(filter, stream, FilterStatus::Pause, event) } {
        FilterStatus::Continue => CONTINUE,
        FilterStatus::Pause => STOP_ITERATION_NO_BUFFER,
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn envoy_dynamic_module_on_http_filter_http_stream_headers(
    filter: EnvoyFilter,
    stream: *const c_void,
    _id: u64,
    headers: *const Header,
    count: usize,
    _end_of_stream: bool,
) {
    // SAFETY: see above.
    unsafe {
        let headers = abi::copy_headers(headers, count);
        on_event(filter, stream, (), |stream| stream.on_callout_headers(headers));
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn envoy_dynamic_module_on_http_filter_http_stream_data(
    filter: EnvoyFilter,
    stream: *const c_void,
    id: u64,
    chunks: *const Buffer,
    count: usize,
    _end_of_stream: bool,
) {
    // SAFETY: see above.
    unsafe {
        let chunks = abi::copy_chunks(chunks, count);
        on_event(filter, stream, (), |stream| stream.on_callout_data(filter, id, &chunks));
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn envoy_dynamic_module_on_http_filter_http_stream_trailers(
    filter: EnvoyFilter,
    stream: *const c_void,
    _id: u64,
    trailers: *const Header,
    count: usize,
) {
    // SAFETY: see above.
    unsafe {
        let trailers = abi::copy_headers(trailers, count);
        on_event(filter, stream, (), |stream| stream.on_callout_trailers(trailers));
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn envoy_dynamic_module_on_http_filter_http_stream_complete(
    filter: EnvoyFilter,
    stream: *const c_void,
    id: u64,
) {
    // SAFETY: see above.
    unsafe { on_event(filter, stream, (), |stream| stream.on_callout_end(filter, id, true)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn envoy_dynamic_module_on_http_filter_http_stream_reset(
    filter: EnvoyFilter,
    stream: *const c_void,
    id: u64,
    _reason: u32,
) {
    // SAFETY: see above.
    unsafe { on_event(filter, stream, (), |stream| stream.on_callout_end(filter, id, false)) }
}

fn headers_status(status: FilterStatus) -> u32 {
    match status {
        FilterStatus::Continue => CONTINUE,
        FilterStatus::Pause => STOP_ALL_ITERATION_AND_WATERMARK,
    }
}

/// Defines hooks that do nothing and, if they have a result, continue.
macro_rules! empty_hooks {
    ($($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name($(_: $argument),*) $(-> $result)? {
            Default::default()
        }
    )*};
}

empty_hooks! {
    envoy_dynamic_module_on_http_filter_request_body(EnvoyFilter, *const c_void, bool) -> u32;
    envoy_dynamic_module_on_http_filter_request_trailers(EnvoyFilter, *const c_void) -> u32;
    envoy_dynamic_module_on_http_filter_response_trailers(EnvoyFilter, *const c_void) -> u32;
    envoy_dynamic_module_on_http_filter_stream_complete(EnvoyFilter, *const c_void);
    envoy_dynamic_module_on_http_filter_http_callout_done(
        EnvoyFilter, *const c_void, u64, u32, *const Header, usize, *const Buffer, usize
    );
    envoy_dynamic_module_on_http_filter_scheduled(EnvoyFilter, *const c_void, u64);
    envoy_dynamic_module_on_http_filter_downstream_above_write_buffer_high_watermark(EnvoyFilter, *const c_void);
    envoy_dynamic_module_on_http_filter_downstream_below_write_buffer_low_watermark(EnvoyFilter, *const c_void);
}
