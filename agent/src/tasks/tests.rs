use super::*;

#[tokio::test]
async fn a_part_that_ends_is_noticed_and_named() {
    let mut ended = tokio::spawn(async {});
    let mut panicked = tokio::spawn(async { panic!("no such number") });
    for (task, words) in [(&mut ended, "the task returned"), (&mut panicked, "no such number")] {
        let ended = failure("readiness server", task).await;
        assert_eq!(ended.code(), 1);
        let text = ended.to_string();
        assert!(text.starts_with("readiness server: ") && text.contains(words), "{text}");
    }
}
