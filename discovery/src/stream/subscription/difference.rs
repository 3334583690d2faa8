//! Computes what a subscription lacks: the difference between what its peer has and the snapshot.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::{Context, MISSING, Subscription};
use crate::message::{Resource, TypeUrl, Variant};
use crate::xds;

/// Resources that the peer does not have or that were deleted.
#[derive(Default)]
pub(super) struct Difference {
    pub(super) changed: Vec<Arc<Resource>>,
    pub(super) gone: BTreeSet<Arc<str>>,
}

impl Subscription {
    pub(super) fn difference(&self, context: &Context) -> Difference {
        let mut difference = Difference::default();
        if self.type_url == TypeUrl::Cluster {
            self.compare(
                context,
                |name| context.snapshot.cluster(context.viewer, name),
                context.snapshot.clusters(context.viewer),
                &mut difference,
            );
        } else {
            let assignments = context.snapshot.assignments(context.viewer);
            self.compare(
                context,
                |name| Some(&context.snapshot.assignment(context.viewer, name)?.resource),
                assignments.map(|assignment| &assignment.resource),
                &mut difference,
            );
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
        let differs = |resource: &&Arc<Resource>| {
            self.sent_versions.get(&resource.name) != Some(&resource.version)
                && !(context.blocked)(&resource.name)
                && !self.endpoints_before_restart.contains_key(&resource.name)
        };
        if self.wildcard {
            difference.changed.extend(all.filter(differs).cloned());
            let gone = self
                .sent_versions
                .iter()
                .filter(|(name, version)| **version != MISSING && find(name).is_none());
            difference.gone.extend(gone.map(|(name, _)| name.clone()));
        }
        for name in &self.names {
            match find(name) {
                Some(_) if self.wildcard => {}
                Some(resource) => difference.changed.extend(Some(resource).filter(differs).cloned()),
                None if self.sent_versions.get(name) == Some(&MISSING)
                    || self.endpoints_before_restart.contains_key(name) => {}
                None => self.missing(name, difference),
            }
        }
    }

    /// Adds to `difference` that a resource does not exist. SotW cannot express deletions of
    /// assignments, so an assignment without endpoints is sent.
    fn missing(&self, name: &Arc<str>, difference: &mut Difference) {
        if self.variant == Variant::Sotw && self.type_url == TypeUrl::Endpoint {
            let any = xds::assignment(name, &[]);
            difference.changed.push(Arc::new(Resource { name: name.clone(), version: MISSING, any }));
        } else {
            difference.gone.insert(name.clone());
        }
    }

    /// Forgets the number of endpoints that the peer has of a name once the server knows as many,
    /// and all numbers when startup_grace has ended.
    pub(super) fn forget_counts(&mut self, context: &Context) {
        if !context.snapshot.startup_grace() {
            self.endpoints_before_restart.clear();
        }
        self.endpoints_before_restart.retain(|name, held| {
            let assignment = context.snapshot.assignment(context.viewer, name);
            *held > assignment.map_or(0, |assignment| assignment.accounted_for)
        });
    }
}
