//! docs/istio.md, compared with Istio's module.

use std::fs;

use istio_tests::istio;
use kit::envoy::workspace;

/// Fewer would mean that they are not found any more.
const VARIABLES: usize = 60;

#[test]
#[ignore = "needs Istio's module: ./justw test-istio"]
fn every_variable_of_istios_agent_is_in_the_page() {
    let page = fs::read_to_string(workspace().join("docs/istio.md")).expect("the page");
    let variables = fs::read_to_string(istio("variables.txt")).expect("the names");
    assert!(variables.lines().count() >= VARIABLES, "{variables}");
    // Between backticks, `GCP_…` stands for all variables with this prefix.
    let named: Vec<&str> = page.split('`').skip(1).step_by(2).collect();
    let is_named = |variable: &str| {
        named.iter().any(|name| match name.strip_suffix('…') {
            Some(prefix) => prefix.len() > 3 && variable.starts_with(prefix),
            None => *name == variable,
        })
    };
    let missing: Vec<&str> = variables.lines().filter(|name| !is_named(name)).collect();
    assert_eq!(missing, Vec::<&str>::new());
}
