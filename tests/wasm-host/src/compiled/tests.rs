use std::fs;

use wasmtime::Engine;

use super::module;

const MODULE: &[u8] = b"\0asm\x01\0\0\0";

#[test]
fn machine_code_is_kept_and_replaced_if_it_is_unusable() {
    let folder = std::env::temp_dir().join(format!("app-health-compiled-{}", std::process::id()));
    let engine = Engine::default();
    module(&engine, MODULE, Some(&folder), "empty").unwrap();
    let file = folder.join("empty.cwasm");
    let kept = fs::read(&file).unwrap();
    module(&engine, b"not wasm", Some(&folder), "empty").expect("read from the file, not compiled");
    fs::write(&file, "of another version").unwrap();
    module(&engine, MODULE, Some(&folder), "empty").unwrap();
    assert_eq!(fs::read(&file).unwrap(), kept);
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "no partial file is left");
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn invalid_bytes_are_rejected() {
    assert!(module(&Engine::default(), b"not wasm", None, "").is_err());
}
