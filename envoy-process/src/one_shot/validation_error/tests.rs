use super::*;

const HEAD: &str =
    "[2026-11-20 17:57:47.545][7][critical][main] [source/server/config_validation/server.cc:76] ";

#[test]
fn the_reason_is_one_line() {
    let dump = format!(
        "{HEAD}error initializing configuration 'b.json': goo.gle/debugonly  \nnode {{\n  id: \"SECRET\"\n}}\n\
         : Proto constraint validation failed (ClusterValidationError.Name: too short)\n"
    );
    for (output, reason) in [
        (String::new(), None),
        ("\n \n".to_owned(), None),
        ("no such cluster\nusage: SECRET\n".to_owned(), Some("no such cluster")),
        (
            "PARSE ERROR: Argument: --x\n             Couldn't find match for argument\n\nBrief USAGE: \n"
                .to_owned(),
            Some("PARSE ERROR: Argument: --x; Couldn't find match for argument"),
        ),
        (
            format!(
                "{HEAD}error initializing configuration 'b.json': cannot create\u{7} a cluster\nSECRET\n"
            ),
            Some("cannot create? a cluster"),
        ),
        (dump.clone(), Some("Proto constraint validation failed (ClusterValidationError.Name: too short)")),
        (dump.lines().take(3).collect::<Vec<_>>().join("\n"), Some("no reason given")),
    ] {
        assert_eq!(error_message(&output).as_deref(), reason, "{output}");
    }
    assert_eq!(error_message(&"ä".repeat(5000)).map(|line| line.len()), Some(MAX_MESSAGE_BYTES));
}

#[test]
fn the_captured_output_is_bounded() {
    let mut captured = CapturedOutput::default();
    captured.push(format!("{HEAD}error initializing configuration 'b.json': goo.gle/debugonly\n").as_bytes());
    for _ in 0..100_000 {
        captured.push(b"  string_value: \"SECRET\"\n");
    }
    assert_eq!(captured.error_message().as_deref(), Some("no reason given"));
    captured.push(b": the reason\n");
    assert_eq!(captured.error_message().as_deref(), Some("the reason"));
    assert!(captured.beginning.len() + captured.end.len() <= 3 * KEEP_BYTES);
}
