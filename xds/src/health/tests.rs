use envoy_types::pb::envoy::service::discovery::v3::{DeltaDiscoveryRequest, DiscoveryRequest};
use envoy_types::pb::google::rpc::Status;
use prost::Message as _;
use serde_json::json;

use super::*;
use crate::json::encode_struct;
use crate::{Node, Resource, Variant, any};

/// Checks each request in both variants, as another implementation decodes it: type URL, version,
/// nonce, code and message of the error, and the keys of the metadata.
#[test]
fn requests() {
    let node = |key: &str| {
        let locality = Some(["eu", "", "1"].map(str::to_owned));
        let (id, metadata) = ("sidecar~10.0.0.7".to_owned(), json!({ key: "shop" }));
        Node { id, locality, metadata, program: "agent".to_owned(), version: "1.0".to_owned() }
    };
    let ack = |error| ack_or_nack("v".to_owned(), "n".to_owned(), error);
    type Row<'a> = (Request, &'a str, &'a str, &'a str, Option<(i32, &'a str)>, &'a [&'a str]);
    let rows: [Row; 6] = [
        (first_request(node("NAMESPACE").encode()), ENDPOINT, "", "", None, &["NAMESPACE"]),
        (report(None, None), HEALTH_INFORMATION, "", "", None, &[]),
        (report(Some("bad"), None), HEALTH_INFORMATION, "", "", Some((13, "bad")), &[]),
        (
            report(Some("bad"), Some(node("R").encode_identity())),
            HEALTH_INFORMATION,
            "",
            "",
            Some((13, "bad")),
            &["R"],
        ),
        (ack(None), PROBE, "v", "n", None, &[]),
        (ack(Some("no")), PROBE, "v", "n", Some((3, "no")), &[]),
    ];
    for (request, type_url, version, nonce, error, names) in rows {
        let error = error.map(|(code, text)| Status { code, message: text.to_owned(), details: vec![] });
        let sotw = DiscoveryRequest::decode(request.encode(Variant::Sotw)).unwrap();
        assert_eq!(sotw.type_url, type_url);
        assert_eq!((sotw.version_info.as_str(), sotw.response_nonce.as_str()), (version, nonce));
        assert_eq!(sotw.error_detail, error);
        assert!(sotw.resource_names.is_empty());
        let metadata = sotw.node.as_ref().and_then(|node| node.metadata.clone()).unwrap_or_default();
        assert_eq!(metadata.fields.keys().collect::<Vec<_>>(), names);
        let delta = DeltaDiscoveryRequest::decode(request.encode(Variant::Delta)).unwrap();
        assert_eq!((&delta.node, &delta.type_url), (&sotw.node, &sotw.type_url));
        assert_eq!((delta.response_nonce, delta.error_detail), (sotw.response_nonce, error));
        assert!(delta.resource_names_subscribe.is_empty());
        let Some(node) = sotw.node else { continue };
        assert_eq!(node.id, "sidecar~10.0.0.7");
        assert_eq!(node.user_agent_name, if names == ["NAMESPACE"] { "agent" } else { "" });
        let locality = node.locality.unwrap();
        assert_eq!([locality.region, locality.zone, locality.sub_zone], ["eu", "", "1"]);
    }
}

#[test]
fn responses() {
    let hello = json!({"session": 17, "heartbeatSeconds": 60, "probe": {"tcpSocket": {"port": 1.5}}});
    let packed = any("", &encode_struct(&hello));
    let rows = [
        (HEALTH_INFORMATION, vec![], "Acknowledged(\"v\")"),
        (PROBE, vec![packed], "session\": Number(17)"),
        (PROBE, vec![], "hello: expected one resource, got 0"),
        (PROBE, vec![any("", &[0xff])], "hello: not a google.protobuf.Struct"),
        (ENDPOINT, vec![], "None"),
    ];
    for (type_url, resources, expected) in rows {
        let resource =
            |any| Resource { name: String::new(), version: String::new(), any, is_storable: false };
        let response = Response {
            type_url: type_url.to_owned(),
            version: "v".to_owned(),
            nonce: "n".to_owned(),
            resources: resources.into_iter().map(resource).collect(),
            ..Response::default()
        };
        let read = format!("{:?}", HealthResponse::new(&response));
        assert!(read.contains(expected), "{type_url}: {read}");
    }
}
