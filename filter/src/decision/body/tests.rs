use proptest::prelude::*;

use super::{BLANKS, Body, Chunk};

#[test]
fn bodies() {
    use Chunk::{Blanks, Empty, Untouched};
    assert_eq!(BLANKS, 10_241, "one more than kubelet reads");
    for (name, chunks, expected) in [
        ("an empty body", vec![(0, true)], vec![Untouched]),
        ("a small body", vec![(2, true)], vec![Empty]),
        ("an empty last chunk", vec![(2, false), (0, true)], vec![Empty, Untouched]),
        ("10239 bytes", vec![(10_239, false), (0, true)], vec![Empty, Untouched]),
        ("10240 bytes that end", vec![(10_240, true)], vec![Empty]),
        ("10240 bytes, and more may come", vec![(10_240, false), (0, true)], vec![Blanks, Untouched]),
        ("10241 bytes that end", vec![(10_241, true)], vec![Empty]),
        ("10241 bytes", vec![(10_241, false)], vec![Blanks]),
        (
            "byte by byte over the limit",
            vec![(10_239, false), (1, false), (1, false)],
            vec![Empty, Blanks, Empty],
        ),
        ("the limit and the end together", vec![(10_239, false), (1, true)], vec![Empty, Empty]),
        (
            "blanks once",
            vec![(20_000, false), (20_000, false), (0, false), (1, true)],
            vec![Blanks, Empty, Untouched, Empty],
        ),
        ("endless", vec![(usize::MAX, false), (usize::MAX, false), (1, false)], vec![Blanks, Empty, Empty]),
        (
            "empty chunks before",
            vec![(0, false), (0, false), (10_240, false)],
            vec![Untouched, Untouched, Blanks],
        ),
    ] {
        let mut body = Body::default();
        let found: Vec<_> = chunks.into_iter().map(|(size, end)| body.on_chunk(size, end)).collect();
        assert_eq!(found, expected, "{name}");
    }
}

proptest! {
    #[test]
    fn every_body_is_emptied_but_for_one_chunk_of_blanks(
        chunks in prop::collection::vec(0..6000usize, 0..12),
    ) {
        let mut body = Body::default();
        let mut seen = 0;
        let mut blanks = 0;
        for size in chunks {
            seen += size;
            match body.on_chunk(size, false) {
                Chunk::Blanks => blanks += 1,
                Chunk::Empty => prop_assert!(size > 0),
                Chunk::Untouched => prop_assert_eq!(size, 0),
            }
            prop_assert_eq!(blanks, i32::from(seen >= 10_240));
        }
    }
}
