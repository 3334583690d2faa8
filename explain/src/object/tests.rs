use super::*;

#[test]
fn names_of_objects() {
    let cases = [
        ("pod/web", Ok("pod/web")),
        ("web-7d9-x", Ok("pod/web-7d9-x")),
        ("deploy/web", Ok("deployment/web")),
        ("Deployments.apps/web", Ok("deployment/web")),
        ("sts/db", Ok("statefulset/db")),
        ("jobs/once", Ok("job/once")),
        ("service/web", Err("is not one of pod, deployment")),
        ("pod/", Err("is not a name")),
        ("pod/../web", Err("is not a name")),
        ("Web", Err("is not a name")),
    ];
    for (text, expected) in cases {
        let found = ObjectName::parse(text).map(|object| object.to_string());
        match expected {
            Ok(name) => assert_eq!(found.as_deref(), Ok(name), "{text}"),
            Err(words) => assert!(found.is_err_and(|error| error.contains(words)), "{text}"),
        }
    }
}
