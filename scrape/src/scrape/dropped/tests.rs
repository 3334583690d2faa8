use super::*;

#[test]
fn the_first_line_of_each_reason() {
    let mut dropped = Dropped::default();
    assert_eq!((dropped.total(), dropped.by_reason().count()), (0, 0));
    dropped.add(DropReason::TooLong, 7);
    dropped.add(DropReason::InvalidValue, 8);
    dropped.add(DropReason::TooLong, 9);
    let found: Vec<_> =
        dropped.by_reason().map(|(reason, lines)| (reason, lines.count, lines.first)).collect();
    assert_eq!(found, [(DropReason::TooLong, 2, 7), (DropReason::InvalidValue, 1, 8)]);
    assert_eq!(dropped.total(), 3);
    assert!(dropped.has(DropReason::TooLong) && !dropped.has(DropReason::NotUtf8));
}

#[test]
fn each_reason_has_its_own_place_and_word() {
    for (place, reason) in DropReason::ALL.into_iter().enumerate() {
        assert_eq!(reason as usize, place);
    }
    let mut words = DropReason::ALL.map(DropReason::word);
    words.sort_unstable();
    assert!(words.windows(2).all(|pair| pair[0] != pair[1]), "{words:?}");
}
