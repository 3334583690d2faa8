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
