crate::table! {
    /// A color of a traffic light.
    #[derive(Default, PartialOrd, Ord)]
    enum Color(
        /// Returns the word for the output.
        word: &'static str,
        next: Option<Color>,
        seconds: u16,
    ) {
        Green("green", Some(Color::Yellow), 30),
        /// Drivers stop if they can.
        Yellow("yellow", Some(Color::Red), 3),
        #[default]
        Red("red", None, 20),
    }
}

#[test]
fn a_table_has_all_rows_in_their_order() {
    assert_eq!(Color::ALL, [Color::Green, Color::Yellow, Color::Red]);
    assert!(Color::ALL.is_sorted());
    assert_eq!(Color::default(), Color::Red);
}

#[test]
fn each_column_is_a_method() {
    assert_eq!(Color::ALL.map(Color::word), ["green", "yellow", "red"]);
    assert_eq!(Color::Green.next(), Some(Color::Yellow));
    assert_eq!(Color::ALL.map(Color::seconds).iter().sum::<u16>(), 53);
}
