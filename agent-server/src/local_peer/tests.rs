use super::*;

#[test]
fn who_is_admitted() {
    let with_group = LocalPeers { own: 1337, group: Some(50) };
    let without = LocalPeers { own: 1337, group: None };
    for (what, peers, user, group, supplementary, admitted) in [
        ("root", without, 0, 0, vec![], true),
        ("the same user", without, 1337, 1, vec![], true),
        ("another user", without, 1000, 1000, vec![50], false),
        ("another user of the group", with_group, 1000, 50, vec![], true),
        ("a supplementary group", with_group, 1000, 1000, vec![4, 50], true),
        ("other groups", with_group, 1000, 1000, vec![4, 51], false),
        ("root's group", with_group, 1000, 0, vec![0], false),
    ] {
        assert_eq!(peers.admits(UserAndGroup { user, group }, || supplementary), admitted, "{what}");
    }
}

#[test]
fn groups_of_a_process() {
    assert_eq!(parse_groups("Name:\tsh\nGid:\t1\t1\t1\t1\nGroups:\t4 50 1000 \nNStgid:\t9\n"), [4, 50, 1000]);
    assert!(parse_groups("Groups:\t\n").is_empty() && parse_groups("").is_empty());
}

#[test]
fn groups_by_name_and_number() {
    assert_eq!(find_group("root"), Some(Gid::from_raw(0)));
    assert_eq!(find_group("4242"), Some(Gid::from_raw(4242)));
    assert_eq!(find_group("no such group"), None);
}
