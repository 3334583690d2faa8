//! Metrics of the xDS proxy. The counts of a type are those of the proxy's view.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use xds_proxy::{ProxyView, TypeView};

use crate::metrics::{Counters, Gauges, Seconds, register};

#[derive(Debug)]
pub struct XdsMetrics {
    envoy_connected: Gauge,
    upstream_streams: Counter,
    stale_seconds: Seconds,
    last_good_age_seconds: Seconds,
    resources: Gauges<1>,
    resource_bytes: Gauges<1>,
    responses: Counters<2>,
    response_bytes: Counters<1>,
    stores: Counters<1>,
    types_not_stored: Gauge,
    health_refused: Gauge,
    refused_secrets: Counters<1>,
}

impl XdsMetrics {
    pub(super) fn new(to: &mut Registry) -> Self {
        Self {
            envoy_connected: register(
                to,
                "xds_envoy_connected",
                "1 while Envoy has an xDS stream to the agent",
            ),
            upstream_streams: register(
                to,
                "xds_upstream_streams",
                "Streams to the control plane that the agent has opened, for Envoy or for health reports alone",
            ),
            stale_seconds: register(
                to,
                "xds_stale_seconds",
                "Age of the stored configuration that Envoy uses, 0 if it uses none",
            ),
            last_good_age_seconds: register(
                to,
                "xds_last_good_age_seconds",
                "Time since a control plane confirmed the last good configuration",
            ),
            resources: register(to, "xds_resources", "Resources that Envoy has accepted"),
            resource_bytes: register(
                to,
                "xds_resource_bytes",
                "Size of the resources that Envoy has accepted",
            ),
            responses: register(to, "xds_responses", "xDS responses, by what became of them"),
            response_bytes: register(
                to,
                "xds_response_bytes",
                "Size of the xDS responses of the control plane",
            ),
            stores: register(to, "xds_stores", "Attempts to store the last good configuration"),
            types_not_stored: register(
                to,
                "xds_types_not_stored",
                "Resource types that are not stored, because they exceed a limit",
            ),
            health_refused: register(
                to,
                "xds_health_refused",
                "1 while the control plane gets no health reports, because it ends xDS streams that carry them",
            ),
            refused_secrets: register(
                to,
                "xds_refused_secrets",
                "Secrets of an unknown name that Envoy has requested, and responses with secrets that it has rejected",
            ),
        }
    }

    /// Records an attempt to store the last good configuration.
    pub fn stored(&self, is_ok: bool) {
        let result = if is_ok { "ok" } else { "failed" };
        self.stores.get_or_create(&[("result", result.to_owned())]).inc();
    }

    /// Records a request for a secret that will never exist.
    pub fn secret_unknown(&self) {
        self.refused_secrets.get_or_create(&[("reason", "unknown".to_owned())]).inc();
    }

    /// Records a response with secrets that Envoy has rejected.
    pub fn secret_rejected(&self) {
        self.refused_secrets.get_or_create(&[("reason", "rejected".to_owned())]).inc();
    }

    /// Updates the metrics from the view.
    pub fn observe(&self, view: &ProxyView) {
        self.envoy_connected.set(view.envoy.is_some().into());
        raise(&self.upstream_streams, view.streams);
        self.types_not_stored.set(i64::try_from(view.not_stored).unwrap_or(i64::MAX));
        self.health_refused.set(view.is_health_refused.into());
        self.stale_seconds.set(view.stale.unwrap_or_default().as_secs_f64());
        self.last_good_age_seconds.set(view.age.unwrap_or_default().as_secs_f64());
        self.respond("other", "dropped", view.not_subscribed);
        for name in NAMES {
            let types = || view.types.iter().filter(|of_type| short_name(&of_type.type_url) == name);
            if types().next().is_none() {
                continue;
            }
            let sum = |value: fn(&TypeView) -> u64| types().map(value).sum::<u64>();
            let gauge = |gauges: &Gauges<1>, value: u64| {
                gauges
                    .get_or_create(&[("type", name.to_owned())])
                    .set(i64::try_from(value).unwrap_or(i64::MAX));
            };
            gauge(&self.resources, sum(|of_type| of_type.resources.try_into().unwrap_or(u64::MAX)));
            gauge(&self.resource_bytes, sum(|of_type| of_type.size.try_into().unwrap_or(u64::MAX)));
            self.respond(name, "accepted", sum(|of_type| of_type.acks));
            self.respond(name, "rejected", sum(|of_type| of_type.nacks));
            self.respond(name, "unchanged", sum(|of_type| of_type.unchanged));
            self.respond(name, "from_cache", sum(|of_type| of_type.from_cache));
            let bytes = self.response_bytes.get_or_create(&[("type", name.to_owned())]);
            raise(&bytes, sum(|of_type| of_type.bytes));
        }
    }

    fn respond(&self, name: &'static str, result: &'static str, count: u64) {
        let labels = [("type", name.to_owned()), ("result", result.to_owned())];
        raise(&self.responses.get_or_create(&labels), count);
    }
}

/// Values of the label `type`.
const NAMES: [&str; 7] = ["cds", "ecds", "eds", "lds", "rds", "sds", "other"];

fn short_name(type_url: &str) -> &'static str {
    match type_url.rsplit('.').next().unwrap_or_default() {
        "Cluster" => "cds",
        "TypedExtensionConfig" => "ecds",
        "ClusterLoadAssignment" => "eds",
        "Listener" => "lds",
        "RouteConfiguration" => "rds",
        "Secret" => "sds",
        _ => "other",
    }
}

/// Sets a counter to a count that only grows.
fn raise(counter: &Counter, count: u64) {
    counter.inc_by(count.saturating_sub(counter.get()));
}
