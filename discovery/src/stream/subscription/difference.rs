//! Computes what a subscription lacks: the difference between what its peer has and the snapshot.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::pending::Names;
use super::{Context, MISSING, Subscription};
use crate::message::{Resource, TypeUrl, Variant};
use crate::wire;

/// Resources that the peer does not have or that were deleted.
#[derive(Default)]
pub(super) struct Difference {
    pub(super) changed: Vec<Arc<Resource>>,
    pub(super) gone: BTreeSet<Arc<str>>,
    /// Names whose resources differ but must not be sent yet.
    pub(super) blocked: BTreeSet<Arc<str>>,
}

impl Subscription {
    pub(super) fn difference(&self, context: &Context) -> Difference {
        let mut difference = Difference::default();
        let Context { snapshot, viewer, .. } = *context;
        match self.type_url {
            TypeUrl::Cluster => {
                let find = |name: &str| snapshot.cluster(viewer, name);
                self.compare(context, find, snapshot.clusters(viewer), &mut difference);
            }
            TypeUrl::Listener => {
                let find = |name: &str| snapshot.listener(viewer, name);
                self.compare(context, find, snapshot.listeners(viewer), &mut difference);
            }
            TypeUrl::Route => {
                let find = |name: &str| snapshot.route(viewer, name);
                self.compare(context, find, snapshot.routes(viewer), &mut difference);
            }
            _ => {
                let find = |name: &str| Some(&snapshot.assignment(viewer, name)?.resource);
                let all = snapshot.assignments(viewer).map(|assignment| &assignment.resource);
                self.compare(context, find, all, &mut difference);
            }
        }
        difference
    }

    fn compare<'a>(
        &self,
        context: &Context,
        find: impl Fn(&str) -> Option<&'a Arc<Resource>>,
        all: impl Iterator<Item = &'a Arc<Resource>>,
        difference: &mut Difference,
    ) {
        match self.pending.names() {
            Names::Some(names) => {
                for name in names.iter().filter(|name| self.wildcard || self.names.contains(*name)) {
                    self.compare_name(context, name, find(name), difference);
                }
            }
            Names::All => {
                if self.wildcard {
                    for resource in all {
                        self.compare_name(context, &resource.name, Some(resource), difference);
                    }
                    let sent = self.sent_versions.keys().filter(|name| !self.names.contains(*name));
                    for name in sent.filter(|name| find(name).is_none()) {
                        self.compare_name(context, name, None, difference);
                    }
                }
                for name in &self.names {
                    let found = find(name);
                    if !self.wildcard || found.is_none() {
                        self.compare_name(context, name, found, difference);
                    }
                }
            }
        }
    }

    /// Compares what the peer has of a name to which it subscribes with the resource, if it exists.
    fn compare_name(
        &self,
        context: &Context,
        name: &Arc<str>,
        found: Option<&Arc<Resource>>,
        difference: &mut Difference,
    ) {
        let sent = self.sent_versions.get(name);
        if sent == Some(found.map_or(&MISSING, |resource| &resource.version)) {
            return;
        }
        if found.is_some() && (context.blocked)(name) {
            difference.blocked.insert(name.clone());
            return;
        }
        if found.is_none() && self.wildcard && sent.is_some() {
            difference.gone.insert(name.clone());
        }
        if self.endpoints_before_restart.contains_key(name) {
            return;
        }
        match found {
            Some(resource) => difference.changed.push(resource.clone()),
            None if self.names.contains(name) => self.missing(name, difference),
            None => {}
        }
    }

    /// Adds to `difference` that a resource does not exist. SotW cannot express deletions of
    /// assignments, and Envoy ignores deletions of route configurations, so an empty one is sent.
    fn missing(&self, name: &Arc<str>, difference: &mut Difference) {
        let any = match (self.variant, &self.type_url) {
            (Variant::Sotw, TypeUrl::Endpoint) => wire::assignment(name, &[]),
            (_, TypeUrl::Route) => wire::route(name, &[]),
            _ => {
                difference.gone.insert(name.clone());
                return;
            }
        };
        difference.changed.push(Arc::new(Resource { name: name.clone(), version: MISSING, any }));
    }

    /// Forgets the number of endpoints that the peer has of a name once the server knows as many,
    /// and all numbers when the startup grace has ended.
    pub(super) fn forget_counts(&mut self, context: &Context) {
        let before = self.endpoints_before_restart.len();
        if !context.snapshot.startup_grace() {
            self.endpoints_before_restart.clear();
        }
        self.endpoints_before_restart.retain(|name, held| {
            let assignment = context.snapshot.assignment(context.viewer, name);
            *held > assignment.map_or(0, |assignment| assignment.accounted_for)
        });
        if self.endpoints_before_restart.len() != before {
            self.pending.add_all();
        }
    }
}
