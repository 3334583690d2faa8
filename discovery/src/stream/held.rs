//! How many endpoints a client holds, told by the versions that it sends when it comes back.
//!
//! A server that lost its store knows nobody for a while. A client that was there before must not be told so: it would empty its sets. In the
//! incremental variant each assignment has a version of its own. In the other there is one version for all names: it lists the numbers
//! of endpoints in the order of the names (`a1b2c3d4e5f60718-3.0.2`), or only the largest (`…-m3`) where there are many.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

/// More names than this get the largest number only: versions stay short.
const LISTED: usize = 128;

/// The part of the version that tells the numbers of endpoints, by name.
pub(super) fn write(endpoints: &[u32]) -> String {
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

/// What a client that sends this version holds of these names. Where their number does not fit, each may be the largest. A version that is
/// not ours tells nothing.
pub(super) fn read<'a>(
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
