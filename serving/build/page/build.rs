//! Build script of the crates with a status page: writes the Content-Security-Policy of
//! `src/page/page.html` to `page_policy.txt`.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

fn main() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/page/page.html");
    println!("cargo::rerun-if-changed={}", file.display());
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let written = fs::read_to_string(&file)
        .map_err(|error| error.to_string())
        .and_then(|page| policy(&page))
        .and_then(|policy| fs::write(out.join("page_policy.txt"), policy).map_err(|error| error.to_string()));
    if let Err(error) = written {
        println!("cargo::error={}: {error}", file.display());
    }
}

/// Returns the policy that allows this page its own style, its own script, and requests to the server
/// that it comes from. `page` has exactly one `<style>` and one `<script>`, without attributes.
fn policy(page: &str) -> Result<String, String> {
    let hash = |tag: &str| {
        let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
        match (page.split(&open).collect::<Vec<_>>().as_slice(), page.matches(&close).count()) {
            ([_, rest], 1) => {
                let text = rest.split(&close).next().unwrap_or_default();
                Ok(STANDARD.encode(Sha256::digest(text)))
            }
            _ => Err(format!("the page needs exactly one {open}")),
        }
    };
    Ok(format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        hash("style")?,
        hash("script")?
    ))
}
