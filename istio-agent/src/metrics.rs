//! Metrics under the names of Istio's agent, which dashboards and alerts of its users know: those of
//! `pkg/istio-agent/metrics`, `security/pkg/nodeagent/cache/monitoring.go`, `pkg/dns/client/monitoring.go` and
//! `pilot/cmd/pilot-agent/metrics` of Istio 1.31.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use agent_state::metrics::Metrics;
use istio_certificates::pem;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::sync::watch;

use crate::mesh_certificates::MeshCertificates;

const PREFIX: &str = "istio_agent";
/// Upper bounds of the histogram buckets of forwarded DNS queries, in seconds.
const DNS_SECONDS: [f64; 6] = [0.001, 0.005, 0.01, 0.1, 1.0, 5.0];

/// Requests to the CA.
#[derive(Debug, Default)]
pub struct SigningMetrics {
    requests: Counter,
    failures: Counter,
    milliseconds: Counter,
}

impl SigningMetrics {
    pub(crate) fn requested(&self, is_ok: bool, took: Duration) {
        self.requests.inc();
        if !is_ok {
            self.failures.inc();
        }
        self.milliseconds.inc_by(took.as_millis().try_into().unwrap_or(u64::MAX));
    }
}

/// Queries of the DNS proxy.
#[derive(Debug)]
pub struct DnsMetrics {
    pub(crate) requests: Counter,
    pub(crate) forwarded: Counter,
    pub(crate) failures: Counter,
    pub(crate) seconds: Histogram,
}

impl Default for DnsMetrics {
    fn default() -> Self {
        Self {
            requests: Counter::default(),
            forwarded: Counter::default(),
            failures: Counter::default(),
            seconds: Histogram::new(DNS_SECONDS),
        }
    }
}

/// Returns the metrics for `metrics` to add. `dns` is `None` if no queries are answered.
pub fn registry(
    metrics: &Arc<Metrics>,
    signing: Arc<SigningMetrics>,
    dns: Option<&DnsMetrics>,
    certificates: watch::Receiver<MeshCertificates>,
) -> Registry {
    let mut registry = Registry::with_prefix(PREFIX);
    if let Some(DnsMetrics { requests, forwarded, failures, seconds }) = dns {
        registry.register("dns_requests", "DNS queries", requests.clone());
        registry.register(
            "dns_upstream_requests",
            "DNS queries to the servers of the system",
            forwarded.clone(),
        );
        registry.register(
            "dns_upstream_failures",
            "DNS queries that no server of the system answered",
            failures.clone(),
        );
        let help = "Time until a server of the system answered a DNS query";
        registry.register("dns_upstream_request_duration_seconds", help, seconds.clone());
    }
    let metrics = Arc::downgrade(metrics);
    registry.register_collector(Box::new(NamedByIstio { metrics, signing, certificates }));
    registry
}

/// Metrics whose names no counter of OpenMetrics can have, or whose values depend on the time.
struct NamedByIstio {
    /// The metrics that this is a part of.
    metrics: Weak<Metrics>,
    signing: Arc<SigningMetrics>,
    certificates: watch::Receiver<MeshCertificates>,
}

impl fmt::Debug for NamedByIstio {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("NamedByIstio").finish_non_exhaustive()
    }
}

/// A label of a series: its name and value.
type Label = (&'static str, &'static str);

impl Collector for NamedByIstio {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), fmt::Error> {
        let Some(metrics) = self.metrics.upgrade() else { return Ok(()) };
        let mut family = |name: &str, help: &str, series: &[(Option<Label>, f64)]| {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Unknown)?;
            for (label, value) in series {
                match label {
                    Some(label) => family.encode_family(&[*label])?.encode_gauge(value)?,
                    None => family.encode_gauge(value)?,
                }
            }
            Ok(())
        };
        let csr = Some(("request_type", "csr"));
        let SigningMetrics { requests, failures, milliseconds } = &*self.signing;
        family("num_outgoing_requests", "Requests to the CA", &[(csr, count(requests))])?;
        family("num_failed_outgoing_requests", "Failed requests to the CA", &[(csr, count(failures))])?;
        let help = "Time that requests to the CA took, in milliseconds";
        family("outgoing_latency", help, &[(csr, count(milliseconds))])?;
        if let Some(seconds) = self.seconds_to_expiry() {
            let help = "Seconds until the certificate of the workload expires, negative if it has";
            family("cert_expiry_seconds", help, &[(Some(("resource_name", "default")), seconds)])?;
        }
        let streams = &metrics.vm.streams;
        let failures = count(&streams.connection_failures);
        family("istiod_connection_failures", "Failed connections to istiod", &[(None, failures)])?;
        let error = Some(("type", "error"));
        let help = "Streams that istiod or the network ended";
        family("istiod_connection_terminations", help, &[(error, count(&streams.connection_terminations))])?;
        let help = "Streams that Envoy ended";
        family("envoy_connection_terminations", help, &[(error, count(&streams.envoy_terminations))])?;
        family("xds_proxy_requests", "xDS requests of Envoy", &[(None, count(&streams.requests))])?;
        family("xds_proxy_responses", "xDS responses of istiod", &[(None, count(&streams.responses))])?;
        let help = "Time from the start of the agent to readiness";
        family("startup_duration_seconds", help, &[(None, metrics.startup_seconds())])?;
        let scraped = &metrics.scraped;
        family("scrapes_total", "Scrapes of the merged metrics", &[(None, count(&scraped.total))])?;
        let failures = [
            (Some(("type", "envoy")), count(&scraped.envoy_failures)),
            (Some(("type", "application")), count(&scraped.application_failures)),
        ];
        family("scrape_failures_total", "Failed scrapes of a source of metrics", &failures)
    }
}

impl NamedByIstio {
    #[expect(clippy::disallowed_methods, reason = "certificates expire by the clock of the machine")]
    fn seconds_to_expiry(&self) -> Option<f64> {
        let certificates = self.certificates.borrow();
        let end = pem::not_after(&certificates.pair.as_ref()?.chain)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "seconds since 1970 fit")]
        let end = end as f64;
        Some(end - now.as_secs_f64())
    }
}

#[expect(clippy::cast_precision_loss, reason = "values of metrics are floating point numbers")]
fn count(counter: &Counter) -> f64 {
    counter.get() as f64
}

#[cfg(test)]
mod tests;
