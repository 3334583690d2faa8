use super::*;
use crate::yaml;

#[test]
fn patches_and_data_are_found() {
    let text = "
resources: [a.yaml, ../base]
patches:
- path: p1.yaml
  target: {kind: Deployment}
- patch: '[]'
patchesStrategicMerge:
- p2.yaml
- |-
  kind: Deployment
patchesJson6902: [{path: p3.json}]
configMapGenerator:
- {name: c, files: [d1.yaml, key=d2.yaml]}
secretGenerator: [{files: [d3.yaml]}]
";
    let value = yaml::value(text).expect("YAML");
    let expected = [
        ("p1.yaml", Use::Patch),
        ("p3.json", Use::Patch),
        ("p2.yaml", Use::Patch),
        ("d1.yaml", Use::Data),
        ("d2.yaml", Use::Data),
        ("d3.yaml", Use::Data),
    ];
    assert_eq!(files(&value), expected);
    for text in ["", "patches: 1", "- 1", "patches: [1, {path: 2}]"] {
        assert_eq!(files(&yaml::value(text).expect("YAML")), []);
    }
}

#[test]
fn plugins_and_their_files_are_found() {
    let text = "
generators: [g.yaml]
transformers:
- folder
- |-
  kind: PatchTransformer
validators: [v.yaml]
resources: [a.yaml, https://example.com/b.yaml]
";
    let value = yaml::value(text).expect("YAML");
    assert_eq!(plugins(&value).collect::<Vec<_>>(), ["g.yaml", "folder", "kind: PatchTransformer", "v.yaml"]);
    assert_eq!(resources(&value).collect::<Vec<_>>(), ["a.yaml", "https://example.com/b.yaml"]);
    for (text, expected) in [
        ("{kind: PatchTransformer, path: p.yaml}", vec![("p.yaml", Use::Patch)]),
        ("{kind: PatchTransformer, patch: '[]'}", vec![]),
        ("{kind: PatchJson6902Transformer, path: p.json}", vec![("p.json", Use::Patch)]),
        (
            "{kind: PatchStrategicMergeTransformer, paths: [p.yaml, q.yaml], patches: x}",
            vec![("p.yaml", Use::Patch), ("q.yaml", Use::Patch)],
        ),
        (
            "{kind: ConfigMapGenerator, files: [a.yaml, k=b.yaml]}",
            vec![("a.yaml", Use::Data), ("b.yaml", Use::Data)],
        ),
        ("{kind: SecretGenerator, files: [a.yaml]}", vec![("a.yaml", Use::Data)]),
        ("{kind: NamespaceTransformer, path: p.yaml}", vec![]),
        ("1", vec![]),
    ] {
        assert_eq!(files_of_plugin(&yaml::value(text).expect("YAML")), expected, "{text}");
    }
}
