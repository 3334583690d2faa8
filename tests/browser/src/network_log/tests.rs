use serde_json::json;

use super::{NetworkEvent, parse};

#[test]
fn requests_and_server_sent_events_are_found() {
    let entry = |method, parameters| json!({"message": {"method": method, "params": parameters}}).to_string();
    let request = entry("Network.requestWillBeSent", json!({"request": {"url": "http://127.0.0.1/events"}}));
    assert_eq!(parse(&request), Some(NetworkEvent::Request("http://127.0.0.1/events".to_owned())));
    let sent =
        entry("Network.eventSourceMessageReceived", json!({"eventName": "state", "data": "{\"now\": 5}"}));
    assert_eq!(parse(&sent), Some(NetworkEvent::ServerSent(json!({"now": 5}))));
    assert_eq!(parse(&entry("Network.dataReceived", json!({"dataLength": 5}))), None);
    assert_eq!(parse("no JSON"), None);
}
