//! The token that authenticates the agent to the discovery server, such as one of a Kubernetes
//! service account. Such tokens are renewed within the hour, so the file is read for each connection.

use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;

use hyper::header::HeaderValue;

/// Maximum size of the file in bytes.
const SIZE_LIMIT: usize = 64 << 10;

/// A file with a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenFile {
    /// Name of the setting in error texts, such as `--discovery-token-file`.
    pub name: &'static str,
    pub path: PathBuf,
    /// True if requests have no token as long as the file does not exist.
    pub is_optional: bool,
}

impl TokenFile {
    /// Returns the header `authorization` with the token.
    ///
    /// # Errors
    /// If the file cannot be read or contains no token.
    pub fn read(&self) -> Result<Option<HeaderValue>, String> {
        let wrong = |why: &dyn fmt::Display| format!("{} = {:?}: {why}", self.name, self.path);
        let token = match std::fs::read_to_string(&self.path) {
            Err(error) if self.is_optional && error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| wrong(&error))?,
        };
        let token = token.trim();
        if token.is_empty() || token.len() > SIZE_LIMIT {
            return Err(wrong(&"must contain one token"));
        }
        let mut header = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| wrong(&"must contain one token, without line breaks"))?;
        header.set_sensitive(true);
        Ok(Some(header))
    }
}
