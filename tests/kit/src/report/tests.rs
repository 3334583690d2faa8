use serde_json::json as value;

use super::{Row, json, median, median_ratio, quantile, table};

#[test]
fn a_bar_holds_up_to_itself() {
    let row = |value| Row::new("p50", value, "ratio").at_most(1.03);
    assert_eq!(row(1.03).holds(), Some(true));
    assert_eq!(row(1.031).holds(), Some(false));
    assert_eq!(Row::new("p50", 5.0, "us").holds(), None);
}

#[test]
fn rows_as_json_have_every_key() {
    let rows = [Row::new("a", 1.5, "us"), Row::new("b", 2.0, "ratio").at_most(1.0)];
    assert_eq!(
        json(&rows),
        value!([
            {"name": "a", "value": 1.5, "unit": "us", "bar": null, "holds": null},
            {"name": "b", "value": 2.0, "unit": "ratio", "bar": 1.0, "holds": false},
        ])
    );
    assert!(table(&rows).to_string().contains("NO"), "{}", table(&rows));
}

#[test]
fn quantiles_are_measured_values() {
    let values = [5.0, 1.0, 4.0, 2.0, 3.0];
    assert_eq!(median(&values), 3.0);
    assert_eq!(quantile(&values, 0.0), 1.0);
    assert_eq!(quantile(&values, 0.99), 5.0);
    assert_eq!(median(&[7.0]), 7.0);
    assert_eq!(median_ratio(&[2.0, 30.0, 8.0], &[1.0, 10.0, 2.0]), 3.0);
}
