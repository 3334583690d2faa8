//! A closed enum as a table: each variant is a row with its words, texts and numbers.

/// Defines an enum without data, its array `ALL`, and a method for each column. A row without one of
/// the values does not compile.
///
/// ```
/// enum_table::table! {
///     /// A color of a traffic light.
///     pub enum Color(
///         /// Returns the word for the output.
///         word: &'static str,
///         is_stop: bool,
///     ) {
///         Green("green", false),
///         /// Drivers stop if they can.
///         Yellow("yellow", true),
///         Red("red", true),
///     }
/// }
/// assert_eq!(Color::ALL.map(Color::word), ["green", "yellow", "red"]);
/// assert!(Color::Red.is_stop());
/// ```
///
/// ```compile_fail
/// enum_table::table! {
///     enum Color(word: &'static str, is_stop: bool) { Green("green", false), Red("red") }
/// }
/// ```
#[macro_export]
macro_rules! table {
    (
        $(#[$attribute:meta])*
        $visibility:vis enum $name:ident($($(#[$about_column:meta])* $column:ident: $type:ty),+ $(,)?) {
            $($(#[$about:meta])* $variant:ident($($value:expr),+ $(,)?)),+ $(,)?
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $name {
            $($(#[$about])* $variant,)+
        }

        impl $name {
            /// All values, in the order of their definition.
            #[allow(dead_code, reason = "not every table is read as a whole")]
            $visibility const ALL: [Self; [$(stringify!($variant)),+].len()] = [$(Self::$variant),+];
        }

        const _: () = {
            struct Row {
                $($column: $type,)+
            }

            const fn new($($column: $type),+) -> Row {
                Row { $($column),+ }
            }

            const fn row(value: $name) -> Row {
                match value {
                    $($name::$variant => new($($value),+),)+
                }
            }

            impl $name {
                $(
                    $(#[$about_column])*
                    $visibility const fn $column(self) -> $type {
                        row(self).$column
                    }
                )+
            }
        };
    };
}

#[cfg(test)]
mod tests;
