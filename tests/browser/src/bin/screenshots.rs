//! The recipe `screenshots`.

use browser_tests::pictures;
use kit::envoy::workspace;

fn main() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(pictures::write(&workspace().join("docs/images")))
}
