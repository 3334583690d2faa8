//! What a template consists of.

use serde_json::Value;

use super::Place;
use super::functions::Function;

#[derive(Debug)]
pub(super) enum Node {
    Text(String),
    Print(Expression),
    If { branches: Vec<(Expression, Vec<Node>)>, otherwise: Vec<Node> },
    Range { variables: Vec<String>, list: Expression, body: Vec<Node>, otherwise: Vec<Node> },
}

#[derive(Debug)]
pub(super) struct Expression {
    pub(super) place: Place,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// Fields of the current value: `.config.StatusPort`; without fields the value itself.
    Field(Vec<String>),
    /// Fields of a variable. The variable with the empty name has all parameters.
    Variable(String, Vec<String>),
    Constant(Value),
    /// The first operand that is true, or the last one.
    Or(Vec<Expression>),
    /// The first operand that is false, or the last one.
    And(Vec<Expression>),
    Equal(Box<[Expression; 2]>),
    NotEqual(Box<[Expression; 2]>),
    Call(Function, Box<Expression>),
}
