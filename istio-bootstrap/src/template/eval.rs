//! Renders a template.

use std::borrow::Cow;

use serde_json::Value;

use super::action::{Expression, Kind, Node};
use super::functions::{self, Function};
use super::{Error, Place};

/// How many nodes are rendered at most. Istio's template has a few hundred, and nested ranges multiply.
const NODES: usize = 100_000;

pub(super) fn render(nodes: &[Node], parameters: &Value) -> Result<String, Error> {
    let mut rendering = Rendering { out: String::new(), left: NODES };
    let scope = Scope { dot: parameters, parameters, outer: None, variable: None };
    rendering.nodes(nodes, &scope)?;
    Ok(rendering.out)
}

/// What names mean at a place of the template.
#[derive(Clone, Copy)]
struct Scope<'a> {
    dot: &'a Value,
    parameters: &'a Value,
    variable: Option<(&'a str, &'a Value)>,
    outer: Option<&'a Scope<'a>>,
}

impl<'a> Scope<'a> {
    fn variable(&self, name: &str) -> Option<&'a Value> {
        match self.variable {
            Some((own, value)) if own == name => Some(value),
            _ => self.outer.and_then(|outer| outer.variable(name)),
        }
    }
}

struct Rendering {
    out: String,
    left: usize,
}

impl Rendering {
    fn nodes(&mut self, nodes: &[Node], scope: &Scope<'_>) -> Result<(), Error> {
        for node in nodes {
            match node {
                Node::Text(text) => self.out.push_str(text),
                Node::Print(expression) => {
                    self.count(expression.place)?;
                    let value = evaluate(expression, scope)?;
                    let text = printed(&value, expression.place)?;
                    self.out.push_str(&text);
                }
                Node::If { branches, otherwise } => self.choice(branches, otherwise, scope)?,
                Node::Range { variables, list, body, otherwise } => {
                    self.range(variables, list, body, otherwise, scope)?;
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, place: Place) -> Result<(), Error> {
        self.left = self
            .left
            .checked_sub(1)
            .ok_or_else(|| place.error(format!("more than {NODES} actions are not supported")))?;
        Ok(())
    }

    fn choice(
        &mut self,
        branches: &[(Expression, Vec<Node>)],
        otherwise: &[Node],
        scope: &Scope<'_>,
    ) -> Result<(), Error> {
        for (condition, body) in branches {
            self.count(condition.place)?;
            if functions::is_true(&*evaluate(condition, scope)?) {
                return self.nodes(body, scope);
            }
        }
        self.nodes(otherwise, scope)
    }

    fn range(
        &mut self,
        variables: &[String],
        list: &Expression,
        body: &[Node],
        otherwise: &[Node],
        scope: &Scope<'_>,
    ) -> Result<(), Error> {
        let value = evaluate(list, scope)?;
        let items: &[Value] = match &*value {
            Value::Array(items) => items,
            Value::Null => &[],
            _ => return Err(list.place.error("only a list is supported in `range`")),
        };
        if items.is_empty() {
            return self.nodes(otherwise, scope);
        }
        for (index, item) in items.iter().enumerate() {
            self.count(list.place)?;
            let index = Value::from(index);
            let inner = |variable, outer| Scope { dot: item, parameters: scope.parameters, variable, outer };
            match variables {
                [] => self.nodes(body, &inner(None, Some(scope)))?,
                [element] => self.nodes(body, &inner(Some((element, item)), Some(scope)))?,
                [position, element, ..] => {
                    let first = inner(Some((position, &index)), Some(scope));
                    self.nodes(body, &inner(Some((element, item)), Some(&first)))?;
                }
            }
        }
        Ok(())
    }
}

fn evaluate<'a>(expression: &'a Expression, scope: &Scope<'a>) -> Result<Cow<'a, Value>, Error> {
    let place = expression.place;
    match &expression.kind {
        Kind::Field(names) => {
            // Parameters are a map in Go, and what they contain are structures.
            let is_map = std::ptr::eq(scope.dot, scope.parameters);
            field(scope.dot, is_map, names, place).map(Cow::Borrowed)
        }
        Kind::Variable(name, names) if name.is_empty() => {
            field(scope.parameters, true, names, place).map(Cow::Borrowed)
        }
        Kind::Variable(name, names) => {
            let value = scope
                .variable(name)
                .ok_or_else(|| place.error(format!("the variable `${name}` is not defined")))?;
            field(value, false, names, place).map(Cow::Borrowed)
        }
        Kind::Constant(value) => Ok(Cow::Borrowed(value)),
        Kind::Or(operands) => choose(operands, true, scope),
        Kind::And(operands) => choose(operands, false, scope),
        Kind::Equal(operands) => are_equal(operands, scope, place).map(|equal| Cow::Owned(equal.into())),
        Kind::NotEqual(operands) => {
            are_equal(operands, scope, place).map(|equal| Cow::Owned((!equal).into()))
        }
        Kind::Call(function, argument) => {
            let value = evaluate(argument, scope)?;
            call(*function, &value, place).map(Cow::Owned)
        }
    }
}

fn field<'a>(value: &'a Value, is_map: bool, names: &[String], place: Place) -> Result<&'a Value, Error> {
    let mut value = value;
    for (depth, name) in names.iter().enumerate() {
        value = match value.get(name) {
            Some(value) => value,
            None if is_map && depth == 0 => &Value::Null,
            None => return Err(place.error(format!("the field `{name}` does not exist"))),
        };
    }
    Ok(value)
}

/// Returns the first operand that is `wanted`, or the last one. Those behind it are not evaluated.
fn choose<'a>(operands: &'a [Expression], wanted: bool, scope: &Scope<'a>) -> Result<Cow<'a, Value>, Error> {
    let mut chosen = Cow::Owned(Value::Null);
    for operand in operands {
        chosen = evaluate(operand, scope)?;
        if functions::is_true(&chosen) == wanted {
            break;
        }
    }
    Ok(chosen)
}

fn are_equal(operands: &[Expression; 2], scope: &Scope<'_>, place: Place) -> Result<bool, Error> {
    let [first, second] = operands;
    match (&*evaluate(first, scope)?, &*evaluate(second, scope)?) {
        (Value::Bool(first), Value::Bool(second)) => Ok(first == second),
        (Value::Number(first), Value::Number(second)) => Ok(first == second),
        (Value::String(first), Value::String(second)) => Ok(first == second),
        _ => Err(place.error("the values have different types")),
    }
}

fn call(function: Function, value: &Value, place: Place) -> Result<Value, Error> {
    Ok(match function {
        Function::Not => (!functions::is_true(value)).into(),
        Function::Json => value.to_string().into(),
        Function::JavaScript => functions::javascript(&printed(value, place)?).into(),
    })
}

fn printed(value: &Value, place: Place) -> Result<String, Error> {
    functions::printed(value).ok_or_else(|| place.error("the value is not a text, number or boolean"))
}
