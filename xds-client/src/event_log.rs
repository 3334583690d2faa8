//! Logs what an operator wants to know of the proxy.

use std::path::Path;

use tracing::{error, info, warn};
use workload_health::text::printable;
use xds_proxy::Event;

use agent_state::state::age_text;

/// Logs an event. `cache` is the path of the stored configuration.
pub(super) fn log(event: Event, cache: Option<&Path>) {
    let cache = cache.unwrap_or(Path::new("")).display();
    match event {
        Event::Nack { type_url, text } => {
            warn!(type_url, text = printable(&text), "xDS response rejected by Envoy");
        }
        Event::Refused { type_url, text } => {
            error!(type_url, text = printable(&text), "xDS response rejected by the agent");
        }
        Event::ServedFromCache { type_url, resources, age } => {
            warn!(
                type_url,
                resources,
                stale = age_text(age),
                "xDS configuration served from the cache, no control plane answers"
            );
        }
        Event::NoLongerStale => {
            info!("xDS configuration confirmed by the control plane");
        }
        Event::Expired { age } => {
            warn!(age = age_text(age), "stored xDS configuration not served: older than --xds-cache-max-age");
        }
        Event::NotSubscribed { type_url } => {
            warn!(
                type_url = printable(&type_url),
                "xDS response dropped: Envoy does not subscribe to its type"
            );
        }
        Event::HealthRefused { server, pause } => {
            warn!(
                server,
                pause_seconds = pause.as_secs(),
                "health is not reported until the pause is over: the discovery server ends xDS streams that carry health reports"
            );
        }
        Event::NotStored { type_url, reason } => {
            warn!(
                type_url = printable(&type_url),
                reason, "xDS resources of a type not stored, Envoy still receives them"
            );
        }
        Event::StoreFailed { error } => {
            warn!(
                path = %cache,
                error,
                "xDS configuration not stored; an Envoy that starts without a control plane gets an older one or none"
            );
        }
        Event::StoredAgain => info!(path = %cache, "xDS configuration stored again"),
    }
}
