//! Resources of the agent itself, on Envoy's stream to the control plane. Envoy never sees them.
//!
//! Each type has one resource. It is requested after Envoy's first request for listeners, as Istio's agent does.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use xds::{Request, Response, parse_any};

use super::types::{Effect, OwnResource};
use super::{Proxy, Upstream};
use crate::last_good::StoredResource;

/// Status code of `google.rpc.Code` for a resource that is refused.
const INTERNAL: u64 = 13;

impl Proxy {
    /// Subscribes to the agent's types, once on each stream.
    pub(super) fn request_own(&mut self, effects: &mut Vec<Effect>) {
        let Upstream::Open(open) = &mut self.upstream else { return };
        if !open.is_listening || std::mem::replace(&mut open.has_own, true) {
            return;
        }
        for type_url in &self.settings.own_types {
            let request = Request { type_url: type_url.clone(), ..Request::default() };
            effects.push(Effect::SendUpstream(request.encode(open.variant)));
        }
    }

    /// Returns true if the response is of one of the agent's types. One without a resource changes nothing.
    pub(super) fn own_response(&mut self, response: &Response, effects: &mut Vec<Effect>) -> bool {
        if !self.settings.own_types.contains(&response.type_url) {
            return false;
        }
        if let Some(resource) = response.resources.first() {
            effects.push(Effect::Own(OwnResource {
                type_url: response.type_url.clone(),
                version: response.version.clone(),
                nonce: response.nonce.clone(),
                stream: self.stream,
                any: resource.any.clone(),
            }));
        }
        true
    }

    /// Answers the control plane, and stores a resource that is in use.
    pub(super) fn own_checked(
        &mut self,
        now: Duration,
        resource: OwnResource,
        result: Result<(), String>,
        effects: &mut Vec<Effect>,
    ) {
        let OwnResource { type_url, version, nonce, stream, any } = resource;
        if let Upstream::Open(open) = self.upstream
            && stream == self.stream
        {
            let error = result.as_ref().err().map(|text| Request::status(INTERNAL, text));
            let request = Request {
                type_url: type_url.clone(),
                version: version.clone(),
                nonce,
                error,
                ..Request::default()
            };
            effects.push(Effect::SendUpstream(request.encode(open.variant)));
        }
        if result.is_err() || self.settings.max_age.is_none() {
            return;
        }
        let good = Arc::make_mut(self.good.0.entry(type_url.clone()).or_default());
        // The response may be much larger.
        good.insert("", StoredResource { version, any: Bytes::copy_from_slice(&any) });
        if self.good.0.get(&type_url).is_some_and(|good| self.exceeded(good).is_some()) {
            self.good.0.remove(&type_url);
        }
        self.storage.changed(now);
    }

    /// Returns the stored resource of one of the agent's types: the content of its `google.protobuf.Any`.
    pub fn stored_own(&self, type_url: &str) -> Option<Bytes> {
        let (_, stored) = self.good.0.get(type_url)?.resources().pop()?;
        parse_any(&stored.any).ok().map(|(_, content)| content)
    }
}
