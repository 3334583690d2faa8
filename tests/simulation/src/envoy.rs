//! A model of an Envoy as an ADS client for clusters and endpoints: its requests, the resources
//! that it accepts, and the endpoints to which it would send requests. It implements both variants
//! of the protocol, keeps its resources when a stream ends, and reports their versions on the next
//! one.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use discovery::entries::Node;
use discovery::message::{Request, ResourceSubscription, Response, TypeUrl, Variant};
use envoy_types::pb::envoy::config::core::v3::address::Address;
use envoy_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use envoy_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use prost::Message as _;
use xds::parse_any;

use super::configuration::NAMESPACE;

#[derive(Debug)]
pub struct Envoy {
    variant: Variant,
    clusters: TypeState,
    assignments: TypeState,
    /// The endpoints to which it sends requests, by cluster.
    pub endpoints: BTreeMap<String, BTreeSet<String>>,
    /// Whether it has rejected a response and may therefore be out of date.
    pub has_rejected: bool,
    /// Whether the node was sent; only the first request of a stream carries it.
    node_sent: bool,
}

/// The resources of one type.
#[derive(Debug, Default)]
struct TypeState {
    /// The version in the state-of-the-world variant.
    version: String,
    nonce: String,
    /// Versions by resource name; the versions are empty in the state-of-the-world variant.
    resources: BTreeMap<String, String>,
}

impl Envoy {
    /// Returns an Envoy without resources.
    pub fn new(variant: Variant) -> Self {
        Self {
            variant,
            clusters: TypeState::default(),
            assignments: TypeState::default(),
            endpoints: BTreeMap::new(),
            has_rejected: false,
            node_sent: false,
        }
    }

    /// Returns the first requests of a new stream.
    pub fn opened(&mut self) -> Vec<Request> {
        self.clusters.nonce.clear();
        self.assignments.nonce.clear();
        self.node_sent = false;
        let mut requests = vec![self.first(TypeUrl::Cluster)];
        if !self.clusters.resources.is_empty() {
            requests.push(self.first(TypeUrl::Endpoint));
        }
        requests
    }

    /// Accepts or rejects a response and returns the next requests.
    pub fn on_response(&mut self, response: &Response, refuses: bool) -> Vec<Request> {
        if refuses {
            self.has_rejected = true;
            let type_state = self.type_state(&response.type_url);
            type_state.nonce.clone_from(&response.nonce);
            return vec![self.ack_or_nack(&response.type_url, Some("rejected".to_owned()))];
        }
        match response.type_url {
            TypeUrl::Cluster => self.take_clusters(response),
            TypeUrl::Endpoint => self.take_assignments(response),
            _ => Vec::new(),
        }
    }

    fn take_clusters(&mut self, response: &Response) -> Vec<Request> {
        let before: BTreeSet<String> = self.clusters.resources.keys().cloned().collect();
        self.clusters.apply(response, self.variant, self.variant == Variant::Sotw);
        let after: BTreeSet<String> = self.clusters.resources.keys().cloned().collect();
        let mut requests = vec![self.ack_or_nack(&TypeUrl::Cluster, None)];
        let warms = response.resources.iter().any(|resource| before.contains(&*resource.name));
        if before == after && !warms {
            return requests;
        }
        self.endpoints.retain(|name, _| after.contains(name));
        self.assignments.resources.retain(|name, _| after.contains(name));
        requests.push(match self.variant {
            Variant::Sotw => self.ack_or_nack(&TypeUrl::Endpoint, None),
            Variant::Delta => {
                let subscribe = after.difference(&before).cloned().collect();
                let unsubscribe = before.difference(&after).cloned().collect();
                let initial = BTreeMap::new();
                self.request(
                    &TypeUrl::Endpoint,
                    None,
                    ResourceSubscription::Delta { subscribe, unsubscribe, initial },
                    String::new(),
                )
            }
        });
        requests
    }

    fn take_assignments(&mut self, response: &Response) -> Vec<Request> {
        self.assignments.apply(response, self.variant, false);
        for resource in &response.resources {
            if self.clusters.resources.contains_key(&*resource.name) {
                self.endpoints.insert(resource.name.to_string(), addresses(&resource.any));
            }
        }
        for name in &response.removed {
            self.endpoints.remove(&**name);
        }
        vec![self.ack_or_nack(&TypeUrl::Endpoint, None)]
    }

    fn type_state(&mut self, type_url: &TypeUrl) -> &mut TypeState {
        if *type_url == TypeUrl::Cluster { &mut self.clusters } else { &mut self.assignments }
    }

    /// Returns the first request of a type on a stream.
    fn first(&mut self, type_url: TypeUrl) -> Request {
        let names: Vec<String> = match type_url {
            TypeUrl::Cluster => Vec::new(),
            _ => self.clusters.resources.keys().cloned().collect(),
        };
        let subscription = match self.variant {
            Variant::Sotw => {
                ResourceSubscription::Sotw { version: self.type_state(&type_url).version.clone(), names }
            }
            Variant::Delta => {
                let initial = self.type_state(&type_url).resources.clone();
                ResourceSubscription::Delta { subscribe: names, unsubscribe: Vec::new(), initial }
            }
        };
        self.request(&type_url, None, subscription, String::new())
    }

    /// Returns the ACK or NACK of the last response of a type.
    fn ack_or_nack(&mut self, type_url: &TypeUrl, error: Option<String>) -> Request {
        let names = match type_url {
            TypeUrl::Cluster => Vec::new(),
            _ => self.clusters.resources.keys().cloned().collect(),
        };
        let type_state = self.type_state(type_url);
        let (version, nonce) = (type_state.version.clone(), type_state.nonce.clone());
        let subscription = match self.variant {
            Variant::Sotw => ResourceSubscription::Sotw { version, names },
            Variant::Delta => ResourceSubscription::Delta {
                subscribe: Vec::new(),
                unsubscribe: Vec::new(),
                initial: BTreeMap::new(),
            },
        };
        self.request(type_url, error, subscription, nonce)
    }

    fn request(
        &mut self,
        type_url: &TypeUrl,
        error: Option<String>,
        subscription: ResourceSubscription,
        nonce: String,
    ) -> Request {
        let is_first = !std::mem::replace(&mut self.node_sent, true);
        let node = is_first.then(|| {
            let (id, namespace) = ("router~10.9.9.9~gateway.shop".to_owned(), Some(NAMESPACE.to_owned()));
            Box::new(Node { id, namespace, ..Node::default() })
        });
        Request { node, type_url: type_url.clone(), nonce, error, subscription, report: None }
    }
}

impl TypeState {
    /// Stores the resources of a response; with `is_all`, resources that are missing in it are
    /// removed.
    fn apply(&mut self, response: &Response, variant: Variant, is_all: bool) {
        self.nonce.clone_from(&response.nonce);
        if variant == Variant::Sotw {
            self.version.clone_from(&response.version);
        }
        if is_all {
            self.resources.clear();
        }
        for resource in &response.resources {
            self.resources.insert(resource.name.to_string(), resource.version.to_string());
        }
        for name in &response.removed {
            self.resources.remove(&**name);
        }
    }
}

/// Returns the addresses of an assignment.
fn addresses(any: &Bytes) -> BTreeSet<String> {
    let (_, value) = parse_any(any).expect("an Any");
    let assignment = ClusterLoadAssignment::decode(value).expect("an assignment");
    let endpoints = assignment.endpoints.into_iter().flat_map(|locality| locality.lb_endpoints);
    endpoints
        .filter_map(|endpoint| match endpoint.host_identifier? {
            HostIdentifier::Endpoint(endpoint) => match endpoint.address?.address? {
                Address::SocketAddress(address) => Some(address.address),
                _ => None,
            },
            HostIdentifier::EndpointName(_) => None,
        })
        .collect()
}
