//! Shared by the build scripts of agent and control plane: the Content-Security-Policy of a page.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// Returns the policy that allows this page its own style, its own script, and requests to the server
/// that it comes from. `page` has exactly one `<style>` and one `<script>`, without attributes.
pub(crate) fn policy(page: &str) -> Result<String, String> {
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
