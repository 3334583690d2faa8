//! The token that authenticates the agent to the discovery server, such as one of a Kubernetes
//! service account. Such tokens are renewed within the hour, so the file is read for each connection.

use std::path::Path;

use hyper::header::HeaderValue;

/// Maximum size of the file in bytes.
const SIZE_LIMIT: usize = 64 << 10;

/// Returns the header `authorization` with the token in this file. The error names the flag.
pub fn read(file: &Path) -> Result<HeaderValue, String> {
    let wrong = |why: &dyn std::fmt::Display| format!("--discovery-token-file = {file:?}: {why}");
    let token = std::fs::read_to_string(file).map_err(|error| wrong(&error))?;
    let token = token.trim();
    if token.is_empty() || token.len() > SIZE_LIMIT {
        return Err(wrong(&"must contain one token"));
    }
    let mut header = HeaderValue::from_str(&format!("Bearer {token}"))
        .map_err(|_| wrong(&"must contain one token, without line breaks"))?;
    header.set_sensitive(true);
    Ok(header)
}
