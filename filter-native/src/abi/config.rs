//! What the module asks of Envoy for a configuration.

use std::ffi::c_void;

use app_health_filter::metrics::Family;

use super::*;

/// Envoy's side of a configuration, during `on_http_filter_config_new`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct EnvoyConfig(*mut c_void);

/// Every call below is made in `on_http_filter_config_new`, with the pointer that Envoy passed to it, and
/// with buffers that live longer than the call.
impl EnvoyConfig {
    /// Defines a family of metrics and returns its id; `None` if Envoy refuses.
    pub(crate) fn define(self, family: Family) -> Option<usize> {
        let define: Define = match family.is_gauge() {
            true => envoy_dynamic_module_callback_http_filter_config_define_gauge,
            false => envoy_dynamic_module_callback_http_filter_config_define_counter,
        };
        let mut labels: Vec<Buffer> =
            family.labels().iter().map(|label| Buffer::new(label.as_bytes())).collect();
        let (name, mut id) = (Buffer::new(family.name().as_bytes()), 0);
        // SAFETY: see above.
        let result = unsafe { define(self.0, name, labels.as_mut_ptr(), labels.len(), &raw mut id) };
        (result == 0).then_some(id)
    }

    /// Adds to a counter or gauge with these label values.
    pub(crate) fn increment<'a>(
        self,
        family: Family,
        id: usize,
        labels: impl Iterator<Item = &'a str>,
        by: u64,
    ) {
        let increment: Update = match family.is_gauge() {
            true => envoy_dynamic_module_callback_http_filter_config_increment_gauge,
            false => envoy_dynamic_module_callback_http_filter_config_increment_counter,
        };
        // SAFETY: see above.
        unsafe { update(increment, self.0, id, labels, by) }
    }

    /// Sets a gauge with these label values.
    pub(crate) fn set_gauge<'a>(self, id: usize, labels: impl Iterator<Item = &'a str>, value: u64) {
        // SAFETY: see above.
        unsafe {
            update(envoy_dynamic_module_callback_http_filter_config_set_gauge, self.0, id, labels, value)
        }
    }
}
