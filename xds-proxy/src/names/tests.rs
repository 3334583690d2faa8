use super::*;

fn names(texts: &[&str]) -> Names {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn the_size_follows_every_change() {
    let mut set = names(&["a", "bb", "a"]);
    assert_eq!((set.len(), set.size()), (2, 2 * ENTRY + 3));
    set.remove("none");
    set.remove("a");
    assert_eq!((set.len(), set.size(), set.contains("a")), (1, ENTRY + 2, false));
    set.extend(["ccc".to_owned(), "bb".to_owned()]);
    assert_eq!(set.size(), 2 * ENTRY + 5);
    set.retain(|name| name != "bb");
    assert_eq!((set.iter().collect::<Vec<_>>(), set.size()), (vec!["ccc"], ENTRY + 3));
    set.clear();
    assert_eq!((set.is_empty(), set.size()), (true, 0));
}
