//! Applies all rules to one object.

use injector::workload::{self, MalformedObject, PodLocation};
use serde_json::Value;

use crate::finding::Findings;
use crate::options::Options;
use crate::pod_view::PodView;
use crate::rule::INVALID_OBJECT;
use crate::suppression::Suppression;
use crate::{Finding, rules};

/// The result for one object, or for a list of objects.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// In the order of the Pods in the object, and of the codes within a Pod.
    pub findings: Vec<Finding>,
    /// Findings that an annotation suppresses.
    pub suppressed: usize,
    /// Pods and Pod templates.
    pub pods: usize,
}

/// Applies all rules to the Pods of an object. An object without Pods has no findings, except for a
/// wrong `apiVersion` of a kind that has Pods.
pub fn lint(document: &Value, options: &Options) -> Report {
    let wrong = rules::api_version::wrong_objects(document, &options.kinds);
    lint_pods(document, &wrong, workload::locate_pods(document, &options.kinds), options)
}

/// Applies all rules to these Pods of a document. `wrong` are its objects with a wrong `apiVersion`.
pub(crate) fn lint_pods(
    document: &Value,
    wrong: &[PodLocation],
    pods: Vec<Result<PodLocation, MalformedObject>>,
    options: &Options,
) -> Report {
    let mut report = Report::default();
    for location in wrong {
        let mut findings = Findings::new(location);
        rules::api_version::check(document, location, &mut findings);
        report.add(document, location, findings);
    }
    for location in pods {
        let location = match location {
            Ok(location) => location,
            Err(malformed) => {
                let mut findings = Findings::new(&malformed.location);
                let error = &malformed.error;
                findings.add_object(&INVALID_OBJECT, &error.field, error.to_string());
                report.findings.extend(findings.into_vec());
                continue;
            }
        };
        let mut findings = Findings::new(&location);
        rules::injection::check(document, &location, options, &mut findings);
        rules::placement::check(document, &location, &mut findings);
        if !findings.violates(&INVALID_OBJECT) {
            let pod = PodView::new(&location, document, options);
            rules::check(&pod, options, &mut findings);
        }
        report.add(document, &location, findings);
        report.pods += 1;
    }
    report
}

impl Report {
    /// Adds the findings of an object, except those that its annotations suppress.
    fn add(&mut self, document: &Value, location: &PodLocation, mut findings: Findings) {
        let suppression = Suppression::read(location, document, &mut findings);
        let mut found = findings.into_vec();
        let all = found.len();
        found.retain(|finding| !suppression.covers(finding));
        found.sort_by_key(|finding| finding.rule.code);
        self.suppressed += all - found.len();
        self.findings.extend(found);
    }
}
