//! One violation of a rule, with its position.

use std::collections::HashSet;

use injector::workload::PodLocation;
use injector::{Container, Probe, ProbeKind};

use crate::Rule;

/// The file or the cluster that a document was read from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The path of the file as given, `stdin`, or empty for an object of the cluster.
    pub file: String,
    /// The number of the document in the file, counted from 1; 0 for an object of the cluster.
    pub document: usize,
    /// The line of the field in the file, counted from 1. If the field is absent, the line of the
    /// nearest field that contains it; `None` for an object of the cluster.
    pub line: Option<usize>,
}

/// A violation of a rule. Texts from the document have the escapes of
/// [`printable::line`].
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    pub rule: &'static Rule,
    pub origin: Origin,
    /// The kind of the object, for example `Deployment`.
    pub kind: String,
    /// Empty if the object does not name its namespace.
    pub namespace: String,
    pub name: String,
    /// The container's name; empty if the finding is about the Pod.
    pub container: String,
    /// The probe or hook, for example `livenessProbe` or `preStop`; empty if there is none.
    pub probe: String,
    /// The path of the field in the document, for example
    /// `spec.template.spec.containers[0].livenessProbe.timeoutSeconds`.
    pub path: String,
    /// The problem, in one line.
    pub message: String,
}

impl Finding {
    /// Returns the kind and name of the object: `Deployment/shop`, or `Deployment` without a name.
    pub fn object(&self) -> String {
        match self.name.as_str() {
            "" => self.kind.clone(),
            name => format!("{}/{name}", self.kind),
        }
    }

    /// Returns the container with its probe or hook: `app.livenessProbe`, `app`, or nothing.
    pub fn place(&self) -> String {
        match (self.container.as_str(), self.probe.as_str()) {
            (container, "") => container.to_owned(),
            (container, probe) => format!("{container}.{probe}"),
        }
    }
}

/// Collects the findings of one object.
pub(crate) struct Findings<'a> {
    location: &'a PodLocation,
    found: Vec<Finding>,
    /// The code, path, container and probe of each.
    known: HashSet<(&'static str, String, String, String)>,
}

/// A container of the Pod with one of its fields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    /// `containers` or `initContainers`.
    pub list: &'static str,
    pub index: usize,
    pub container: &'a str,
    /// `None` if the place is the container itself.
    pub probe: Option<ProbeKind>,
}

impl<'a> Place<'a> {
    pub(crate) fn of(container: &Container<'a>) -> Self {
        Self { list: container.list, index: container.index, container: container.name, probe: None }
    }

    pub(crate) fn of_probe(container: &Container<'a>, probe: Probe) -> Self {
        Self { probe: Some(probe.kind), ..Self::of(container) }
    }
}

impl<'a> Findings<'a> {
    pub(crate) fn new(location: &'a PodLocation) -> Self {
        Self { location, found: Vec::new(), known: HashSet::new() }
    }

    /// Adds a finding about the Pod; `field` is a path in the Pod, for example `spec.hostNetwork`.
    pub(crate) fn add(&mut self, rule: &'static Rule, field: &str, message: impl AsRef<str>) {
        let path = self.location.field(field);
        self.push(rule, ("", ""), path, message.as_ref());
    }

    /// Adds a finding about the object; `field` is a path in the object.
    pub(crate) fn add_object(&mut self, rule: &'static Rule, field: &str, message: impl AsRef<str>) {
        let path = self.location.object_field(field);
        self.push(rule, ("", ""), path, message.as_ref());
    }

    /// Adds a finding about a container, or its probe or hook; `field` is a path in that.
    pub(crate) fn add_at(
        &mut self,
        rule: &'static Rule,
        place: Place<'_>,
        field: &str,
        message: impl AsRef<str>,
    ) {
        let Place { list, index, container, probe } = place;
        let mut path = format!("spec.{list}[{index}]");
        let hook = if probe.is_some_and(ProbeKind::is_hook) { "lifecycle" } else { "" };
        let probe = probe.map_or("", ProbeKind::field);
        for part in [hook, probe, field].into_iter().filter(|part| !part.is_empty()) {
            path.push('.');
            path.push_str(part);
        }
        let path = self.location.field(&path);
        self.push(rule, (container, probe), path, message.as_ref());
    }

    fn push(&mut self, rule: &'static Rule, (container, probe): (&str, &str), path: String, message: &str) {
        let object = self.location.object.as_str();
        let (kind, name) = object.split_once('/').unwrap_or((object, ""));
        let finding = Finding {
            rule,
            origin: Origin::default(),
            kind: printable::line(kind).into_owned(),
            namespace: printable::line(&self.location.namespace).into_owned(),
            name: printable::line(name).into_owned(),
            container: printable::line(container).into_owned(),
            probe: probe.to_owned(),
            path: printable::line(&path).into_owned(),
            message: printable::line(message).into_owned(),
        };
        let Finding { path, container, probe, .. } = finding.clone();
        if self.known.insert((rule.code, path, container, probe)) {
            self.found.push(finding);
        }
    }

    pub(crate) fn violates(&self, rule: &Rule) -> bool {
        self.found.iter().any(|finding| finding.rule.code == rule.code)
    }

    pub(crate) fn into_vec(self) -> Vec<Finding> {
        self.found
    }
}
