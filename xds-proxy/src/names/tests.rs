use super::*;

/// The number of names with each mark, and the size.
fn figures(names: &Names) -> ([usize; 4], usize) {
    let marks = [Mark::Subscribed, Mark::Held, Mark::Synced, Mark::Delivered];
    (marks.map(|mark| names.with(mark).count()), names.size())
}

#[test]
fn marks_and_size_follow_every_change() {
    let mut names = Names::default();
    for name in ["a", "bb", "a"] {
        names.add(Mark::Held, name);
    }
    assert_eq!(figures(&names), ([0, 2, 0, 0], 2 * ENTRY + 3));
    names.add(Mark::Delivered, "a");
    names.add(Mark::Subscribed, "ccc");
    assert_eq!(figures(&names), ([1, 2, 0, 1], 3 * ENTRY + 6), "a name is stored once");
    names.remove(Mark::Held, "none");
    names.remove(Mark::Synced, "a");
    names.remove(Mark::Held, "a");
    assert_eq!(figures(&names), ([1, 1, 0, 1], 3 * ENTRY + 6), "it has another mark");
    assert!(names.has(Mark::Delivered, "a") && !names.has(Mark::Held, "a"));
    names.remove(Mark::Delivered, "a");
    assert_eq!(figures(&names), ([1, 1, 0, 0], 2 * ENTRY + 5));
    names.add(Mark::Synced, "ccc");
    names.add(Mark::Synced, "d");
    names.retain(|name| name != "bb");
    assert_eq!(figures(&names), ([1, 0, 2, 0], 2 * ENTRY + 4));
    names.keep_mark(Mark::Subscribed);
    assert_eq!((figures(&names), names.len()), (([1, 0, 0, 0], ENTRY + 3), 1));
    assert_eq!(names.with(Mark::Subscribed).collect::<Vec<_>>(), ["ccc"]);
}
