use std::fs;

use serde_json::json;

use super::*;

/// A folder like the root of a machine or Pod, with these empty files.
fn machine(name: &str, files: &[&str]) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("istio-certificates-{}-{name}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let template = "var/lib/istio/envoy/envoy_bootstrap_tmpl.json";
    for file in files.iter().copied().chain([template]) {
        let file = folder.join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "{}").unwrap();
    }
    folder
}

fn contract(folder: &Path, variables: &[(&str, &str)]) -> Contract {
    let variables = [("INSTANCE_IP", "10.0.0.7")].iter().chain(variables);
    let environment = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Contract::read(&[], environment, folder, || "1.31.0".to_owned()).unwrap()
}

/// Returns the paths without the folder: CA certificates for configuration and for certificates, and the client
/// certificates of both.
fn tls(folder: &Path, variables: &[(&str, &str)]) -> [String; 4] {
    let contract = contract(folder, variables);
    let short = |file: &Path| file.strip_prefix(folder).unwrap_or(file).display().to_string();
    let [discovery, ca] = [discovery_tls(&contract).unwrap(), ca_tls(&contract).unwrap()];
    let client = |files: &TlsFiles| {
        let Some(ClientFiles { cert, key, is_optional }) = &files.client else { return String::new() };
        assert!(*is_optional);
        format!("{} {}", short(cert), short(key))
    };
    [short(&discovery.ca), short(&ca.ca), client(&discovery), client(&ca)]
}

const CONFIG_MAP: &str = "var/run/secrets/istio/root-cert.pem";
const PROVIDED: &str = "etc/certs/cert-chain.pem etc/certs/key.pem";

#[test]
fn a_pod_has_the_roots_of_its_namespace() {
    let folder = machine("pod", &[]);
    assert_eq!(tls(&folder, &[]), [CONFIG_MAP, CONFIG_MAP, "", ""]);
    assert_eq!(mounted(&contract(&folder, &[])), MountedFiles::default());
    assert_eq!(output(&contract(&folder, &[])), None);
    let own = [("XDS_ROOT_CA", "/xds.pem"), ("CA_ROOT_CA", "./ca.pem")];
    assert_eq!(tls(&folder, &own), ["/xds.pem", "ca.pem", "", ""]);
    let custom = [("PILOT_CERT_PROVIDER", "custom")];
    assert_eq!(tls(&folder, &custom), [CONFIG_MAP, "etc/certs/root-cert.pem", "", ""]);
}

/// The variables that Istio's start script of virtual machines sets.
#[test]
fn a_machine_identifies_itself_by_the_certificate_that_it_has_written() {
    let script = [("PROV_CERT", "./etc/certs"), ("OUTPUT_CERTS", "./etc/certs")];
    let root = "etc/certs/root-cert.pem";
    for files in [&[][..], &["etc/certs/root-cert.pem", "etc/certs/cert-chain.pem", "etc/certs/key.pem"]] {
        let folder = machine(&format!("machine-{}", files.len()), files);
        assert_eq!(tls(&folder, &script), [root, root, PROVIDED, PROVIDED]);
        let contract = contract(&folder, &script);
        // What the agent has written is not what another program has mounted.
        assert_eq!(mounted(&contract), MountedFiles::default());
        assert_eq!(output(&contract), Some(OutputFolder { path: folder.join("etc/certs"), mode: 0o600 }));
    }
}

#[test]
fn mounted_files_are_used_where_istio_looks_for_them() {
    let names = ["cert-chain.pem", "key.pem", "root-cert.pem"];
    let credentials = names.map(|name| format!("var/run/secrets/workload-spiffe-credentials/{name}"));
    let certs = names.map(|name| format!("etc/certs/{name}"));
    let both: Vec<&str> = credentials.iter().chain(&certs).map(String::as_str).collect();
    let folder = machine("credentials", &both);
    assert_eq!(mounted(&contract(&folder, &[])), MountedFiles::of(&folder.join(CREDENTIALS)));
    // An incomplete set does not count.
    let folder = machine("certs", &both[1..]);
    assert_eq!(mounted(&contract(&folder, &[])), MountedFiles::of(&folder.join("etc/certs")));
    assert_eq!(tls(&folder, &[]), ["etc/certs/root-cert.pem", CONFIG_MAP, "", ""]);
    let folder = machine("root", &["etc/certs/root-cert.pem"]);
    let expected = MountedFiles { pair: None, roots: Some(folder.join("etc/certs/root-cert.pem")) };
    assert_eq!(mounted(&contract(&folder, &[])), expected);
    let kubernetes = [("OUTPUT_CERTS", "/certs"), ("KUBERNETES_SERVICE_HOST", "10.0.0.1")];
    assert_eq!(
        output(&contract(&folder, &kubernetes)),
        Some(OutputFolder { path: "/certs".into(), mode: 0o644 })
    );
    assert_eq!(mounted(&contract(&folder, &kubernetes)), expected);
}

#[test]
fn the_metadata_names_files_for_mounted_certificates() {
    let folder = machine("metadata", &[]);
    let config = json!({"proxyMetadata": {
        "ISTIO_META_TLS_CLIENT_ROOT_CERT": "/a/root.pem",
        "ISTIO_META_TLS_CLIENT_CERT_CHAIN": "/a/chain.pem",
        "ISTIO_META_TLS_CLIENT_KEY": "/a/key.pem",
    }})
    .to_string();
    let variables = [("PROXY_CONFIG", config.as_str()), ("FILE_MOUNTED_CERTS", "true")];
    assert_eq!(tls(&folder, &variables), ["/a/root.pem", CONFIG_MAP, "/a/chain.pem /a/key.pem", ""]);
    // The files may appear later.
    assert_eq!(mounted(&contract(&folder, &variables)), MountedFiles::of(&folder.join("etc/certs")));
    assert_eq!(tls(&folder, &variables[..1]), [CONFIG_MAP, CONFIG_MAP, "", ""]);
}
