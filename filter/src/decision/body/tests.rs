use proptest::prelude::*;

use super::{BodyFilter, ChunkEdit, SPACES};

#[test]
fn bodies() {
    use ChunkEdit::{Clear, Keep, Spaces};
    assert_eq!(SPACES, 10_241, "one more than kubelet reads");
    for (name, chunks, expected) in [
        ("an empty body", vec![(0, true)], vec![Keep]),
        ("a small body", vec![(2, true)], vec![Clear]),
        ("an empty last chunk", vec![(2, false), (0, true)], vec![Clear, Keep]),
        ("10239 bytes", vec![(10_239, false), (0, true)], vec![Clear, Keep]),
        ("10240 bytes that end", vec![(10_240, true)], vec![Clear]),
        ("10240 bytes, and more may come", vec![(10_240, false), (0, true)], vec![Spaces, Keep]),
        ("10241 bytes that end", vec![(10_241, true)], vec![Clear]),
        ("10241 bytes", vec![(10_241, false)], vec![Spaces]),
        (
            "byte by byte over the limit",
            vec![(10_239, false), (1, false), (1, false)],
            vec![Clear, Spaces, Clear],
        ),
        ("the limit and the end together", vec![(10_239, false), (1, true)], vec![Clear, Clear]),
        (
            "blanks once",
            vec![(20_000, false), (20_000, false), (0, false), (1, true)],
            vec![Spaces, Clear, Keep, Clear],
        ),
        ("endless", vec![(usize::MAX, false), (usize::MAX, false), (1, false)], vec![Spaces, Clear, Clear]),
        ("empty chunks before", vec![(0, false), (0, false), (10_240, false)], vec![Keep, Keep, Spaces]),
    ] {
        let mut body = BodyFilter::default();
        let found: Vec<_> = chunks.into_iter().map(|(size, end)| body.on_chunk(size, end)).collect();
        assert_eq!(found, expected, "{name}");
    }
}

proptest! {
    #[test]
    fn response_bodies_are_cleared_or_replaced_by_spaces(
        chunks in prop::collection::vec(0..6000usize, 0..12),
    ) {
        let mut body = BodyFilter::default();
        let mut seen = 0;
        let mut blanks = 0;
        for size in chunks {
            seen += size;
            match body.on_chunk(size, false) {
                ChunkEdit::Spaces => blanks += 1,
                ChunkEdit::Clear => prop_assert!(size > 0),
                ChunkEdit::Keep => prop_assert_eq!(size, 0),
            }
            prop_assert_eq!(blanks, i32::from(seen >= 10_240));
        }
    }
}
