//! Feeds arbitrary expositions to the merge of a scrape.

use scrape::{FamilyLimit, Format, Merge, Owner, SourceState};

/// Separates the sources of an input.
const SEPARATOR: u8 = 0x1e;

/// Merges sources whose bytes arrive in chunks of this length, and returns the response.
fn merge(sources: &[&[u8]], format: Format, chunk: usize) -> Vec<u8> {
    let (mut merge, mut out) = (Merge::default(), Vec::new());
    for (number, source) in (0..).zip(sources) {
        let mut state = SourceState::new(format, FamilyLimit::TARGET, Owner::Source(number), None);
        for chunk in source.chunks(chunk) {
            merge.feed(&mut state, chunk, &mut out);
        }
        merge.finish(&mut state, true, &mut out);
    }
    out
}

/// Merges the sources of an input, which are separated by a byte 0x1e; the first byte selects their
/// format and the length of their chunks. The response does not depend on the chunks, and merging it
/// again accepts it as a whole and changes nothing.
///
/// # Panics
/// Panics if one of these does not hold.
pub fn expositions(bytes: &[u8]) {
    let Some((first, rest)) = bytes.split_first() else { return };
    let format = if first & 1 == 0 { Format::Text } else { Format::OpenMetrics };
    // The type of `Owner` limits how many sources there are.
    let sources: Vec<&[u8]> = rest.split(|byte| *byte == SEPARATOR).take(usize::from(u8::MAX)).collect();
    let out = merge(&sources, format, usize::MAX);
    let text = String::from_utf8_lossy(&out);
    assert_eq!(text, String::from_utf8_lossy(&merge(&sources, format, usize::from(first >> 1) + 1)));

    let (mut again, mut same) = (Merge::default(), Vec::new());
    let mut state = SourceState::new(Format::Text, FamilyLimit::ENVOY, Owner::Source(0), None);
    again.feed(&mut state, &out, &mut same);
    again.finish(&mut state, true, &mut same);
    assert_eq!((state.dropped().total(), again.duplicates()), (0, 0), "{text}");
    // One carriage return at the end of a HELP text belongs to the line break.
    let without_returns = |text: &[u8]| String::from_utf8_lossy(text).replace('\r', "");
    assert_eq!(without_returns(&same), without_returns(&out));
}
