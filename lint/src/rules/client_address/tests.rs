use super::*;

#[test]
fn names_and_values() {
    for (name, value, expected) in [
        ("HEALTH_ALLOWED_IPS", "10.0.0.0/8", true),
        ("health.allowlist.cidrs", "10.0.0.1,10.0.0.2", true),
        ("TRUSTED_NETWORKS", "", true),
        ("WHITELIST_ADDRESS", "10.0.0.1; 127.0.0.6", false),
        ("ALLOWED_IPS", "0.0.0.0/0", false),
        ("ALLOWED_CIDR", "127.0.0.0/8 10.0.0.0/8", false),
        ("ALLOWED_CIDR", "127.0.0.61", true),
        ("ORACLE_IP", "10.0.0.1", false),
        ("ALLOWED_HOSTS", "shop.example.com", false),
        ("SHIPPING_ADDRESS", "10.0.0.1", false),
    ] {
        assert_eq!(is_list(&json!({"name": name, "value": value})), expected, "{name} = {value}");
    }
}
