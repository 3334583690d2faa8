//! The response of `GET /debug/xds`.

use std::time::Duration;

use serde_json::{Value, json};
use workload_health::text::printable;
use xds::Variant;
use xds_proxy::{ProxyView, TypeView};

use agent_state::state::age_text;

/// Returns the view as JSON. Times are ages, and unknown values are `null`.
pub fn to_json(view: &ProxyView) -> Value {
    let ProxyView {
        envoy,
        connected,
        streams,
        error,
        age,
        stale,
        is_health_refused,
        not_subscribed,
        not_stored,
        store_error,
        types,
    } = view;
    json!({
        "envoy": envoy.map(|variant| match variant {
            Variant::Sotw => "sotw",
            Variant::Delta => "delta",
        }),
        "connected": connected.is_some(),
        "connectedMs": connected.map(millis),
        "streams": streams,
        "lastError": error,
        "lastGoodAgeMs": age.map(millis),
        "stale": stale.map(age_text),
        "staleMs": stale.map(millis),
        "healthRefused": is_health_refused,
        "notSubscribed": not_subscribed,
        "typesNotStored": not_stored,
        "storeError": store_error,
        "types": types.iter().map(type_json).collect::<Vec<_>>(),
    })
}

fn type_json(view: &TypeView) -> Value {
    let TypeView {
        type_url,
        names,
        version,
        resources,
        size,
        not_stored,
        in_flight,
        is_stale,
        responses,
        bytes,
        acks,
        nacks,
        unchanged,
        from_cache,
        last_nack,
        last_response,
    } = view;
    json!({
        "type": printable(type_url),
        "names": names,
        "version": printable(version),
        "resources": resources,
        "resourceBytes": size,
        "notStored": not_stored,
        "unacknowledged": in_flight,
        "stale": is_stale,
        "responses": responses,
        "responseBytes": bytes,
        "acks": acks,
        "nacks": nacks,
        "unchanged": unchanged,
        "fromCache": from_cache,
        "lastNack": last_nack.as_ref().map(|(text, ago)| json!({"text": printable(text), "agoMs": millis(*ago)})),
        "lastResponseAgoMs": last_response.map(millis),
    })
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
