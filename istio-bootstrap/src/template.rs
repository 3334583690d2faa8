//! The part of Go's template language (`text/template`) that Istio's bootstrap templates use: `if`, `range`
//! over a list with two variables, fields, variables, constants, and a few functions.
//!
//! A construct outside of it is an error with its place, and nothing is rendered.

mod action;
mod eval;
mod functions;
mod lexer;
mod parser;
mod text;

use std::fmt;

use serde_json::Value;

use action::Node;

/// A parsed template.
#[derive(Debug)]
pub struct Template {
    nodes: Vec<Node>,
}

impl Template {
    /// # Errors
    /// The first construct that is not supported or not closed.
    pub fn parse(text: &str) -> Result<Self, Error> {
        parser::parse(text).map(|nodes| Self { nodes })
    }

    /// Renders the template with the parameters, which are a JSON object. As in Go, a parameter that does
    /// not exist is false, and an absent field of a parameter is an error.
    ///
    /// # Errors
    /// The first action whose value does not exist or cannot be printed.
    pub fn render(&self, parameters: &Value) -> Result<String, Error> {
        eval::render(&self.nodes, parameters)
    }
}

/// Why a template cannot be used, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Counted from 1.
    pub line: usize,
    /// Counted in characters from 1.
    pub column: usize,
    pub reason: String,
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}, column {}: {}", self.line, self.column, self.reason)
    }
}

impl std::error::Error for Error {}

/// A place in the text of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    line: usize,
    column: usize,
}

impl Place {
    fn error(self, reason: impl Into<String>) -> Error {
        Error { line: self.line, column: self.column, reason: reason.into() }
    }
}

#[cfg(test)]
mod tests;
