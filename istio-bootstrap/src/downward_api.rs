//! Labels and annotations of the Pod, in files of the downward API.

use std::collections::BTreeMap;

use crate::go;

/// Reads lines such as `app="web"`, whose values are quoted as in Go. Lines without `=` are ignored.
///
/// # Errors
/// The key of a value that is not quoted as in Go.
pub fn parse(text: &str) -> Result<BTreeMap<String, String>, String> {
    text.split('\n')
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| match go::unquote(value) {
            Some(value) => Ok((key.to_owned(), value)),
            None => Err(key.to_owned()),
        })
        .collect()
}
