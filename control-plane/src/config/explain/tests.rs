use clap::Parser as _;

use super::*;
use crate::args::{Args, Command};

fn config(words: &str) -> Result<ExplainConfig, String> {
    let words = ["app-health", "explain"].into_iter().chain(words.split_whitespace());
    let args = Args::try_parse_from(words).map_err(|error| error.to_string())?;
    let Command::Explain(args) = args.command else { panic!("{args:?}") };
    ExplainConfig::new(args).map_err(|error| error.to_string())
}

#[test]
fn objects() {
    for (words, expected) in [
        ("pod/web", "pod/web"),
        ("web-7d9", "pod/web-7d9"),
        ("deployment web", "deployment/web"),
        ("sts/db -n shop --timeout 500ms", "statefulset/db"),
    ] {
        assert_eq!(config(words).expect(words).object.to_string(), expected);
    }
}

#[test]
fn invalid_flags_are_rejected() {
    for (words, expected) in [
        ("", "KIND/NAME"),
        ("service/web", "is not one of pod"),
        ("pod web more", "no more were expected"),
        ("pod/web --namespace A/B", "--namespace = \"A/B\""),
        ("pod/web --webhook-config ../x", "--webhook-config"),
        ("pod/web --timeout 0s", "--timeout"),
        ("pod/web -o yaml", "invalid value"),
    ] {
        let error = config(words).expect_err(words);
        assert!(error.contains(expected), "{words}: {error}");
    }
}
