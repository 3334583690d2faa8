//! Compares how this project and kubectl read and write YAML, with the decoder that kubectl uses
//! (`tests/kubectl-decoder`): equal values, or an error with line and column.

mod generated;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use generated::Generator;
use injector::document;
use injector::flags::SettingsArgs;
use injector::kinds::Kinds;
use injector::yaml;
use injector::yaml_documents::{self, Format, StreamError};
use serde_json::{Value, json};

/// Generated texts of each kind; `APP_HEALTH_TEST_SCALARS` sets another number.
const TEXTS: usize = 4000;

/// Errors for what kubectl accepts: keys that are equal for kubectl, forms that newer versions of YAML
/// read in another way, and rare tags. For general errors also parts of which the text has one.
const RARE: [(&str, &[&str]); 8] = [
    ("duplicate mapping key", &[]),
    ("has a tag that is not supported", &["!!timestamp", "!!binary", "<<"]),
    ("plain scalar cannot start with '-' followed by ,[]{}", &["-,", "-]", "-}", "-[", "-{"]),
    ("a plain scalar cannot start with ':' here", &[":"]),
    ("a space must follow the colon after a key", &[":,", ":]", ":}", ":[", ":{"]),
    ("while parsing a flow mapping, did not find expected ',' or '}'", &[":,", ":]", ":}"]),
    // After an anchor or tag.
    ("did not find expected <document start>", &[" ,"]),
    ("comment intercepting the multiline text", &[" #"]),
];

/// What kubectl reads from a stream.
struct Decoded {
    documents: Vec<Value>,
    /// Why it stops reading.
    error: Option<String>,
}

/// Decodes all streams as kubectl does.
fn kubectl(texts: &[String]) -> Vec<Decoded> {
    let program = kit::envoy::workspace().join("target/kubectl-decoder/kubectl-decoder");
    let mut child =
        Command::new(&program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap_or_else(|error| {
            panic!("{}: {error}: ./justw _kubectl-decoder builds it", program.display())
        });
    let mut stdin = child.stdin.take().expect("piped");
    let lines: String = texts.iter().map(|text| json!(text).to_string() + "\n").collect();
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let output = child.wait_with_output().expect("the process ends");
    writer.join().expect("no panic").expect("the decoder reads all lines");
    assert!(output.status.success(), "{}", output.status);
    let results = String::from_utf8(output.stdout).expect("UTF-8");
    let decoded = results.lines().map(|line| {
        let result: Value = serde_json::from_str(line).expect("JSON");
        let documents = result["documents"].as_array().expect("a list").clone();
        Decoded { documents, error: result["error"].as_str().map(str::to_owned) }
    });
    let decoded: Vec<Decoded> = decoded.collect();
    assert_eq!(decoded.len(), texts.len());
    decoded
}

/// Reads a stream; kubectl leaves out documents that are `null`.
fn read(text: &str) -> Result<Vec<Value>, StreamError> {
    let mut documents = Vec::new();
    for document in yaml_documents::read(text) {
        documents.push(document?.value);
    }
    documents.retain(|value| !value.is_null());
    Ok(documents)
}

/// Compares values; kubectl writes `1.0` as `1`, and integers above the largest `i64` as
/// floating-point numbers.
fn is_equal(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(ours), Value::Number(theirs)) => ours.as_f64() == theirs.as_f64(),
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| is_equal(ours, theirs))
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            ours.len() == theirs.len()
                && ours.iter().all(|(key, ours)| theirs.get(key).is_some_and(|theirs| is_equal(ours, theirs)))
        }
        _ => ours == theirs,
    }
}

/// How often the two agree.
#[derive(Debug, Default)]
struct Tally {
    equal: usize,
    both_refuse: usize,
    /// Texts that only this project refuses, with the reason.
    refused_here: Vec<String>,
    /// Texts that only kubectl refuses, with the reason.
    refused_by_kubectl: Vec<String>,
    different: Vec<String>,
}

fn compare(texts: &[String]) -> Tally {
    let mut tally = Tally::default();
    for (text, decoded) in texts.iter().zip(kubectl(texts)) {
        match (read(text), decoded.error) {
            (Err(error), None) => {
                assert!(error.line > 0 && error.column > 0, "{error}");
                tally.refused_here.push(format!("{text:?}: {error}"));
            }
            (Err(_), Some(_)) => tally.both_refuse += 1,
            (Ok(_), Some(error)) => tally.refused_by_kubectl.push(format!("{text:?}: {error}")),
            (Ok(ours), None) => {
                let is_equal = is_equal(&json!(ours), &json!(decoded.documents));
                match is_equal {
                    true => tally.equal += 1,
                    false => tally.different.push(format!(
                        "{text:?}: {} instead of {}",
                        json!(ours),
                        json!(decoded.documents)
                    )),
                }
            }
        }
    }
    tally
}

fn count() -> usize {
    let set = std::env::vars().find(|(name, _)| name == "APP_HEALTH_TEST_SCALARS");
    set.map_or(TEXTS, |(_, value)| value.parse().expect("APP_HEALTH_TEST_SCALARS is a number"))
}

/// Scalars in every position. What kubectl refuses is refused here, too. Of what kubectl accepts,
/// this project refuses only rare forms.
#[test]
fn generated_scalars_are_read_as_kubectl_reads_them() {
    let mut generator = Generator::new(1);
    let texts: Vec<String> = (0..count()).map(|_| generator.document()).collect();
    let tally = compare(&texts);
    assert_eq!(tally.different, [""; 0]);
    assert_eq!(tally.refused_by_kubectl, [""; 0]);
    let is_rare = |line: &String| {
        let has_part = |parts: &[&str]| parts.is_empty() || parts.iter().any(|part| line.contains(part));
        RARE.iter().any(|(error, parts)| line.contains(error) && has_part(parts))
    };
    let unexpected: Vec<_> = tally.refused_here.iter().filter(|line| !is_rare(line)).collect();
    assert_eq!(unexpected, [""; 0]);
    let all = texts.len();
    assert!(tally.refused_here.len() < all / 50 && tally.equal > all / 2, "{tally:#?}");
}

/// The files of the repository.
#[test]
fn manifests_are_read_as_kubectl_reads_them() {
    let mut files = Vec::new();
    for folder in
        ["lint/testdata", "injector/testdata", "envoy-config", "charts", "discovery", "explain/testdata"]
    {
        manifests(&kit::envoy::workspace().join(folder), &mut files);
    }
    let texts: Vec<String> = files.iter().map(|file| fs::read_to_string(file).expect("UTF-8")).collect();
    let tally = compare(&texts);
    assert_eq!(tally.different, [""; 0]);
    // One has a duplicate key; in the other, a second document follows JSON without a marker.
    assert_eq!(tally.refused_here.len(), 2, "{:#?}", tally.refused_here);
    assert!(tally.equal > 500, "{}", tally.equal);
}

fn manifests(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            manifests(&path, files);
        } else if path
            .extension()
            .is_some_and(|extension| ["yaml", "yml", "json", "injected"].iter().any(|of| extension == *of))
        {
            files.push(path);
        }
    }
}

/// kubectl reads from the output what it reads from the input, with the changes of the injection.
#[test]
fn written_documents_are_read_by_kubectl() {
    #[derive(clap::Parser)]
    struct Flags {
        #[command(flatten)]
        settings: SettingsArgs,
    }
    let Flags { settings } = clap::Parser::parse_from(["app-health"]);
    let (settings, kinds) = (settings.check(None).expect("settings"), Kinds::default());
    let mut generator = Generator::new(2);
    let (mut expected, mut texts) = (Vec::new(), Vec::new());
    for _ in 0..count() / 4 {
        let string = generator.string();
        let value = json!({"a": string, (string.clone()): [string], "b": {"c": [{"d": string}, string]}});
        texts.push(yaml::text(&value));
        expected.push(value);
        let input = generator.workload();
        let documents = yaml_documents::read(&input);
        let Some(Ok(document)) = documents.first() else { continue };
        // A label may be no label, such as `a: b`.
        let Ok(injected) = document::inject(&document.value, &kinds, &settings) else { continue };
        if !injected.changed {
            continue;
        }
        texts.push(document.with_value(&injected.value, Format::Yaml));
        expected.push(injected.value);
    }
    assert!(texts.len() > count() / 4, "workloads are missing");
    for ((text, expected), decoded) in texts.iter().zip(&expected).zip(kubectl(&texts)) {
        assert_eq!(decoded.error, None, "{text}");
        assert!(
            is_equal(&json!([expected]), &json!(decoded.documents)),
            "{text}\n{expected}\n{:?}",
            decoded.documents
        );
    }
}
