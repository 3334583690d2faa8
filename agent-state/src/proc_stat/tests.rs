use super::*;

#[test]
fn fields() {
    let stat = "7 (a) b (c) S 1 8 9 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456 1000 200";
    assert_eq!(
        ProcStat::parse(stat),
        Some(ProcStat { state: 'S', parent: 1, group: 8, start_time: 123_456 })
    );
    assert!(!ProcStat::parse(stat).unwrap().is_zombie());
    assert!(ProcStat::parse(&stat.replace(") S", ") Z")).unwrap().is_zombie());
    for malformed in ["", "7 (a) S 1", "7 a S 1 8 9"] {
        assert_eq!(ProcStat::parse(malformed), None, "{malformed}");
    }
}

#[test]
fn this_process_is_among_all() {
    let pid = i32::try_from(std::process::id()).unwrap();
    let own = ProcStat::of(pid).unwrap();
    let found = ProcStat::all().find(|(other, _)| *other == pid).unwrap().1;
    assert_eq!((found.group, found.start_time), (own.group, own.start_time));
    assert_eq!(ProcStat::of(i32::MAX), None);
}
