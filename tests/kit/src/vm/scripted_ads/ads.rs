//! The ADS service: both variants of the protocol with one script.

use std::pin::Pin;
use std::sync::Arc;

use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_server::AggregatedDiscoveryService;
use envoy_types::pb::envoy::service::discovery::v3::{
    DeltaDiscoveryRequest, DeltaDiscoveryResponse, DiscoveryRequest, DiscoveryResponse, Resource,
};
use envoy_types::pb::google::protobuf::{Any, ListValue, Struct, Value as ProtoValue, value::Kind};
use futures_util::{Stream, StreamExt as _};
use prost::Message as _;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::{HEALTH_INFORMATION, PROBE_TYPE, Script, Seen, Shared, lock};

/// The variant of the protocol on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// State of the world.
    Sotw,
    Delta,
}

pub(super) struct Ads(pub(super) Arc<Shared>);

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;
type Requests = Pin<Box<dyn Stream<Item = Result<Seen, Status>> + Send>>;

/// A response of either variant: type, version, nonce, resources.
struct Answer(&'static str, String, String, Vec<Any>);

#[tonic::async_trait]
impl AggregatedDiscoveryService for Ads {
    type StreamAggregatedResourcesStream = Answers<DiscoveryResponse>;
    type DeltaAggregatedResourcesStream = Answers<DeltaDiscoveryResponse>;

    async fn stream_aggregated_resources(
        &self,
        request: Request<Streaming<DiscoveryRequest>>,
    ) -> Result<Response<Self::StreamAggregatedResourcesStream>, Status> {
        let requests = request.into_inner().map(|message| message.map(from_sotw));
        let answers = self.answers(Box::pin(requests)).await?;
        Ok(Response::new(Box::pin(answers.map(|answer| answer.map(to_sotw)))))
    }

    async fn delta_aggregated_resources(
        &self,
        request: Request<Streaming<DeltaDiscoveryRequest>>,
    ) -> Result<Response<Self::DeltaAggregatedResourcesStream>, Status> {
        let requests = request.into_inner().map(|message| message.map(from_delta));
        let answers = self.answers(Box::pin(requests)).await?;
        Ok(Response::new(Box::pin(answers.map(|answer| answer.map(to_delta)))))
    }
}

impl Ads {
    async fn answers(&self, requests: Requests) -> Result<ReceiverStream<Result<Answer, Status>>, Status> {
        let (answer, answers) = mpsc::channel(8);
        let shared = self.0.clone();
        let number = {
            let mut streams = lock(&shared.streams);
            *streams += 1;
            *streams - 1
        };
        let is_plain = lock(&shared.script).hello.is_none();
        let speaking = speak(shared, number, requests, answer);
        if is_plain {
            // Without a response there are no headers either.
            return Err(speaking.await);
        }
        tokio::spawn(speaking);
        Ok(ReceiverStream::new(answers))
    }
}

/// Serves one stream until it ends.
async fn speak(
    shared: Arc<Shared>,
    number: usize,
    mut requests: Requests,
    answer: mpsc::Sender<Result<Answer, Status>>,
) -> Status {
    let script = || lock(&shared.script).clone();
    let opened = Instant::now();
    let mut stream = OneStream { shared: &shared, number, initialized: false, nonces: 0, hello: None };
    loop {
        let changed = shared.changed.notified();
        let Script { ends, .. } = script();
        if let Some(message) = stream.hello_if_new(&script()) {
            // Fails if the client has disconnected.
            let _ = answer.send(Ok(message)).await;
        }
        let end = async {
            match ends {
                Some((after, code)) => {
                    sleep(after.saturating_sub(opened.elapsed())).await;
                    Status::new(code, "ended by the script")
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            status = end => {
                let _ = answer.send(Err(status.clone())).await;
                return status;
            }
            () = changed => {}
            message = requests.next() => {
                let Some(Ok(seen)) = message else { return Status::ok("") };
                match stream.take(seen, &script()) {
                    Ok(message) => {
                        if let Some(message) = message {
                            let _ = answer.send(Ok(message)).await;
                        }
                    }
                    Err(status) => {
                        let _ = answer.send(Err(status.clone())).await;
                        return status;
                    }
                }
            }
        }
    }
}

struct OneStream<'a> {
    shared: &'a Shared,
    number: usize,
    initialized: bool,
    nonces: usize,
    hello: Option<Value>,
}

impl OneStream<'_> {
    fn hello_if_new(&mut self, script: &Script) -> Option<Answer> {
        if !self.initialized || script.hello == self.hello {
            return None;
        }
        self.hello.clone_from(&script.hello);
        let hello = self.hello.clone()?;
        let version = format!("v{hello}");
        let content = Any {
            type_url: "type.googleapis.com/google.protobuf.Struct".to_owned(),
            value: to_struct(&hello).encode_to_vec(),
        };
        Some(Answer(PROBE_TYPE, version, self.nonce(), vec![content]))
    }

    fn nonce(&mut self) -> String {
        self.nonces += 1;
        format!("{}-{}", self.number, self.nonces)
    }

    fn take(&mut self, seen: Seen, script: &Script) -> Result<Option<Answer>, Status> {
        let seen = Seen { stream: self.number, ..seen };
        lock(&self.shared.seen).push(seen.clone());
        if !self.initialized {
            if seen.is_report() {
                return Ok(None);
            }
            if seen.node.as_ref().is_none_or(|(id, ..)| id.is_empty()) {
                return Err(Status::invalid_argument("missing node information"));
            }
            self.initialized = true;
            return Ok(None);
        }
        if !seen.is_report() {
            return Ok(None);
        }
        {
            let mut script = lock(&self.shared.script);
            if script.forgets > 0 {
                script.forgets -= 1;
                return Ok(None);
            }
        }
        *lock(&self.shared.health) = Some(match &seen.error {
            None => Ok(()),
            Some((_, message)) => Err(message.clone()),
        });
        if !seen.is_ours() || !script.acknowledges {
            return Ok(None);
        }
        let report = seen.metadata("APP_HEALTH_REPORT");
        let version = format!("{}/{}", report["epoch"].as_str().unwrap_or_default(), report["generation"]);
        Ok(Some(Answer(HEALTH_INFORMATION, version, self.nonce(), Vec::new())))
    }
}

fn from_sotw(message: DiscoveryRequest) -> Seen {
    Seen {
        stream: 0,
        at: Instant::now(),
        variant: Variant::Sotw,
        type_url: message.type_url,
        version: message.version_info,
        nonce: message.response_nonce,
        names: message.resource_names.len() + message.resource_locators.len(),
        error: message.error_detail.map(|status| (status.code, status.message)),
        node: message.node.map(from_node),
    }
}

fn from_delta(message: DeltaDiscoveryRequest) -> Seen {
    Seen {
        stream: 0,
        at: Instant::now(),
        variant: Variant::Delta,
        type_url: message.type_url,
        version: String::new(),
        nonce: message.response_nonce,
        names: message.resource_names_subscribe.len()
            + message.resource_names_unsubscribe.len()
            + message.initial_resource_versions.len(),
        error: message.error_detail.map(|status| (status.code, status.message)),
        node: message.node.map(from_node),
    }
}

fn from_node(node: Node) -> (String, String, [String; 3], Value) {
    let locality = node.locality.unwrap_or_default();
    let metadata = Kind::StructValue(node.metadata.unwrap_or_default());
    let locality = [locality.region, locality.zone, locality.sub_zone];
    (node.id, node.user_agent_name, locality, from_kind(Some(metadata)))
}

fn to_sotw(answer: Answer) -> DiscoveryResponse {
    let Answer(type_url, version_info, nonce, resources) = answer;
    let type_url = type_url.to_owned();
    DiscoveryResponse { type_url, version_info, nonce, resources, ..DiscoveryResponse::default() }
}

fn to_delta(answer: Answer) -> DeltaDiscoveryResponse {
    let Answer(type_url, system_version_info, nonce, resources) = answer;
    let resource = |content| Resource {
        name: "probe".to_owned(),
        version: system_version_info.clone(),
        resource: Some(content),
        ..Resource::default()
    };
    let resources = resources.into_iter().map(resource).collect();
    let type_url = type_url.to_owned();
    DeltaDiscoveryResponse { type_url, system_version_info, nonce, resources, ..Default::default() }
}

fn to_struct(value: &Value) -> Struct {
    let fields = value.as_object().into_iter().flatten();
    Struct { fields: fields.map(|(name, value)| (name.clone(), to_proto(value))).collect() }
}

fn to_proto(value: &Value) -> ProtoValue {
    let kind = match value {
        Value::Null => Kind::NullValue(0),
        Value::Bool(value) => Kind::BoolValue(*value),
        Value::Number(number) => Kind::NumberValue(number.as_f64().expect("a number")),
        Value::String(text) => Kind::StringValue(text.clone()),
        Value::Array(values) => Kind::ListValue(ListValue { values: values.iter().map(to_proto).collect() }),
        Value::Object(_) => Kind::StructValue(to_struct(value)),
    };
    ProtoValue { kind: Some(kind) }
}

fn from_kind(kind: Option<Kind>) -> Value {
    match kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(value)) => value.into(),
        #[expect(clippy::cast_possible_truncation, reason = "the agent sends whole numbers")]
        Some(Kind::NumberValue(number)) => (number as i64).into(),
        Some(Kind::StringValue(text)) => text.into(),
        Some(Kind::ListValue(list)) => list.values.into_iter().map(|value| from_kind(value.kind)).collect(),
        Some(Kind::StructValue(content)) => {
            content.fields.into_iter().map(|(name, value)| (name, from_kind(value.kind))).collect()
        }
    }
}
