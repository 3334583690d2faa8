//! The connections and requests that an application received, in a form that can be compared.

use std::collections::BTreeMap;
use std::fmt;

use kit::pod;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Method, target and version as sent; over HTTP/2 `:method` and `:path`.
    pub line: String,
    /// Values by name, both as sent; over HTTP/2 including the other pseudo-headers. Repeated
    /// headers keep their order.
    pub headers: BTreeMap<String, Vec<String>>,
}

/// The requests of each connection.
pub type Seen = Vec<Vec<Request>>;

/// What an application has received in the current round. Each probe of a case is a round.
#[derive(Default)]
pub struct Records {
    pub round: u64,
    pub seen: Seen,
}

impl Records {
    /// Adds a connection; returns the round and the index in it.
    pub fn add_connection(&mut self) -> (u64, usize) {
        self.seen.push(Vec::new());
        (self.round, self.seen.len() - 1)
    }

    /// Starts a round without connections.
    pub fn start_round(&mut self) {
        self.round += 1;
        self.seen.clear();
    }
}

impl Request {
    /// Parses the bytes of an HTTP/1 head. White space around a value is not part of it; only the native
    /// form of the filter sends some, for a value that is empty.
    pub fn of_head(head: &[u8]) -> Self {
        let text: String = head.iter().copied().map(char::from).collect();
        let mut lines = text.split("\r\n");
        let line = lines.next().unwrap_or_default().to_owned();
        let pair = |line| {
            let (name, value): (&str, &str) = str::split_once(line, ": ").unwrap_or((line, ""));
            (name, if pod::is_native() { value.trim() } else { value })
        };
        Self::of(line, lines.filter(|line| !line.is_empty()).map(pair))
    }

    /// Converts the fields of an HTTP/2 request.
    pub fn of_fields(fields: &[(String, String)]) -> Self {
        let pseudo =
            |name: &str| fields.iter().find(|field| field.0 == name).map_or("", |field| field.1.as_str());
        let line = format!("{} {} HTTP/2", pseudo(":method"), pseudo(":path"));
        let rest = fields.iter().filter(|field| field.0 != ":method" && field.0 != ":path");
        Self::of(line, rest.map(|(name, value)| (name.as_str(), value.as_str())))
    }

    fn of<'a>(line: String, pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut headers: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, value) in pairs {
            headers.entry(name.to_owned()).or_default().push(value.to_owned());
        }
        Self { line, headers }
    }

    /// Returns the request without the headers of these names.
    #[must_use]
    pub fn without(&self, names: &[&str]) -> Self {
        let mut request = self.clone();
        request.headers.retain(|name, _| !names.iter().any(|without| name.eq_ignore_ascii_case(without)));
        request
    }

    /// Replaces every address of the Pod's ports by the name of the port, so that two instances of
    /// one application can be compared.
    #[must_use]
    pub fn named(&self, ports: &[(String, String)]) -> Self {
        let name = |text: &String| {
            ports.iter().fold(text.clone(), |text, (name, port)| {
                text.replace(&format!(":{port}"), &format!(":{{{name}}}"))
            })
        };
        let headers =
            self.headers.iter().map(|(key, values)| (key.clone(), values.iter().map(name).collect()));
        Self { line: name(&self.line), headers: headers.collect() }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.line)?;
        for (name, values) in &self.headers {
            for value in values {
                write!(formatter, " | {name}: {value}")?;
            }
        }
        Ok(())
    }
}

/// Formats all connections for a report.
pub fn show(seen: &Seen) -> String {
    let connection = |requests: &Vec<Request>| {
        let requests: Vec<_> = requests.iter().map(ToString::to_string).collect();
        format!("[{}]", requests.join(" ; "))
    };
    seen.iter().map(connection).collect::<Vec<_>>().join(" ")
}
