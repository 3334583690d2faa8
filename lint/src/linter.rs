//! Applies all rules to one object.

use std::time::Duration;

use injector::settings::Settings;
use injector::workload::{self, PodLocation};
use serde_json::Value;

use crate::finding::Findings;
use crate::pod_view::PodView;
use crate::rule::INVALID_OBJECT;
use crate::suppression::Suppression;
use crate::{Finding, rules};

/// The settings that rules depend on besides the object.
#[derive(Clone, Debug)]
pub struct Options {
    /// The settings with which the object would be injected.
    pub settings: Settings,
    /// A pause of the application that a livenessProbe must survive.
    pub expect_pause: Option<Duration>,
}

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

/// Applies all rules to the Pods of an object. An object without Pods has no findings.
pub fn lint(document: &Value, options: &Options) -> Report {
    let mut report = Report::default();
    let locations = match workload::find_pods(document) {
        Ok(locations) => locations,
        Err(error) => {
            let location = PodLocation::of_object(document);
            let mut findings = Findings::new(&location);
            findings.add_object(&INVALID_OBJECT, &error.field, error.reason);
            report.findings = findings.into_vec();
            return report;
        }
    };
    for location in &locations {
        let mut findings = Findings::new(location);
        rules::injection::check(document, location, options, &mut findings);
        if !findings.violates(&INVALID_OBJECT) {
            let pod = PodView::new(location, document, options);
            rules::check(&pod, options, &mut findings);
        }
        let suppression = Suppression::read(location, document, &mut findings);
        let mut found = findings.into_vec();
        let all = found.len();
        found.retain(|finding| !suppression.covers(finding));
        found.sort_by_key(|finding| finding.rule.code);
        report.suppressed += all - found.len();
        report.findings.extend(found);
        report.pods += 1;
    }
    report
}
