use super::*;

#[test]
fn unknown_flag_variables_are_reported() {
    let environment = Environment::from([
        ("APP_HEALTH_PORT", "tcp://10.0.0.1:80"),
        ("APP_HEALTH_ADMIN", "127.0.0.1:15000"),
        ("APP_HEALTHY", "yes"),
        ("APP_HEALTH_ADMN", "x"),
    ]);
    assert_eq!(unknown_flag_variables(&environment).as_deref(), Some("APP_HEALTH_ADMN, APP_HEALTH_PORT"));
}
