use envoy_types::pb::google::protobuf::Struct;
use proptest::prelude::*;
use prost::Message as _;
use serde_json::json;

use super::*;

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
    /// Also after another implementation has decoded and encoded the message.
    #[test]
    fn json_round_trips(value in json_value()) {
        let object = json!({ "value": value });
        let encoded = encode_struct(&object);
        prop_assert_eq!(decode_struct(&encoded), Ok(object.clone()));
        let other = Struct::decode(&*encoded).expect("a Struct").encode_to_vec();
        prop_assert_eq!(decode_struct(&other.into()), Ok(object));
    }
}

#[test]
fn nesting_is_limited() {
    for list in [false, true] {
        let mut value = json!(7);
        for depth in 0..2 * DEPTH_LIMIT {
            let object = json!({ "a": &value });
            assert_eq!(decode_struct(&encode_struct(&object)).is_ok(), depth < DEPTH_LIMIT, "{depth}");
            value = if list { json!([value]) } else { object };
        }
    }
}
