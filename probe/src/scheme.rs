//! The schemes of an `httpGet` handler.

enum_table::table! {
    /// The value of `httpGet.scheme`.
    pub enum Scheme(
        /// Returns the scheme as in a URL, in lower case.
        word: &'static str,
    ) {
        /// Plaintext HTTP/1.1.
        Http("http"),
        /// TLS without certificate verification; ALPN selects HTTP/2 or HTTP/1.1.
        Https("https"),
    }
}
