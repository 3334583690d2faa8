use super::*;

const HEAD: &str =
    "[2026-11-20 17:57:47.545][7][critical][main] [source/server/config_validation/server.cc:76] ";

#[test]
fn the_reason_is_one_line() {
    let dump = format!(
        "{HEAD}error initializing configuration 'b.json': goo.gle/debugonly  \nnode {{\n  id: \"SECRET\"\n}}\n\
         : Proto constraint validation failed (ClusterValidationError.Name: too short)\n"
    );
    for (said, reason) in [
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
        assert_eq!(complaint(&said).as_deref(), reason, "{said}");
    }
    assert_eq!(complaint(&"ä".repeat(5000)).map(|line| line.len()), Some(COMPLAINT));
}

#[test]
fn however_much_is_said_little_is_kept() {
    let mut words = Words::default();
    words.push(format!("{HEAD}error initializing configuration 'b.json': goo.gle/debugonly\n").as_bytes());
    for _ in 0..100_000 {
        words.push(b"  string_value: \"SECRET\"\n");
    }
    assert_eq!(words.complaint().as_deref(), Some("no reason given"));
    words.push(b": the reason\n");
    assert_eq!(words.complaint().as_deref(), Some("the reason"));
    assert!(words.beginning.len() + words.end.len() <= 3 * KEPT);
}
