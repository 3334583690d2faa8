use super::*;

fn workload(name: &str, address: &str) -> WorkloadView {
    WorkloadView {
        namespace: "shop".to_owned(),
        name: name.to_owned(),
        group: None,
        address: address.to_owned(),
        endpoint: "served",
        why: "condition True".to_owned(),
        condition: None,
        agent: None,
        controller: None,
        health_ignored: false,
        preserved_as_last: false,
        self_preserved: false,
    }
}

fn workloads(number: usize) -> Vec<WorkloadView> {
    (0..number).map(|number| workload(&format!("m{number:05}"), "10.0.0.1")).collect()
}

/// Reads all parts; returns the names of the rows, those that are gone, and the number of parts.
fn read(rows: &Rows, cursor: &mut Cursor) -> (Vec<String>, Vec<String>, usize) {
    let (mut names, mut gone, mut parts, mut more) = (Vec::new(), Vec::new(), 0, false);
    while let Some(part) = rows.next_part(cursor) {
        let texts = |value: &Value| value.as_str().expect("a string").to_owned();
        names.extend(part["rows"].as_array().expect("rows").iter().map(|row| texts(&row["name"])));
        gone.extend(part["gone"].as_array().expect("keys").iter().map(texts));
        assert!(parts == 0 || more, "a part follows only if the previous one says so");
        more = part["more"] == true;
        parts += 1;
    }
    assert!(!more, "no part follows the last one");
    (names, gone, parts)
}

#[test]
fn ten_thousand_rows_in_parts_and_then_only_changes() {
    let mut rows = Rows::default();
    let mut all = workloads(10_000);
    assert!(rows.update(all.clone()));
    assert!(!rows.update(all.clone()), "nothing has changed");
    let mut cursor = Cursor::default();
    let (names, gone, parts) = read(&rows, &mut cursor);
    assert_eq!((names.len(), gone.len(), parts), (10_000, 0, 20));
    all[7].address = "10.0.0.2".to_owned();
    all.remove(3);
    assert!(rows.update(all));
    let (names, gone, parts) = read(&rows, &mut cursor);
    assert_eq!((names, gone, parts), (vec!["m00007".to_owned()], vec!["shop/m00003".to_owned()], 1));
    assert_eq!(rows.next_part(&mut cursor), None);
}

#[test]
fn a_slow_page_gets_the_newest_state_once() {
    let mut rows = Rows::default();
    let mut cursor = Cursor::default();
    for address in ["10.0.0.1", "10.0.0.2", "10.0.0.3"] {
        rows.update(vec![workload("m", address)]);
    }
    let part = rows.next_part(&mut cursor).expect("a part");
    assert_eq!((&part["reset"], part["rows"].as_array().map(Vec::len)), (&Value::Bool(true), Some(1)));
    assert_eq!(part["rows"][0]["address"], "10.0.0.3");
    rows.update(Vec::new());
    rows.update(vec![workload("m", "10.0.0.4")]);
    let part = rows.next_part(&mut cursor).expect("a part");
    assert_eq!((&part["reset"], &part["gone"]), (&Value::Bool(false), &json!([])));
    assert_eq!(part["rows"][0]["address"], "10.0.0.4");
}

#[test]
fn removed_rows_are_forgotten_at_a_limit() {
    let mut rows = Rows::default();
    let mut cursor = Cursor::default();
    rows.update(workloads(REMOVED + 2));
    read(&rows, &mut cursor);
    rows.update(workloads(1));
    let part = rows.next_part(&mut cursor).expect("a part");
    assert_eq!(part["reset"], true, "the page begins again");
    assert_eq!(part["rows"].as_array().map(Vec::len), Some(1));
    assert_eq!((rows.rows.len(), rows.changes.len(), rows.removed), (1, 1, 0));
}

#[test]
fn the_time_since_the_last_report_is_no_change() {
    let mut rows = Rows::default();
    let reported = |ago| {
        let agent = discovery::entries::AgentView {
            kind: "app-health",
            version: None,
            connected: true,
            peer: "10.0.0.1:9".parse().expect("an address"),
            session: 1,
            epoch: None,
            generation: None,
            last_report_ago_ms: Some(ago),
            probe_version: None,
            probe_nack: None,
        };
        vec![WorkloadView { agent: Some(agent), ..workload("m", "10.0.0.1") }]
    };
    assert!(rows.update(reported(1)));
    assert!(!rows.update(reported(2)));
}
