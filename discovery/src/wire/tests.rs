//! Builds and decodes messages with envoy-types, since only another codec notices a field with a wrong
//! number.

use std::collections::HashMap as Map;

use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::core::v3::{Locality, Node as NodeMessage};
use envoy_types::pb::envoy::config::endpoint::v3::{ClusterLoadAssignment, LocalityLbEndpoints};
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
};
use envoy_types::pb::google::protobuf::{Any, Struct, UInt32Value};
use envoy_types::pb::google::rpc::Status;
use prost::Message as _;
use serde_json::{Value, json};

use super::*;
use crate::message::{Resource, Version};

const HEALTH: &str = "type.googleapis.com/istio.v1.HealthInformation";

/// Encodes JSON as a `Struct`, by way of a probe configuration.
fn metadata(json: &Value) -> Struct {
    let any = Any::decode(probe_config(json)).expect("an Any");
    Struct::decode(any.value.as_slice()).expect("a Struct")
}

fn node(json: &Value) -> NodeMessage {
    NodeMessage {
        id: "sidecar~10.0.0.7~vm-7.shop~shop.svc.cluster.local".to_owned(),
        metadata: Some(metadata(json)),
        locality: Some(Locality { region: "eu".to_owned(), zone: "a".to_owned(), sub_zone: String::new() }),
        user_agent_name: "app-health-agent".to_owned(),
        ..NodeMessage::default()
    }
}

fn sotw(request: &DiscoveryRequest) -> Result<Request, Malformed> {
    decode(request.encode_to_vec().into(), Variant::Sotw)
}

#[test]
fn node_metadata_is_decoded() {
    let metadata = json!({
        "NAMESPACE": "shop", "SERVICE_ACCOUNT": "payments", "INSTANCE_IPS": "10.0.0.7, fd00::7", "NETWORK": "dc1",
        "AUTO_REGISTER_GROUP": "payments", "LABELS": {"app": "pay", "odd": 1}, "PROXY_CONFIG": {"readinessProbe": {}},
        "APP_HEALTH": {"version": 1}, "WORKLOAD_ENTRY": "",
    });
    let type_url = TypeUrl::Cluster.as_str().to_owned();
    let request = DiscoveryRequest { node: Some(node(&metadata)), type_url, ..DiscoveryRequest::default() };
    let node = sotw(&request).expect("a request").node.expect("a node");
    assert_eq!(node.namespace.as_deref(), Some("shop"));
    assert_eq!(node.service_account.as_deref(), Some("payments"));
    assert_eq!(node.instance_ips, ["10.0.0.7", "fd00::7"]);
    assert_eq!((node.group.as_deref(), node.workload_entry), (Some("payments"), None));
    assert_eq!((node.network.as_deref(), node.locality.as_deref()), (Some("dc1"), Some("eu/a")));
    assert_eq!(node.labels.into_iter().collect::<Vec<_>>(), [("app".to_owned(), "pay".to_owned())]);
    assert!(node.readiness_probe && node.app_health);
}

/// Checks how a report with this error text and this `APP_HEALTH_REPORT` is decoded.
fn check_report(error: Option<&str>, report: Option<Value>, expected: &Result<&str, &str>) {
    let error_detail = error.map(|text| Status { code: 13, message: text.to_owned(), details: Vec::new() });
    let node = report.map(|report| node(&json!({"APP_HEALTH_REPORT": report})));
    let request =
        DiscoveryRequest { node, error_detail, type_url: HEALTH.to_owned(), ..DiscoveryRequest::default() };
    let found = sotw(&request).map(|request| match request.report.expect("a report") {
        Report::Istio { healthy, message } => format!("istio {healthy} {message}"),
        Report::AppHealth(report) => {
            format!("{} {} {}", report.acknowledgement(), report.state, report.message)
        }
    });
    match (&found, expected) {
        (Ok(found), Ok(expected)) => assert_eq!(found, expected),
        (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
        _ => panic!("{found:?}, not {expected:?}"),
    }
}

#[test]
fn both_report_formats_are_decoded() {
    check_report(None, None, &Ok("istio true "));
    check_report(Some("HTTP status 503"), None, &Ok("istio false HTTP status 503"));
    check_report(Some(""), None, &Ok("istio false no text"));
    check_report(Some("\u{1b}[2J"), None, &Ok("istio false \\x1b[2J"));
    let report = json!({"epoch": "9f", "generation": 7, "state": "Unhealthy", "reason": "HttpStatus", "message": "503"});
    check_report(Some("503"), Some(report), &Ok("9f/7 Unhealthy 503"));
    check_report(
        None,
        Some(json!({"epoch": "9f", "state": "Healthy"})),
        &Err("APP_HEALTH_REPORT.generation"),
    );
}

#[test]
fn oversized_and_malformed_requests_are_rejected() {
    let large = json!({"X": "x".repeat(METADATA_LIMIT)});
    let request = DiscoveryRequest { node: Some(node(&large)), ..DiscoveryRequest::default() };
    assert_eq!(sotw(&request), Err(Malformed::TooLarge("node.metadata", "64 KiB")));
    let resource_names = vec![String::new(); NAMES_LIMIT + 1];
    let request = DiscoveryRequest { resource_names, ..DiscoveryRequest::default() };
    assert_eq!(sotw(&request), Err(Malformed::TooLarge("resource_names", "65536 names")));
    for variant in [Variant::Sotw, Variant::Delta] {
        assert!(matches!(decode(Bytes::from_static(b"\xff\xff"), variant), Err(Malformed::Message(_))));
    }
    // A report with an error that cannot be read says nothing about the health.
    let error = Bytes::from_static(b"\x32\x02\x12\x01");
    assert!(matches!(decode(error, Variant::Sotw), Err(Malformed::Message(_))));
}

#[test]
fn delta_messages_are_decoded_and_encoded() {
    let request = DeltaDiscoveryRequest {
        type_url: TypeUrl::Endpoint.as_str().to_owned(),
        resource_names_subscribe: vec!["a".to_owned()],
        resource_names_unsubscribe: vec!["b".to_owned()],
        initial_resource_versions: Map::from([("a".to_owned(), "1f-2".to_owned())]),
        response_nonce: "7".to_owned(),
        ..DeltaDiscoveryRequest::default()
    };
    let request = decode(request.encode_to_vec().into(), Variant::Delta).expect("a request");
    assert_eq!((request.type_url, request.nonce.as_str()), (TypeUrl::Endpoint, "7"));
    let ResourceSubscription::Delta { subscribe, unsubscribe, initial } = request.subscription else {
        panic!("not delta")
    };
    assert_eq!((subscribe, unsubscribe), (vec!["a".to_owned()], vec!["b".to_owned()]));
    assert_eq!(initial.get("a").map(String::as_str), Some("1f-2"));
    assert_eq!(Version::parse("1f-2"), Some(Version { hash: 0x1f, endpoints: Some(2) }));
    assert_eq!(Version::parse("of another server"), None);
}

#[test]
fn responses_decode_as_envoy_messages() {
    let name = "outbound|80||pay.shop";
    let place = |locality: &str, address: &str| EndpointSpec {
        locality: locality.to_owned(),
        address: address.to_owned(),
        port: 8080,
        weight: 1,
    };
    let endpoints = [place("", "unix:///run/pay"), place("eu/a", "10.0.0.1"), place("eu/a", "10.0.0.2")];
    let version = Version { hash: 0xab, endpoints: Some(3) };
    let any = assignment(name, &endpoints);
    let response = Response {
        type_url: TypeUrl::Endpoint,
        version: "v".to_owned(),
        nonce: "7".to_owned(),
        resources: vec![std::sync::Arc::new(Resource { name: name.into(), version, any })],
        removed: vec!["gone".into()],
    };
    let mut bytes = BytesMut::new();
    encode(response.clone(), Variant::Sotw, &mut bytes);
    let message = DiscoveryResponse::decode(&*bytes).expect("an answer");
    assert_eq!((message.version_info.as_str(), message.nonce.as_str()), ("v", "7"));
    let found = ClusterLoadAssignment::decode(message.resources[0].value.as_slice()).expect("an assignment");
    let numbers: Vec<usize> = found.endpoints.iter().map(|locality| locality.lb_endpoints.len()).collect();
    assert_eq!((found.cluster_name.as_str(), numbers), (name, vec![1, 2]));

    let mut bytes = BytesMut::new();
    encode(response, Variant::Delta, &mut bytes);
    let message = DeltaDiscoveryResponse::decode(&*bytes).expect("an answer");
    assert_eq!(message.removed_resources, ["gone"]);
    let resource = &message.resources[0];
    assert_eq!((resource.name.as_str(), resource.version.as_str()), (name, "00000000000000ab-3"));
    assert_eq!(resource.resource.as_ref().map(|any| any.type_url.as_str()), Some(TypeUrl::Endpoint.as_str()));

    for http2 in [false, true] {
        let any = Any::decode(cluster(&ClusterSpec { name, http2 })).expect("an Any");
        let found = Cluster::decode(any.value.as_slice()).expect("a cluster");
        assert_eq!(!found.typed_extension_protocol_options.is_empty(), http2);
        let panic = found.common_lb_config.and_then(|config| config.healthy_panic_threshold);
        assert_eq!(panic.map(|percent| percent.value), Some(0.0));
    }
}

/// Each row has locality and weight of an endpoint. Returns the weight of each locality, and those of
/// its endpoints.
fn weights(rows: &[(&str, u32)]) -> Vec<(u32, Vec<u32>)> {
    let endpoint = |(number, (locality, weight)): (usize, &(&str, u32))| EndpointSpec {
        locality: (*locality).to_owned(),
        address: format!("10.0.0.{number}"),
        port: 8080,
        weight: *weight,
    };
    let endpoints: Vec<EndpointSpec> = rows.iter().enumerate().map(endpoint).collect();
    let any = Any::decode(assignment("a", &endpoints)).expect("an Any");
    let found = ClusterLoadAssignment::decode(any.value.as_slice()).expect("an assignment");
    let value = |weight: Option<UInt32Value>| weight.expect("a weight").value;
    let of_locality = |locality: LocalityLbEndpoints| {
        let endpoints = locality.lb_endpoints.into_iter().map(|it| value(it.load_balancing_weight));
        (value(locality.load_balancing_weight), endpoints.collect())
    };
    found.endpoints.into_iter().map(of_locality).collect()
}

#[test]
fn weights_of_localities_are_those_of_their_endpoints() {
    let found = weights(&[("", 1), ("eu/a", 3), ("eu/a", 4), ("eu/b", 9)]);
    assert_eq!(found, [(1, vec![1]), (7, vec![3, 4]), (9, vec![9])]);
    // Envoy rejects an assignment whose weights add up to more than 32 bits.
    let most = i32::MAX.unsigned_abs();
    let found = weights(&[("eu/a", most), ("eu/a", most), ("eu/b", most), ("eu/b", 1)]);
    let sum: u64 = found.iter().map(|(weight, _)| u64::from(*weight)).sum();
    assert!(sum <= u64::from(u32::MAX), "{found:?}");
    let [(_, first), (_, second)] = found.as_slice() else { panic!("{found:?}") };
    assert!(first[0] == first[1] && first[0] == second[0] && second[1] == 1, "{found:?}");
}
