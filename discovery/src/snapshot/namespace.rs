//! Index of the workloads by namespace and label, so that a selector does not scan all of them.

use std::collections::{BTreeMap, HashMap};

use crate::entries::Workload;

pub(super) struct Namespaces(HashMap<String, Namespace>);

#[derive(Default)]
struct Namespace {
    /// The workloads sorted by key.
    workloads: Vec<Workload>,
    /// Label name and value to the ascending indices in `workloads`.
    labels: HashMap<String, HashMap<String, Vec<usize>>>,
}

impl Namespaces {
    pub(super) fn new(workloads: &mut dyn Iterator<Item = Workload>) -> Self {
        let mut namespaces: HashMap<String, Namespace> = HashMap::new();
        for workload in workloads {
            match namespaces.get_mut(&workload.key.namespace) {
                Some(namespace) => namespace.workloads.push(workload),
                None => {
                    let name = workload.key.namespace.clone();
                    namespaces.entry(name).or_default().workloads.push(workload);
                }
            }
        }
        namespaces.values_mut().for_each(Namespace::index);
        Self(namespaces)
    }

    /// Returns the workloads of a namespace that have all these labels, sorted by key.
    pub(super) fn select<'a>(
        &'a self,
        namespace: &str,
        labels: &'a BTreeMap<String, String>,
    ) -> impl Iterator<Item = &'a Workload> {
        self.0.get(namespace).into_iter().flat_map(move |namespace| namespace.select(labels))
    }
}

impl Namespace {
    fn index(&mut self) {
        self.workloads.sort_by(|one, other| one.key.cmp(&other.key));
        for (place, workload) in self.workloads.iter().enumerate() {
            for (name, value) in &workload.spec.labels {
                if !self.labels.contains_key(name) {
                    self.labels.insert(name.clone(), HashMap::new());
                }
                let Some(values) = self.labels.get_mut(name) else { continue };
                match values.get_mut(value) {
                    Some(places) => places.push(place),
                    None => {
                        values.insert(value.clone(), vec![place]);
                    }
                }
            }
        }
    }

    fn select<'a>(&'a self, labels: &'a BTreeMap<String, String>) -> impl Iterator<Item = &'a Workload> {
        let places = |(name, value): (&String, &String)| -> &'a [usize] {
            self.labels.get(name).and_then(|values| values.get(value)).map_or(&[], Vec::as_slice)
        };
        let rarest = labels.iter().map(places).min_by_key(|places| places.len()).unwrap_or_default();
        let workloads = rarest.iter().filter_map(|place| self.workloads.get(*place));
        workloads.filter(move |workload| {
            labels.iter().all(|(name, value)| workload.spec.labels.get(name) == Some(value))
        })
    }
}
