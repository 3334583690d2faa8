use serde_json::json;

use super::*;

#[test]
fn quantities_are_read_as_in_kubernetes() {
    for (text, shown) in [
        ("0", "0"),
        ("1", "1"),
        ("100m", "100m"),
        ("0.1", "100m"),
        (".5", "500m"),
        ("5.", "5"),
        ("+2", "2"),
        ("-1", "-1"),
        ("1e3", "1k"),
        ("1E3", "1k"),
        ("1E", "1E"),
        ("1e-3", "1m"),
        ("128Mi", "128Mi"),
        ("1024Mi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("0.5Ki", "512"),
        ("1000M", "1G"),
        ("10n", "10n"),
        ("0.1n", "1n"),
    ] {
        let quantity = Quantity::parse(text).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(quantity.to_string(), shown, "{text}");
    }
    for text in ["", ".", "m", "1 ", "1mi", "1KI", "0x1", "1e", "--1", "1.2.3", "1e99", "Mi"] {
        assert!(Quantity::parse(text).is_none(), "{text}");
    }
    for (value, shown) in [(json!(2), "2"), (json!(0.5), "500m"), (json!(134_217_728), "134217728")] {
        assert_eq!(Quantity::read(&value).expect("a quantity").to_string(), shown);
    }
    assert!(Quantity::read(&json!(true)).is_none());
}

#[test]
fn sums_keep_the_binary_suffix() {
    let sum = |a, b| Quantity::parse(a).expect(a).plus(Quantity::parse(b).expect(b)).to_string();
    assert_eq!(sum("100Mi", "96Mi"), "196Mi");
    assert_eq!(sum("1Gi", "96Mi"), "1120Mi");
    assert_eq!(sum("0.5", "10m"), "510m");
    assert_eq!(sum("100M", "1Ki"), "100001024");
}

#[test]
fn quantities_are_compared_by_amount() {
    let of = |text| Quantity::parse(text).expect(text);
    assert!(of("1Gi").exceeds(of("1G")) && !of("1G").exceeds(of("1000M")));
    assert!(of("1000m").equals(of("1")) && of("1024Ki").equals(of("1Mi")));
    assert!(of("2").max(of("1500m")).equals(of("2")) && of("1m").max(of("2m")).equals(of("2m")));
}
