//! Tests of `--version`: its first line is for scripts, the others say what was built.

use envoy_process::state_dir::{MODULE, WASM};
use kit::agent;

#[tokio::test]
async fn the_version_has_a_stable_first_line() {
    let first = concat!("app-health-agent ", env!("CARGO_PKG_VERSION"), "\n");
    let short = agent::run(&["-V"], &[]).await;
    assert_eq!((short.code, short.stdout.as_str()), (Some(0), first));

    let long = agent::run(&["--version"], &[]).await;
    let expected = format!(
        "{first}commit: unknown\nbuilt for: virtual machines\nfilter: wasm {}, native {}\n\
         tested with Envoy: 1.40.0, 1.39.1\ntested with Kubernetes: 1.36.3\n",
        WASM.file_name, MODULE.file_name
    );
    assert_eq!((long.code, long.stdout), (Some(0), expected));
}
