use super::{is_ready, last_envoy_exit, pending};

fn conditions(log: &str) -> Vec<(String, String)> {
    pending(log).into_iter().map(|each| (each.condition, each.reason)).collect()
}

fn pair(condition: &str, reason: &str) -> (String, String) {
    (condition.to_owned(), reason.to_owned())
}

#[test]
fn pending_conditions_of_a_text_log() {
    let log = "\
t1 t2  INFO app_health_agent::state: readiness condition pending condition=\"process\" reason=\"envoy not started\" epoch=0
t1 t2  INFO app_health_agent::state: readiness condition met condition=\"process\" reason=\"envoy not started\" seconds=0.2 epoch=1
t1 t2  INFO app_health_agent::state: readiness condition pending condition=\"listeners\" reason=\"listeners not received\" epoch=1
t1 t2  INFO app_health_agent::state: readiness condition pending condition=\"listeners\" reason=\"listeners rejected\" epoch=1
";
    assert_eq!(conditions(log), [pair("listeners", "listeners rejected")]);
}

#[test]
fn pending_conditions_of_a_json_log() {
    let log = r#"t1 {"level":"INFO","fields":{"message":"readiness condition pending","condition":"clusters","reason":"clusters not received"}}"#;
    assert_eq!(conditions(log), [pair("clusters", "clusters not received")]);
}

#[test]
fn an_envoy_that_became_ready_has_no_pending_condition() {
    let log =
        "a readiness condition pending condition=\"admin\" reason=\"x\"\nb envoy became ready seconds=1.0\n";
    assert_eq!(conditions(log), []);
    assert!(is_ready(log));
    assert!(!is_ready(&format!(
        "{log}c readiness condition pending condition=\"drain\" reason=\"draining\"\n"
    )));
    assert!(!is_ready(""));
}

#[test]
fn the_last_exit_of_envoy() {
    let text = "t envoy exited unexpectedly status=exit status: 1 seconds=2.0\nt envoy exited unexpectedly status=terminated by SIGKILL seconds=24.4\n";
    assert_eq!(last_envoy_exit(text).as_deref(), Some("terminated by SIGKILL"));
    let json = r#"{"fields":{"message":"envoy exited unexpectedly","status":"terminated by SIGKILL","seconds":24.4}}"#;
    assert_eq!(last_envoy_exit(json).as_deref(), Some("terminated by SIGKILL"));
    assert_eq!(last_envoy_exit("nothing"), None);
}
