//! Encodes the numbers of endpoints that a client holds in xDS versions, and reads them when the
//! client reconnects.
//!
//! A server that lost its store does not know most endpoints for some time, and must not send
//! smaller assignments to a client that still has them. In the incremental variant, each assignment
//! has a version. In the state-of-the-world variant, one version covers all names: it lists the
//! numbers of endpoints in the order of the names, as in `a1b2c3d4e5f60718-3.0.2`. With many names
//! it contains only the largest number, as in `a1b2c3d4e5f60718-m3`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// With more names than this, the version contains only the largest number, so that it stays short.
const LISTED: usize = 128;

/// Encodes the numbers of endpoints, which are in the order of the names.
pub(super) fn encode(endpoints: &[u32]) -> String {
    if endpoints.len() > LISTED {
        return format!("m{}", endpoints.iter().max().copied().unwrap_or_default());
    }
    let mut text = String::new();
    for (index, number) in endpoints.iter().enumerate() {
        let dot = if index == 0 { "" } else { "." };
        let _ = write!(text, "{dot}{number}");
    }
    text
}

/// Returns how many endpoints a client with this version has of each name. If the numbers do not
/// match the names, every name gets the largest number. A version in another format gives an empty
/// map or zeros.
pub(super) fn decode<'a>(
    version: &str,
    names: impl ExactSizeIterator<Item = &'a Arc<str>>,
) -> BTreeMap<Arc<str>, u32> {
    let Some((_, text)) = version.split_once('-') else { return BTreeMap::new() };
    let numbers: Option<Vec<u32>> =
        text.trim_start_matches('m').split('.').map(|number| number.parse().ok()).collect();
    let numbers = numbers.unwrap_or_default();
    let largest = numbers.iter().max().copied().unwrap_or_default();
    let fits = numbers.len() == names.len() && !text.starts_with('m');
    names
        .enumerate()
        .map(|(index, name)| {
            let number = numbers.get(index).copied().filter(|_| fits).unwrap_or(largest);
            (name.clone(), number)
        })
        .collect()
}

#[cfg(test)]
mod tests;
