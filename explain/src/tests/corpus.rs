//! The precision of the command: situations of `testdata/corpus` with what an expert says about them.
//!
//! `cause` is the verdict, the code and the container of the main cause. `advice` has phrases of
//! which the advice must contain one; each cause has at least one. `not` has some that it must not
//! contain. `certain: false` says that what was read does not prove the cause. The test writes the
//! table in docs/explain.md with `UPDATE_GOLDEN=1`.

mod short_form;

use std::fmt::Write as _;
use std::fs;

use serde_json::Value;

use super::{folder, yaml};
use crate::container::list;
use crate::finding::{Finding, Severity};
use crate::report::Report;

const BEGIN: &str = "<!-- The test of the corpus writes this table. -->\n";
const END: &str = "<!-- End of the table. -->\n";
/// The files of the corpus, and how docs/explain.md calls them.
const AREAS: [(&str, &str); 9] = [
    ("scheduling", "scheduler and nodes"),
    ("images", "images, Windows"),
    ("admission", "API server, workloads"),
    ("containers", "containers, volumes, sandbox"),
    ("ends", "crashes, evictions, deletion, hooks"),
    ("probes", "probes, network, sidecar"),
    ("field", "what users report, of all areas"),
    ("field_nodes", "whole messages of clusters: nodes, images, containers, workloads"),
    ("field_probes", "what users report, of probes, network, sidecar"),
];

/// What the command says about one situation, compared with the expert.
struct Assessment {
    cause: Cause,
    /// True if the finding is called certain.
    certain: bool,
    /// True if the advice, or that it is called certain, is wrong.
    wrong_advice: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Cause {
    Right,
    Wrong,
    /// No cause was named where there is one.
    Unknown,
}

fn phrases(value: &Value) -> impl Iterator<Item = String> + '_ {
    list(value).iter().filter_map(Value::as_str).map(str::to_lowercase)
}

/// Returns `unhealthy image app`, in the form of `cause`.
fn found(report: &Report) -> String {
    let cause = report.cause.as_ref();
    let words = [
        Some(report.verdict.word()),
        cause.map(|cause| cause.code.word()),
        cause.map(|cause| cause.container.as_str()).filter(|container| !container.is_empty()),
    ];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

fn has_note(report: &Report, code: &Value) -> bool {
    let notes = report.pods.iter().flat_map(|group| &group.explanation.findings);
    code.is_null()
        || notes.into_iter().any(|note| note.severity == Severity::Note && code == note.code.word())
}

fn assess(situation: &Value, report: &Report) -> Assessment {
    let expected = situation["cause"].as_str().expect("a cause");
    let is_right = found(report) == expected && has_note(report, &situation["note"]);
    let cause = match report.cause.as_ref() {
        _ if is_right => Cause::Right,
        Some(cause) if cause.severity == Severity::Unknown => Cause::Unknown,
        _ => Cause::Wrong,
    };
    let advice = report.cause.as_ref().map(advice).unwrap_or_default();
    let is_advised = |text: &str| advice.contains(text);
    let mut wanted = phrases(&situation["advice"]).peekable();
    let is_helpful = wanted.peek().is_none() || wanted.any(|phrase| is_advised(&phrase));
    let misleads = phrases(&situation["not"]).any(|phrase| is_advised(&phrase));
    let certain = report.cause.as_ref().is_some_and(|cause| cause.certain);
    let is_too_certain = certain && situation["certain"] == false;
    let is_too_timid = !certain && situation["certain"] == true;
    Assessment { cause, certain, wrong_advice: !is_helpful || misleads || is_too_certain || is_too_timid }
}

fn advice(cause: &Finding) -> String {
    cause.advice.to_lowercase()
}

fn situations(file: &str) -> Vec<Value> {
    let text = fs::read_to_string(folder().join("corpus").join(format!("{file}.yaml"))).expect("a corpus");
    list(&yaml(&text)).to_vec()
}

/// Without a phrase, no advice would be wrong.
#[test]
fn every_cause_has_expected_advice() {
    let all = AREAS.iter().flat_map(|(file, _)| situations(file));
    let is_broken = |situation: &Value| {
        let cause = situation["cause"].as_str().unwrap_or_default();
        ["unhealthy ", "unknown "].iter().any(|verdict| cause.starts_with(verdict))
    };
    let without_phrase = all.filter(|each| is_broken(each) && phrases(&each["advice"]).next().is_none());
    let names: Vec<Value> = without_phrase.map(|situation| situation["name"].clone()).collect();
    assert_eq!(names, Vec::<Value>::new());
}

#[test]
fn precision() {
    let mut table = "| area | situations | main cause right | wrong | unknown | called certain | of these, wrong advice |\n| --- | --- | --- | --- | --- | --- | --- |\n".to_owned();
    let (mut all, mut wrong, mut wrong_though_certain) = (Vec::new(), Vec::new(), Vec::new());
    for (file, area) in AREAS {
        let mut assessments = Vec::new();
        for situation in situations(file) {
            let report = short_form::report(&situation);
            let assessment = assess(&situation, &report);
            let line = format!(
                "{file}/{}: {} ({}): {}",
                situation["name"].as_str().expect("a name"),
                found(&report),
                if assessment.certain { "certain" } else { "not certain" },
                report.cause.as_ref().map(advice).unwrap_or_default()
            );
            let is_wrong = assessment.cause != Cause::Right;
            if assessment.certain && (is_wrong || assessment.wrong_advice) {
                wrong_though_certain.push(line);
            } else if is_wrong || assessment.wrong_advice {
                wrong.push(line);
            }
            assessments.push(assessment);
        }
        row(&mut table, area, &assessments);
        all.extend(assessments);
    }
    row(&mut table, "**all**", &all);
    let right = all.iter().filter(|assessment| assessment.cause == Cause::Right).count();
    assert!(all.len() >= 150, "{} situations", all.len());
    assert!(
        wrong_though_certain.is_empty(),
        "certain and wrong: {wrong_though_certain:#?}\nother: {wrong:#?}"
    );
    assert!(right * 100 >= all.len() * 95, "{right} of {}: {wrong:#?}", all.len());
    check_page(&table);
    assert!(wrong.is_empty(), "name these in docs/explain.md, or correct them: {wrong:#?}");
}

fn row(table: &mut String, area: &str, assessments: &[Assessment]) {
    let count = |is: &dyn Fn(&&Assessment) -> bool| assessments.iter().filter(is).count();
    let of = |cause: Cause| count(&|assessment| assessment.cause == cause);
    let certain = count(&|assessment| assessment.certain);
    let wrong = count(&|assessment| {
        assessment.certain && (assessment.wrong_advice || assessment.cause != Cause::Right)
    });
    let numbers = [assessments.len(), of(Cause::Right), of(Cause::Wrong), of(Cause::Unknown), certain, wrong];
    let numbers = numbers.map(|number| number.to_string()).join(" | ");
    writeln!(table, "| {area} | {numbers} |").expect("a String takes all");
}

fn check_page(table: &str) {
    let file = folder().join("../../docs/explain.md");
    let page = fs::read_to_string(&file).expect("the page");
    let (before, rest) = page.split_once(BEGIN).expect("the beginning of the table");
    let (old, after) = rest.split_once(END).expect("the end of the table");
    if super::is_update() {
        fs::write(&file, format!("{before}{BEGIN}{table}{END}{after}")).expect("the page can be written");
    } else {
        assert_eq!(old, table, "run with UPDATE_GOLDEN=1 and review the diff");
    }
}
