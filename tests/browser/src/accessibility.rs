//! Checks a page with axe-core, as it is displayed at the moment.

use serde_json::Value;

use crate::browser::Browser;
use crate::driver_server::installed;

/// Impacts of a violation that makes a part of the page unusable for some people.
const SEVERE: [&str; 2] = ["serious", "critical"];
/// Without scripts, a page can show changes only if it is loaded again.
const RUN: &str = "
axe.run(document, {rules: {'meta-refresh': {enabled: false}}}).then(
  result => done({passes: result.passes.length, violations: result.violations}),
  error => done({error: String(error)}));";

/// Returns the serious and critical violations, each with the elements that it concerns.
///
/// # Panics
/// If axe-core cannot be run, or checks nothing.
pub async fn severe_violations(browser: &Browser) -> Vec<String> {
    let axe = std::fs::read_to_string(installed("axe.min.js")).expect("axe-core is readable");
    // It defines a property of the window, which a reload of the page removes.
    browser.run(&format!("if (!window.axe) {{ {axe} }}")).await;
    let result = browser.run_async(RUN).await;
    assert!(result["passes"].as_u64() > Some(10), "axe-core checked too little: {result}");
    let violations = result["violations"].as_array().expect("a list");
    let is_severe = |violation: &&Value| SEVERE.iter().any(|impact| violation["impact"] == *impact);
    violations.iter().filter(is_severe).map(describe).collect()
}

fn describe(violation: &Value) -> String {
    let nodes = violation["nodes"].as_array().into_iter().flatten();
    let nodes: Vec<String> =
        nodes.map(|node| format!("{}: {}", node["html"], node["failureSummary"])).collect();
    format!("{} {}: {}", violation["impact"], violation["help"], nodes.join("; "))
}
