//! The messages of Kubernetes that explain something, as data: each table has whole phrases with the
//! place in the source that writes them, and what to do about them.

pub(crate) mod admission;
pub(crate) mod container;
pub(crate) mod deletion;
pub(crate) mod failed_pod;
pub(crate) mod image;
pub(crate) mod output;
pub(crate) mod probe;
pub(crate) mod sandbox;
pub(crate) mod scheduler;
pub(crate) mod volume;

/// A message, and what to do about it.
#[derive(Debug)]
pub(crate) struct Wording {
    /// The whole message; `*` stands for any text, also for none.
    pub(crate) pattern: &'static str,
    /// The file that writes it, and the versions that do; of Kubernetes unless it names another
    /// project.
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers; a test checks it"))]
    pub(crate) source: &'static str,
    pub(crate) advice: &'static str,
    /// False if the pattern knows only which call failed, and the rest of the message says why.
    pub(crate) certain: bool,
}

/// Makes an entry of a table: pattern, source, advice.
pub(crate) const fn wording(pattern: &'static str, source: &'static str, advice: &'static str) -> Wording {
    Wording { pattern, source, advice, certain: true }
}

/// Makes an entry for what the other entries of a table do not know: its advice is a hint.
pub(crate) const fn hint(pattern: &'static str, source: &'static str, advice: &'static str) -> Wording {
    Wording { pattern, source, advice, certain: false }
}

/// Returns true if the message was found, and tells what is wrong.
pub(crate) fn is_certain(known: Option<&Wording>) -> bool {
    known.is_some_and(|known| known.certain)
}

/// Returns the first wording that matches the whole message, also if it has several lines. Messages
/// in messages have escaped quotes.
pub(crate) fn find(table: &'static [Wording], message: &str) -> Option<&'static Wording> {
    let message = one_line(message).replace("\\\"", "\"");
    table.iter().find(|wording| matches(wording.pattern, &message))
}

/// Returns the lines of the text that are not empty, separated by spaces.
pub(crate) fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Returns true if the pattern matches the whole text.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(first) else { return false };
    let (middle, last) = rest.rsplit_once('*').map_or((None, rest), |(middle, last)| (Some(middle), last));
    let Some(mut text) = text.strip_suffix(last) else { return false };
    // The earliest place of each part leaves the most text to the others.
    for part in middle.into_iter().flat_map(|middle| middle.split('*')) {
        let Some((_, after)) = text.split_once(part) else { return false };
        text = after;
    }
    true
}

#[cfg(test)]
mod tests;
