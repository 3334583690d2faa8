use super::*;
use crate::settings::STATUS_PORT;

const STRICT_MTLS: &str = include_str!("../../../envoy-config/kubernetes/strict-mtls/sidecar.yaml");

fn refused(yaml: &str) -> String {
    Template::parse(yaml, "side", None).expect_err(yaml).to_string()
}

#[test]
fn the_built_in_template_is_valid_under_any_name() {
    let template = Template::built_in("istio-proxy", None).expect("the built-in template");
    assert_eq!(template.sidecar["name"], "istio-proxy");
    assert_eq!(template.sidecar["image"], format!("app-health:{}", env!("CARGO_PKG_VERSION")));
    let other = Template::built_in("istio-proxy", Some("registry.test/x:1")).expect("the built-in template");
    assert_eq!(other.sidecar["image"], "registry.test/x:1");
    assert_ne!(other.hash, template.hash);
}

#[test]
fn invalid_templates_are_rejected_with_the_field() {
    let cases = [
        ("a: [", "1:"),
        ("[]", "must be a mapping"),
        ("kind: Pod\nspec: {containers: [{name: side, image: x}]}", "kind: only metadata, spec are allowed"),
        ("metadata: {name: x}\nspec: {containers: [{name: side, image: x}]}", "metadata.name: only"),
        ("spec: {hostNetwork: true, containers: [{name: side, image: x}]}", "spec.hostNetwork: only"),
        ("spec: {containers: {}}", "spec.containers: must be a list"),
        ("spec: {containers: [{name: other, image: x}]}", "must contain the container \"side\" exactly once"),
        (
            "spec: {containers: [{name: side, image: x}], initContainers: [{name: side, image: x}]}",
            "must be set and unique",
        ),
        ("spec: {containers: [{name: side, image: x}], volumes: [{}]}", "spec.volumes: name"),
        ("spec: {containers: [{name: side}]}", "needs an image"),
        ("spec: {containers: [{name: side, image: auto}]}", "needs an image"),
        ("spec: {containers: [{name: side, image: x, $patch: delete}]}", "$patch"),
        (
            "spec: {containers: [{name: side, image: x, env: [{name: ISTIO_KUBE_APP_PROBERS}]}]}",
            "is set by the injector",
        ),
        (
            "spec: {containers: [{name: side, image: x, env: [{name: APP_HEALTH_PROBE_ADDRESS}]}]}",
            "is set by the injector",
        ),
        ("spec: {containers: [{name: side, image: x}]}\n---\na: 1", "document"),
    ];
    for (yaml, words) in cases {
        assert!(refused(yaml).contains(words), "{yaml}: {}", refused(yaml));
    }
}

#[test]
fn the_strict_mtls_template_extends_the_built_in_one() {
    let strict = Template::parse(STRICT_MTLS, SIDECAR_NAME, None).expect("the shipped template");
    let built_in = Template::built_in(SIDECAR_NAME, None).expect("the built-in template");
    let mut sidecar = strict.sidecar.clone();
    for key in ["env", "volumeMounts"] {
        let same = built_in.sidecar[key].as_array().expect("a list").len();
        let list = sidecar[key].as_array_mut().expect("a list");
        assert_eq!(list.split_off(same).len(), 2, "{key}");
    }
    assert_eq!(sidecar, built_in.sidecar);
    assert_eq!(strict.volumes[..1], built_in.volumes[..]);
    let script = strict.init_containers[0]["command"][2].as_str().expect("a script");
    assert!(script.contains(&format!("--dport {STATUS_PORT} -j RETURN")), "{script}");
}
