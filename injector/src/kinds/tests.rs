use super::*;

#[test]
fn a_kind_is_found_by_its_group() {
    let kinds = Kinds::default();
    for (kind, version, known) in [
        ("Pod", "v1", true),
        ("Deployment", "apps/v1", true),
        ("Deployment", "apps/v1beta1", true),
        ("Deployment", "v1", false),
        ("Deployment", "example.com/v1", false),
        ("Rollout", "argoproj.io/v1alpha1", true),
        ("DeploymentConfig", "apps.openshift.io/v1", true),
        ("Service", "serving.knative.dev/v1", true),
        ("Service", "v1", false),
    ] {
        assert_eq!(kinds.contains(kind, version), known, "{kind} in {version}");
    }
}

#[test]
fn flags_add_kinds_and_replace_those_of_the_table() {
    let paths = ["Game=spec.template", "Game=spec.other", "Rollout.argoproj.io=spec.pod.template"];
    let paths: Vec<TemplatePath> = paths.iter().map(|path| path.parse().expect("a path")).collect();
    let kinds = Kinds::new(&paths);
    let templates = |kind, version| {
        let found = kinds.find(kind, version).into_iter();
        found
            .map(|kind| match &kind.template {
                Template::At(path) => path.join("."),
                Template::Unchangeable(reason) => (*reason).to_owned(),
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(templates("Game", "example.com/v1"), ["spec.template", "spec.other"]);
    assert_eq!(templates("Rollout", "argoproj.io/v1alpha1"), ["spec.pod.template"]);
    assert_eq!(templates("CronJob", "batch/v1"), ["spec.jobTemplate.spec.template"]);
}

#[test]
fn a_wrong_path_is_refused_with_the_reason() {
    for (text, words) in [
        ("", "must be like"),
        ("Game", "must be like"),
        ("=spec.template", "\"\" is not a kind"),
        ("apps/v1=spec.template", "\"apps/v1\" is not a kind"),
        ("Game.example.com/v1=spec.template", "\"example.com/v1\" is not an API group"),
        ("Game.=spec.template", "\"\" is not an API group"),
        ("Game=", "\"\" is not the name of a field"),
        ("Game=spec..template", "\"\" is not the name of a field"),
        ("Game=spec.items[0]", "\"items[0]\" is not the name of a field"),
        ("Game=spec.template.spec", "must be the field with metadata and spec of the Pod"),
        ("Game=spec.template.spec.containers", "must be the field with metadata and spec of the Pod"),
    ] {
        let error = text.parse::<TemplatePath>().expect_err(text);
        assert!(error.contains(words), "{text}: {error}");
    }
    assert_eq!("Game=.spec.template".parse(), "Game=spec.template".parse::<TemplatePath>());
}
