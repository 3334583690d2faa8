use proptest::prelude::*;

use super::*;

/// Returns a frame of this type, with a payload whose bytes all equal the GOAWAY type.
fn frame(kind: u8, payload: usize) -> Vec<u8> {
    let length = u32::try_from(payload).unwrap().to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, 0, 0, 0, 0, 0];
    bytes.extend(std::iter::repeat_n(GOAWAY, payload));
    bytes
}

proptest! {
    #[test]
    fn is_seen_however_the_bytes_are_cut(
        frames in prop::collection::vec((0u8..10, 0usize..70_000), 0..6),
        cuts in prop::collection::vec(1usize..40_000, 1..40),
    ) {
        let bytes: Vec<u8> = frames.iter().flat_map(|(kind, payload)| frame(*kind, *payload)).collect();
        let (mut rest, mut seen, mut cuts) = (bytes.as_slice(), false, cuts.into_iter().cycle());
        let mut passing = Frames::default();
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(cuts.next().unwrap().min(rest.len()));
            seen |= passing.pass(piece);
            rest = later;
        }
        prop_assert_eq!(seen, frames.iter().any(|(kind, _)| *kind == GOAWAY));
    }
}
