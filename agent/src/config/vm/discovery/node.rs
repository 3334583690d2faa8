//! The node identity that the first request of a stream carries.

use std::net::IpAddr;

use serde_json::{Map, Value, json};
use workload_health::health_report::{
    APP_HEALTH, AUTO_REGISTER_GROUP, CLUSTER_ID, INSTANCE_IPS, LABELS, NAMESPACE, NETWORK, PROTOCOL_VERSION,
    SERVICE_ACCOUNT, WORKLOAD_ENTRY,
};
use workload_health::workload_group::WorkloadGroup;

use crate::args::DiscoveryArgs;
use crate::config::Environment;
use agent_output::exit::Failure;
use xds::Node;

/// Istio's variable with the cluster ID, and the default.
const ISTIO_CLUSTER_ID: &str = "ISTIO_META_CLUSTER_ID";
const DEFAULT_CLUSTER_ID: &str = "Kubernetes";
/// Default namespace and service account.
const DEFAULT_NAME: &str = "default";

/// Builds the node identity, with Istio's metadata fields and those of app-health, but without the
/// probe.
pub(super) fn node(
    args: &DiscoveryArgs,
    group: Option<&WorkloadGroup>,
    ip: IpAddr,
    hostname: &str,
    environment: &Environment,
) -> Result<Node, Failure> {
    let (entry_key, entry) = match (&args.workload_entry, &args.group, group) {
        (Some(_), Some(_), _) => {
            return Err(Failure::Usage(
                "--group and --workload-entry are mutually exclusive: set only one of them".to_owned(),
            ));
        }
        (Some(entry), None, _) => (WORKLOAD_ENTRY, entry.clone()),
        (None, Some(group), _) => (AUTO_REGISTER_GROUP, group.clone()),
        (None, None, Some(group)) => (AUTO_REGISTER_GROUP, group.name.clone()),
        (None, None, None) => {
            return Err(Failure::Usage(
                "--discovery: set --workload-group, --group or --workload-entry to name the workload"
                    .to_owned(),
            ));
        }
    };
    let template = group.map(|group| &group.template);
    let or_default = |flag: &Option<String>, file: Option<&String>| {
        flag.as_ref().or(file).map_or(DEFAULT_NAME, String::as_str).to_owned()
    };
    let namespace = or_default(&args.namespace, group.and_then(|group| group.namespace.as_ref()));
    let service_account =
        or_default(&args.service_account, template.and_then(|template| template.service_account.as_ref()));
    let cluster = environment.text(ISTIO_CLUSTER_ID)?.unwrap_or(DEFAULT_CLUSTER_ID);
    let mut metadata = json!({
        NAMESPACE: namespace,
        SERVICE_ACCOUNT: service_account,
        INSTANCE_IPS: ip.to_string(),
        entry_key: entry,
        CLUSTER_ID: cluster,
        APP_HEALTH: { "version": PROTOCOL_VERSION },
    });
    if let Value::Object(fields) = &mut metadata {
        fields.extend(args.network.clone().map(|network| (NETWORK.to_owned(), network.into())));
        let labels: Map<String, Value> =
            args.label.iter().map(|(key, value)| (key.clone(), value.as_str().into())).collect();
        fields.extend((!labels.is_empty()).then(|| (LABELS.to_owned(), labels.into())));
    }
    Ok(Node {
        id: format!("sidecar~{ip}~{hostname}.{namespace}~{namespace}.svc.cluster.local"),
        locality: args.locality.clone(),
        metadata,
        program: "app-health-agent".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}
