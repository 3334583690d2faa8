use super::*;

/// A folder like the root of Istio's image, with a template that shows what was read.
fn pod(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("istio-agent-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    for part in ["etc/istio/pod", "etc/istio/config", "var/lib/istio/envoy"] {
        fs::create_dir_all(folder.join(part)).unwrap();
    }
    fs::write(folder.join(TEMPLATE), r#"{"id": "{{ .nodeID }}", "port": {{ .config.StatusPort }}}"#).unwrap();
    folder
}

fn read(folder: &Path, words: &[&str], variables: &[(&str, &str)]) -> Result<Contract, NotOurs> {
    let pod = [("INSTANCE_IP", "10.0.0.7"), ("POD_NAME", "web-1"), ("POD_NAMESPACE", "shop")];
    let text = |text: &&str| (*text).to_owned();
    let environment = pod.iter().chain(variables).map(|(name, value)| (text(name), text(value))).collect();
    let words: Vec<String> = words.iter().map(text).collect();
    Contract::read(&words, environment, folder, || "1.31.0".to_owned())
}

#[test]
fn layers_are_laid_over_each_other() {
    let folder = pod("layers");
    let config = |contract: &Contract, field: &str| contract.config.get(field).cloned().unwrap_or_default();
    let contract = read(&folder, &["sidecar"], &[]).unwrap();
    assert_eq!(config(&contract, "statusPort"), 15020);

    let mesh = "defaultConfig:\n  statusPort: 1\n  statNameLength: 2\n  concurrency: 3\ntrustDomain: x\n";
    fs::write(folder.join("etc/istio/config/mesh"), mesh).unwrap();
    let annotation =
        "proxy.istio.io/config=\"concurrency: 5\\nstatusPort: 6\"\nstatus.sidecar.istio.io/port=\"7\"\n";
    fs::write(folder.join("etc/istio/pod/annotations"), annotation).unwrap();
    let contract =
        read(&folder, &[], &[("PROXY_CONFIG", "{\"statNameLength\": 4, \"concurrency\": 4}")]).unwrap();
    assert_eq!(config(&contract, "statNameLength"), 4);
    assert_eq!(config(&contract, "concurrency"), 5);
    assert_eq!(config(&contract, "statusPort"), 7);
    let bootstrap: Value = serde_json::from_str(contract.bootstrap.as_deref().unwrap()).unwrap();
    let expected = json!({"id": "sidecar~10.0.0.7~web-1.shop~shop.svc.cluster.local", "port": 7});
    assert_eq!(bootstrap, expected);
    assert_eq!(contract.bootstrap_file, folder.join("./etc/istio/proxy/envoy-rev.json"));
    let contract = read(&folder, &["--concurrency=8"], &[]).unwrap();
    assert_eq!(contract.config.concurrency(), Some(8));
    assert!(contract.envoy_flags.join(" ").contains("--concurrency 8"), "{:?}", contract.envoy_flags);
}

#[test]
fn a_bootstrap_of_the_user_is_used_as_it_is() {
    let folder = pod("custom");
    let config = [("PROXY_CONFIG", "customConfigFile: ./custom.json")];
    let contract = read(&folder, &[], &config).unwrap();
    assert_eq!(contract.bootstrap, None);
    assert_eq!(contract.bootstrap_file, folder.join("./custom.json"));
}

#[test]
fn a_document_for_envoys_bootstrap_is_passed_on() {
    let folder = pod("override");
    let document = "tracing:\n  address: \"[$(HOST_IP)]:1\"\n  host: $(HOST_IP)\n";
    fs::write(folder.join("override.yaml"), document).unwrap();
    for (host, expected) in [
        ("10.0.0.1", r#"{"tracing":{"address":"[10.0.0.1]:1","host":"10.0.0.1"}}"#),
        ("fd00::1", r#"{"tracing":{"address":"[fd00::1]:1","host":["fd00::1"]}}"#),
    ] {
        let variables = [("ISTIO_BOOTSTRAP_OVERRIDE", "override.yaml"), ("HOST_IP", host)];
        let contract = read(&folder, &[], &variables).unwrap();
        let flags = &contract.envoy_flags;
        let position = flags.iter().position(|flag| flag == "--config-yaml").unwrap();
        assert_eq!(flags[position + 1], expected);
    }
    let contract = read(&folder, &[], &[("ISTIO_BOOTSTRAP_OVERRIDE", "missing.yaml")]).unwrap();
    assert!(contract.warnings[0].starts_with("ISTIO_BOOTSTRAP_OVERRIDE = missing.yaml: "));
}

/// Envoy refuses an interval of zero. Istio's agent divides by it if there is one for evictions too.
#[test]
fn an_interval_of_zero_is_left_out() {
    let folder = pod("interval");
    fs::write(folder.join(TEMPLATE), "{{ if .stats_flush_interval }}{{ .stats_flush_interval }}{{ end }}")
        .unwrap();
    for (interval, expected) in [("0s", ""), ("1.5s", "1.5s")] {
        let annotations = format!(
            "sidecar.istio.io/statsFlushInterval=\"{interval}\"\nsidecar.istio.io/statsEvictionInterval=\"3s\"\n"
        );
        fs::write(folder.join("etc/istio/pod/annotations"), annotations).unwrap();
        assert_eq!(read(&folder, &[], &[]).unwrap().bootstrap.as_deref(), Some(expected), "{interval}");
    }
}

#[test]
fn the_address_of_statsd_is_looked_up() {
    let folder = pod("statsd");
    let read = |address: &str| {
        let config = format!("{{\"statsdUdpAddress\": \"{address}\"}}");
        let contract = read(&folder, &[], &[("PROXY_CONFIG", &config)]).unwrap();
        (contract.config.text("statsdUdpAddress").to_owned(), contract.warnings)
    };
    for address in ["10.1.1.1:9125", "[fd00::1]:9125"] {
        assert_eq!(read(address), (address.to_owned(), vec![]));
    }
    let (found, _) = read("localhost:9125");
    assert!(["127.0.0.1:9125", "[::1]:9125"].contains(&found.as_str()), "{found}");
    let (found, warnings) = read("name.invalid");
    assert_eq!(found, "");
    assert!(warnings[0].starts_with("statsdUdpAddress = name.invalid: "), "{warnings:?}");
}

#[test]
fn what_cannot_be_read_is_named() {
    let folder = pod("invalid");
    let refused =
        |words: &[&str], variables: &[(&str, &str)]| read(&folder, words, variables).unwrap_err().to_string();
    assert_eq!(refused(&["router"], &[]), "proxy router: only sidecars are supported");
    assert_eq!(refused(&["--concurrency=x"], &[]), "--concurrency = \"x\": must be a number");
    assert!(refused(&[], &[("PROXY_CONFIG", "[")]).starts_with("PROXY_CONFIG: "));
    assert!(refused(&[], &[("PROXY_CONFIG", "statusPort: x")]).starts_with("PROXY_CONFIG: "));
    fs::write(folder.join(TEMPLATE), "{{ template \"x\" }}").unwrap();
    let expected = format!("{}: the bootstrap template: ", folder.join(TEMPLATE).display());
    assert!(refused(&[], &[]).starts_with(&expected), "{}", refused(&[], &[]));
}

#[test]
fn another_server_of_secrets_is_left_to_istios_agent() {
    let folder = pod("spire");
    fs::create_dir_all(folder.join("var/run/secrets/workload-spiffe-uds")).unwrap();
    let socket = folder.join(SECRETS_SOCKET);
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let refused = read(&folder, &[], &[]).unwrap_err().to_string();
    assert_eq!(
        refused,
        format!("./{SECRETS_SOCKET}: another SDS server answers there, such as that of SPIRE")
    );
    // A socket of an earlier container, which nothing serves, is replaced.
    drop(listener);
    assert!(socket.exists());
    read(&folder, &[], &[]).unwrap();
}
