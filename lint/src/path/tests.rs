use super::*;

#[test]
fn paths_have_keys_and_indices() {
    let key = |text: &str| Step::Key(text.to_owned());
    assert_eq!(
        steps("items[1].spec.containers[0].livenessProbe"),
        [key("items"), Step::Index(1), key("spec"), key("containers"), Step::Index(0), key("livenessProbe")]
    );
    let path = injector::pod::annotation_path("app-health.io/lint-ignore");
    assert_eq!(steps(&path), [key("metadata"), key("annotations"), key("app-health.io/lint-ignore")]);
    assert_eq!(steps("a..b"), [key("a")]);
    assert_eq!(steps("a[x]"), [key("a")]);
}
