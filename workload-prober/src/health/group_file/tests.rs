use super::*;

const HEAD: &str = "apiVersion: networking.istio.io/v1\nkind: WorkloadGroup\nmetadata: { name: payments, namespace: shop }\n";

fn check(text: &str, expected: Result<(&str, &[&str]), &str>) {
    let found = parse(text.as_bytes()).map(|checked| (checked.value.name, checked.warnings));
    let expected = expected
        .map(|(name, warnings)| (name.to_owned(), warnings.iter().map(|line| (*line).to_owned()).collect()))
        .map_err(str::to_owned);
    assert_eq!(found, expected, "{text}");
}

#[test]
fn one_document() {
    check(HEAD, Ok(("payments", &[])));
    check(&format!("---\n{HEAD}---\n"), Ok(("payments", &[])));
    check(&format!("# said\n---\n# again\n{HEAD}...\n"), Ok(("payments", &[])));
    check(
        &format!("{HEAD}spec: {{ probe: {{ grpc: {{ port: 1, host: a }} }} }}\n"),
        Ok(("payments", &["spec.probe.grpc.host: unknown field, ignored"])),
    );
    check(&format!("{HEAD}---\n{HEAD}"), Err("expected one document, found 2"));
    check("", Err("expected one document, found 0"));
    check("# nothing\n", Err("expected one document, found 0"));
}

#[test]
fn errors_carry_their_location() {
    let deep = format!("{HEAD}spec: {}{}\n", "[".repeat(70), "]".repeat(70));
    for (text, words) in [
        (format!("{HEAD}kind: Deployment\n"), "4:1: duplicate mapping key"),
        (format!("{HEAD}spec: {{ probe\n"), "4:"),
        (format!("{HEAD}spec:\n\tprobe: 1\n"), "5:"),
        (deep, "4:"),
        (
            "kind: Deployment\napiVersion: apps/v1\nmetadata: { name: a }\n".to_owned(),
            "kind: expected WorkloadGroup, got Deployment; apiVersion: ",
        ),
        (format!("{HEAD}spec: {{ probe: {{ httpGet: }} }}\n"), "spec.probe.httpGet: must not be empty"),
        (
            format!("{HEAD}spec: {{ probe: {{ httpGet: {{ port: http }}, periodSeconds: 1.5 }} }}\n"),
            "spec.probe.periodSeconds: expected a whole number, got 1.5; spec.probe.httpGet.port: expected a whole number, got \"http\"",
        ),
    ] {
        let error = parse(text.as_bytes()).expect_err(&text);
        assert!(error.contains(words) && !error.contains('\n'), "{text}: {error}");
    }
    assert!(parse(b"\xff").expect_err("no text").starts_with("not UTF-8"));
}

#[test]
fn numbers_as_kubectl_reads_them() {
    let text = format!("{HEAD}spec: {{ probe: {{ periodSeconds: 010, tcpSocket: {{ port: 0x50 }} }} }}\n");
    let probe = parse(text.as_bytes()).unwrap().value.probe.unwrap();
    assert_eq!((probe.period.as_secs(), probe.handler.network().unwrap().1.get()), (8, 80));
}

#[test]
fn unusable_files() {
    let folder = std::env::temp_dir();
    assert_eq!(WorkloadGroupFile::open(folder.clone()).unwrap_err(), "not a regular file");
    let large = folder.join(format!("app-health-{}-large.yaml", std::process::id()));
    std::fs::write(&large, vec![b'#'; (1 << 20) + 1]).unwrap();
    let error = WorkloadGroupFile::open(large.clone()).unwrap_err();
    std::fs::remove_file(large).unwrap();
    assert_eq!(error, "larger than 1 MiB");
}
