use super::*;

fn cost(growth: u64, log: u64, seconds: u64) -> Cost {
    let process =
        ProcessCost { name: "Envoy", before: 50 << 20, most: (50 << 20) + growth, ..ProcessCost::default() };
    let length = Duration::from_secs(seconds);
    Cost {
        processes: vec![process.clone(), ProcessCost { cpu: length, ..process }],
        log,
        most: 100 << 20,
        limit: 128 << 20,
        sources: 1,
        length,
    }
}

#[test]
fn bars_of_an_attack() {
    assert_eq!(cost(16 << 20, 64 << 10, 3).broken(), Vec::<String>::new());
    assert_eq!(cost(17 << 20, 0, 3).broken().len(), 2);
    assert_eq!(cost(0, 65 << 10, 3).broken(), ["65 KiB of log in a minute, at most 64"]);
    // In two minutes, twice as much.
    assert!(cost(0, 65 << 10, 120).broken().is_empty());
    // By two sources, twice as much.
    assert!(Cost { sources: 2, ..cost(32 << 20, 128 << 10, 3) }.broken().is_empty());
    let above = Cost { most: 129 << 20, ..cost(0, 0, 3) };
    assert_eq!(above.broken(), ["129 MiB, the limit is 128"]);
    let mut exited = cost(0, 0, 3);
    exited.processes[0].has_exited = true;
    assert_eq!(exited.broken(), ["Envoy has exited"]);
    assert!((exited.cpu_percent() - 100.0).abs() < 0.1);
}

#[tokio::test]
async fn memory_of_an_earlier_attack_counts_as_growth() {
    let attacked = Attacked::new(vec![("test", std::process::id())], PathBuf::new(), 0);
    let before = Meter::start(&attacked).cost().processes[0].before;
    // Large allocations are not reused.
    let memory = vec![1_u8; 64 << 20];
    let cost = Meter::start(&attacked).cost();
    assert_eq!(cost.processes[0].before, before);
    assert!(cost.growth() >= 60 << 20, "{cost:?}, {}", memory[1]);
    assert!(cost.broken().iter().any(|bar| bar.starts_with("test grew by")), "{:?}", cost.broken());
}

#[tokio::test]
async fn a_process_that_has_exited_is_reported() {
    let attacked = Attacked::new(vec![("none", 0x3fff_ffff)], PathBuf::new(), 0);
    assert_eq!(Meter::start(&attacked).cost().broken(), ["none has exited"]);
}
