//! Compares every message with the codec of envoy-types. The servers and clients of the other tests use
//! this crate on both ends of a stream, so they cannot notice a field with a wrong number.

use envoy_types::pb::envoy::config::core::v3::node::UserAgentVersionType;
use envoy_types::pb::envoy::config::core::v3::{Locality, Node as NodeMessage};
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse,
    Resource as ResourceMessage,
};
use envoy_types::pb::google::protobuf::{Any, Struct};
use envoy_types::pb::google::rpc::Status;
use prost::Message as _;
use serde_json::json;

use super::super::*;
use crate::type_url::CLUSTER;

fn node_message(metadata: &[u8]) -> NodeMessage {
    let [region, zone, sub_zone] = ["eu", "a", "1"].map(str::to_owned);
    NodeMessage {
        id: "sidecar~10.0.0.7".to_owned(),
        metadata: Some(Struct::decode(metadata).unwrap()),
        locality: Some(Locality { region, zone, sub_zone }),
        user_agent_name: "agent".to_owned(),
        user_agent_version_type: Some(UserAgentVersionType::UserAgentVersion("1.0".to_owned())),
        ..NodeMessage::default()
    }
}

#[test]
fn nodes() {
    let metadata = json!({ "NAMESPACE": "shop" });
    let message = node_message(&json::encode_struct(&metadata));
    let locality = ["eu", "a", "1"].map(str::to_owned);
    let node = Node {
        id: message.id.clone(),
        locality: Some(locality),
        metadata,
        program: "agent".to_owned(),
        version: "1.0".to_owned(),
    };
    assert_eq!(NodeMessage::decode(node.encode()).unwrap(), message);
    assert_eq!(Node::parse(&message.encode_to_vec().into(), json::decode_struct), Ok(node));
}

/// Each message is read and written again.
#[test]
fn requests() {
    let status = Status { code: 13, message: "bad".to_owned(), details: vec![] };
    let sotw = DiscoveryRequest {
        version_info: "v".to_owned(),
        node: Some(node_message(b"")),
        resource_names: ["a", "b"].map(str::to_owned).into(),
        type_url: CLUSTER.to_owned(),
        response_nonce: "n".to_owned(),
        error_detail: Some(status.clone()),
        ..DiscoveryRequest::default()
    };
    let request = Request::parse(&sotw.encode_to_vec().into(), Variant::Sotw).unwrap();
    assert_eq!((&*request.type_url, &*request.version, &*request.nonce), (CLUSTER, "v", "n"));
    assert_eq!(request.subscribe, ["a", "b"]);
    assert_eq!(request.subscription, Request::subscription_to(["a", "b"]));
    assert_eq!(request.error, Some(Request::status(13, "bad")));
    assert_eq!(DiscoveryRequest::decode(request.encode(Variant::Sotw)).unwrap(), sotw);

    let delta = DeltaDiscoveryRequest {
        node: sotw.node,
        type_url: CLUSTER.to_owned(),
        resource_names_subscribe: ["a", "b"].map(str::to_owned).into(),
        resource_names_unsubscribe: vec!["c".to_owned()],
        initial_resource_versions: [("d".to_owned(), "v".to_owned())].into(),
        response_nonce: "n".to_owned(),
        error_detail: Some(status),
        ..DeltaDiscoveryRequest::default()
    };
    let request = Request::parse(&delta.encode_to_vec().into(), Variant::Delta).unwrap();
    assert_eq!((&*request.type_url, &*request.version, &*request.nonce), (CLUSTER, "", "n"));
    assert_eq!((request.subscribe.len(), &*request.unsubscribe), (2, &["c".to_owned()][..]));
    assert_eq!(request.initial_versions, [("d".to_owned(), "v".to_owned())]);
    assert_eq!(request.error, Some(Request::status(13, "bad")));
    assert_eq!(DeltaDiscoveryRequest::decode(request.encode(Variant::Delta)).unwrap(), delta);
}

#[test]
fn responses() {
    let cluster = Any { type_url: CLUSTER.to_owned(), value: b"\x0a\x01a".to_vec() };
    let any = any(CLUSTER, &cluster.value);
    let head = ResponseHead { type_url: CLUSTER, version: "v", nonce: "n" };
    let resource = || [ResourceRef { name: "a", version: "7", any: &any }];

    let written = head.encode(Variant::Sotw, resource(), []);
    let sotw = DiscoveryResponse {
        version_info: "v".to_owned(),
        resources: vec![cluster.clone()],
        type_url: CLUSTER.to_owned(),
        nonce: "n".to_owned(),
        ..DiscoveryResponse::default()
    };
    assert_eq!(DiscoveryResponse::decode(written).unwrap(), sotw);
    let read = Response::parse(&sotw.encode_to_vec().into(), Variant::Sotw).unwrap();
    assert_eq!((&*read.type_url, &*read.version, &*read.nonce), (CLUSTER, "v", "n"));
    assert_eq!((&*read.resources[0].name, &read.resources[0].any), ("a", &any));

    let written = head.encode(Variant::Delta, resource(), ["b"]);
    let delta = DeltaDiscoveryResponse {
        system_version_info: "v".to_owned(),
        resources: vec![ResourceMessage {
            name: "a".to_owned(),
            version: "7".to_owned(),
            resource: Some(cluster),
            ..ResourceMessage::default()
        }],
        type_url: CLUSTER.to_owned(),
        nonce: "n".to_owned(),
        removed_resources: vec!["b".to_owned()],
        ..DeltaDiscoveryResponse::default()
    };
    assert_eq!(DeltaDiscoveryResponse::decode(written).unwrap(), delta);
    let read = Response::parse(&delta.encode_to_vec().into(), Variant::Delta).unwrap();
    assert_eq!((&*read.type_url, &*read.version, &*read.nonce), (CLUSTER, "v", "n"));
    assert_eq!((&*read.resources[0].name, &*read.resources[0].version), ("a", "7"));
    assert_eq!((&read.resources[0].any, &*read.removed), (&any, &["b".to_owned()][..]));
}
