use proptest::prelude::*;
use serde_json::json;

use super::*;

fn node() -> Node {
    let locality = Some(["eu", "a", "1"].map(str::to_owned));
    Node {
        id: "sidecar~10.0.0.7~host.shop~shop.svc".into(),
        locality,
        metadata: json!({"NAMESPACE": "shop"}),
    }
}

fn report(error: Option<&str>, extension: bool) -> Request {
    let extension = extension.then(|| Box::new(("id".to_owned(), json!({"generation": 7}))));
    Request::Report { error: error.map(str::to_owned), extension }
}

fn ack_or_nack(nack_reason: Option<&str>) -> Request {
    let nack_reason = nack_reason.map(str::to_owned);
    Request::AckOrNack { version: "v".into(), nonce: "n".into(), nack_reason }
}

/// Checks each request in both variants: type URL, version, nonce, code and message of the error,
/// and the keys of the metadata.
#[test]
fn requests() {
    type Row<'a> = (Request, &'a str, &'a str, &'a str, Option<(i32, &'a str)>, &'a [&'a str]);
    let rows: [Row; 6] = [
        (Request::First(Box::new(node())), CLUSTER_LOAD_ASSIGNMENT, "", "", None, &["NAMESPACE"]),
        (report(None, false), HEALTH_INFORMATION, "", "", None, &[]),
        (report(Some("bad"), false), HEALTH_INFORMATION, "", "", Some((13, "bad")), &[]),
        (report(Some("bad"), true), HEALTH_INFORMATION, "", "", Some((13, "bad")), &["APP_HEALTH_REPORT"]),
        (ack_or_nack(None), PROBE_TYPE, "v", "n", None, &[]),
        (ack_or_nack(Some("no")), PROBE_TYPE, "v", "n", Some((3, "no")), &[]),
    ];
    for (request, type_url, version, nonce, error, names) in rows {
        let error = error.map(|(code, text)| status(code, text.to_owned()));
        let sotw = to_sotw(request.clone());
        assert_eq!(sotw.type_url, type_url);
        assert_eq!((sotw.version_info.as_str(), sotw.response_nonce.as_str()), (version, nonce));
        assert_eq!(sotw.error_detail, error);
        assert!(sotw.resource_names.is_empty());
        let metadata = sotw.node.as_ref().and_then(|node| node.metadata.clone()).unwrap_or_default();
        let keys: Vec<&str> = metadata.fields.keys().map(String::as_str).collect();
        assert_eq!(keys, names);
        let delta = to_delta(request);
        assert_eq!((&delta.node, &delta.type_url), (&sotw.node, &sotw.type_url));
        assert_eq!((delta.response_nonce, delta.error_detail), (sotw.response_nonce, error));
        assert!(delta.resource_names_subscribe.is_empty());
    }
}

#[test]
fn the_first_request_carries_the_node() {
    let sent = to_sotw(Request::First(Box::new(node()))).node.unwrap();
    assert_eq!(sent.id, "sidecar~10.0.0.7~host.shop~shop.svc");
    assert_eq!(sent.user_agent_name, "app-health-agent");
    let locality = sent.locality.unwrap();
    assert_eq!([locality.region, locality.zone, locality.sub_zone], ["eu", "a", "1"]);
}

fn packed(value: Value) -> Any {
    Any { type_url: String::new(), value: to_struct(value).encode_to_vec() }
}

#[test]
fn responses() {
    let hello = json!({"session": 17, "heartbeatSeconds": 60, "probe": {"tcpSocket": {"port": 1.5}}});
    let malformed = Any { type_url: String::new(), value: vec![0xff] };
    let rows = [
        (HEALTH_INFORMATION, vec![], "Acknowledged(\"v\")"),
        (PROBE_TYPE, vec![packed(hello)], "session\": Number(17)"),
        (PROBE_TYPE, vec![], "hello: expected one resource, got 0"),
        (PROBE_TYPE, vec![malformed], "hello: not a google.protobuf.Struct"),
        (CLUSTER_LOAD_ASSIGNMENT, vec![], "None"),
    ];
    for (type_url, resources, expected) in rows {
        let read = format!("{:?}", to_response(type_url, "v".into(), "n".into(), resources));
        assert!(read.contains(expected), "{type_url}: {read}");
    }
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        (-1e6f64..1e6).prop_map(|number| Value::from(number + 0.5_f64.copysign(number))),
        ".{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(".{0,4}", inner, 0..4).prop_map(|map| map.into_iter().collect()),
        ]
    })
}

proptest! {
    #[test]
    fn json_round_trips(value in json_value()) {
        let object = json!({ "value": value });
        prop_assert_eq!(from_struct(to_struct(object.clone())), object);
    }
}
