//! A model of an Envoy as an ADS client for clusters and endpoints: its requests, the resources
//! that it accepts, and the endpoints to which it would send requests. It implements both variants
//! of the protocol, keeps its resources when a stream ends, and reports their versions on the next
//! one.

use std::collections::{BTreeMap, BTreeSet};

use discovery::entries::Node;
use discovery::message::{Request, ResourceSubscription, Response, TypeUrl, Variant};
use envoy_types::pb::envoy::config::core::v3::address::Address;
use envoy_types::pb::envoy::config::endpoint::v3::ClusterLoadAssignment;
use envoy_types::pb::envoy::config::endpoint::v3::lb_endpoint::HostIdentifier;
use envoy_types::pb::google::protobuf::Any;
use prost::Message as _;

use super::configuration::NAMESPACE;

#[derive(Debug)]
pub struct Envoy {
    variant: Variant,
    clusters: Held,
    assignments: Held,
    /// The endpoints to which it sends requests, by cluster.
    pub endpoints: BTreeMap<String, BTreeSet<String>>,
    /// Whether it has rejected a response and may therefore be out of date.
    pub has_refused: bool,
    /// Whether the node was sent; only the first request of a stream carries it.
    said_node: bool,
}

/// The resources of one type.
#[derive(Debug, Default)]
struct Held {
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
            clusters: Held::default(),
            assignments: Held::default(),
            endpoints: BTreeMap::new(),
            has_refused: false,
            said_node: false,
        }
    }

    /// Returns the first requests of a new stream.
    pub fn opened(&mut self) -> Vec<Request> {
        self.clusters.nonce.clear();
        self.assignments.nonce.clear();
        self.said_node = false;
        let mut requests = vec![self.first(TypeUrl::Cluster)];
        if !self.clusters.resources.is_empty() {
            requests.push(self.first(TypeUrl::Endpoint));
        }
        requests
    }

    /// Accepts or rejects a response and returns the next requests.
    pub fn heard(&mut self, response: &Response, refuses: bool) -> Vec<Request> {
        if refuses {
            self.has_refused = true;
            let held = self.held(&response.type_url);
            held.nonce.clone_from(&response.nonce);
            return vec![self.request(&response.type_url, Some("rejected".to_owned()))];
        }
        match response.type_url {
            TypeUrl::Cluster => self.take_clusters(response),
            TypeUrl::Endpoint => self.take_assignments(response),
            TypeUrl::Probe | TypeUrl::Health | TypeUrl::Other(_) => Vec::new(),
        }
    }

    fn take_clusters(&mut self, response: &Response) -> Vec<Request> {
        let before: BTreeSet<String> = self.clusters.resources.keys().cloned().collect();
        self.clusters.take(response, self.variant, self.variant == Variant::Sotw);
        let after: BTreeSet<String> = self.clusters.resources.keys().cloned().collect();
        let mut requests = vec![self.request(&TypeUrl::Cluster, None)];
        let warms = response.resources.iter().any(|resource| before.contains(&*resource.name));
        if before == after && !warms {
            return requests;
        }
        self.endpoints.retain(|name, _| after.contains(name));
        self.assignments.resources.retain(|name, _| after.contains(name));
        requests.push(match self.variant {
            Variant::Sotw => self.request(&TypeUrl::Endpoint, None),
            Variant::Delta => {
                let subscribe = after.difference(&before).cloned().collect();
                let unsubscribe = before.difference(&after).cloned().collect();
                let initial = BTreeMap::new();
                self.say(
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
        self.assignments.take(response, self.variant, false);
        for resource in &response.resources {
            if self.clusters.resources.contains_key(&*resource.name) {
                self.endpoints.insert(resource.name.to_string(), addresses(&resource.any));
            }
        }
        for name in &response.removed {
            self.endpoints.remove(&**name);
        }
        vec![self.request(&TypeUrl::Endpoint, None)]
    }

    fn held(&mut self, type_url: &TypeUrl) -> &mut Held {
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
                ResourceSubscription::Sotw { version: self.held(&type_url).version.clone(), names }
            }
            Variant::Delta => {
                let initial = self.held(&type_url).resources.clone();
                ResourceSubscription::Delta { subscribe: names, unsubscribe: Vec::new(), initial }
            }
        };
        self.say(&type_url, None, subscription, String::new())
    }

    /// Returns the ACK or NACK of the last response of a type.
    fn request(&mut self, type_url: &TypeUrl, error: Option<String>) -> Request {
        let names = match type_url {
            TypeUrl::Cluster => Vec::new(),
            _ => self.clusters.resources.keys().cloned().collect(),
        };
        let held = self.held(type_url);
        let (version, nonce) = (held.version.clone(), held.nonce.clone());
        let subscription = match self.variant {
            Variant::Sotw => ResourceSubscription::Sotw { version, names },
            Variant::Delta => ResourceSubscription::Delta {
                subscribe: Vec::new(),
                unsubscribe: Vec::new(),
                initial: BTreeMap::new(),
            },
        };
        self.say(type_url, error, subscription, nonce)
    }

    fn say(
        &mut self,
        type_url: &TypeUrl,
        error: Option<String>,
        subscription: ResourceSubscription,
        nonce: String,
    ) -> Request {
        let is_first = !std::mem::replace(&mut self.said_node, true);
        let node = is_first.then(|| {
            let (id, namespace) = ("router~10.9.9.9~gateway.shop".to_owned(), Some(NAMESPACE.to_owned()));
            Box::new(Node { id, namespace, ..Node::default() })
        });
        Request { node, type_url: type_url.clone(), nonce, error, subscription, report: None }
    }
}

impl Held {
    /// Stores the resources of a response; with `is_all`, resources that are missing in it are
    /// removed.
    fn take(&mut self, response: &Response, variant: Variant, is_all: bool) {
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
fn addresses(any: &[u8]) -> BTreeSet<String> {
    let any = Any::decode(any).expect("an Any");
    let assignment = ClusterLoadAssignment::decode(&*any.value).expect("an assignment");
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
