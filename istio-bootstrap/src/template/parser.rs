//! Parses a template.

use super::action::{Expression, Kind, Node};
use super::functions::Function;
use super::lexer::{self, Token};
use super::text::Source;
use super::{Error, Place};

/// How deep blocks and parentheses may be nested.
const DEPTH: usize = 64;

pub(super) fn parse(text: &str) -> Result<Vec<Node>, Error> {
    let mut parser = Parser { source: Source::new(text), depth: 0 };
    let (nodes, end) = parser.block()?;
    match end {
        None => Ok(nodes),
        Some((Close::End | Close::Else, place)) => Err(place.error("it belongs to no `if` or `range`")),
    }
}

/// The action that ends a block.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Close {
    End,
    Else,
}

/// What a block contains, and the action that ended it; nothing ends the last one.
type Block = (Vec<Node>, Option<(Close, Place)>);

struct Parser<'a> {
    source: Source<'a>,
    depth: usize,
}

impl Parser<'_> {
    /// Parses up to the `end` or `else` of a block, whose word is skipped, or to the end of the template.
    fn block(&mut self) -> Result<Block, Error> {
        let mut nodes = Vec::new();
        loop {
            let (text, is_followed) = self.source.text()?;
            if !text.is_empty() {
                nodes.push(Node::Text(text));
            }
            if !is_followed {
                return Ok((nodes, None));
            }
            let (token, place) = lexer::next(&mut self.source)?;
            match token {
                Token::Word(word) if word == "end" => return Ok((nodes, Some((Close::End, place)))),
                Token::Word(word) if word == "else" => return Ok((nodes, Some((Close::Else, place)))),
                Token::Word(word) if word == "if" => nodes.push(self.nested(place, |own| own.choice(place))?),
                Token::Word(word) if word == "range" => {
                    nodes.push(self.nested(place, |own| own.range(place))?);
                }
                first => {
                    let expression = self.pipeline(first, place)?;
                    nodes.push(Node::Print(expression));
                }
            }
        }
    }

    fn nested<T>(
        &mut self,
        place: Place,
        parse: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        if self.depth == DEPTH {
            return Err(place.error(format!("more than {DEPTH} levels are not supported")));
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// Parses an `if` behind that word.
    fn choice(&mut self, start: Place) -> Result<Node, Error> {
        let mut branches = Vec::new();
        loop {
            let condition = self.expression()?;
            let (body, close) = self.block()?;
            branches.push((condition, body));
            match close {
                None => return Err(start.error("the `if` has no `end`")),
                Some((Close::End, _)) => {
                    self.end()?;
                    return Ok(Node::If { branches, otherwise: Vec::new() });
                }
                Some((Close::Else, _)) => {}
            }
            match lexer::next(&mut self.source)? {
                (Token::Word(word), _) if word == "if" => {}
                (Token::End, _) => {
                    let otherwise = self.last_block(start)?;
                    return Ok(Node::If { branches, otherwise });
                }
                (_, place) => return Err(place.error("only `if` may follow `else`")),
            }
        }
    }

    /// Parses a `range` behind that word.
    fn range(&mut self, start: Place) -> Result<Node, Error> {
        let (token, place) = lexer::next(&mut self.source)?;
        let (variables, token, place) = match token {
            Token::Variable(name, fields) if fields.is_empty() && !name.is_empty() => self.variables(name)?,
            token => (Vec::new(), token, place),
        };
        let list = self.pipeline(token, place)?;
        let (body, close) = self.block()?;
        let otherwise = match close {
            None => return Err(start.error("the `range` has no `end`")),
            Some((Close::End, _)) => {
                self.end()?;
                Vec::new()
            }
            Some((Close::Else, _)) => {
                self.end()?;
                self.last_block(start)?
            }
        };
        Ok(Node::Range { variables, list, body, otherwise })
    }

    /// Parses the variables of a `range` behind the first one, and returns the token behind `:=`.
    fn variables(&mut self, first: String) -> Result<(Vec<String>, Token, Place), Error> {
        let mut variables = vec![first];
        let (mut token, mut place) = lexer::next(&mut self.source)?;
        if token == Token::Comma {
            match lexer::next(&mut self.source)? {
                (Token::Variable(second, fields), _) if fields.is_empty() && !second.is_empty() => {
                    variables.push(second);
                }
                (_, place) => return Err(place.error("a variable is expected")),
            }
            (token, place) = lexer::next(&mut self.source)?;
        }
        if token != Token::Define {
            return Err(place.error("`:=` is expected"));
        }
        let (token, place) = lexer::next(&mut self.source)?;
        Ok((variables, token, place))
    }

    /// Parses what follows an `else`, up to the `end`.
    fn last_block(&mut self, start: Place) -> Result<Vec<Node>, Error> {
        match self.block()? {
            (nodes, Some((Close::End, _))) => {
                self.end()?;
                Ok(nodes)
            }
            (_, Some((Close::Else, place))) => Err(place.error("a second `else`")),
            (_, None) => Err(start.error("there is no `end`")),
        }
    }

    /// Parses the end of an action that has nothing more.
    fn end(&mut self) -> Result<(), Error> {
        match lexer::next(&mut self.source)? {
            (Token::End, _) => Ok(()),
            (_, place) => Err(place.error("`}}` is expected")),
        }
    }

    fn expression(&mut self) -> Result<Expression, Error> {
        let (token, place) = lexer::next(&mut self.source)?;
        self.pipeline(token, place)
    }

    /// Parses the rest of an action that begins with `first`, including its `}}`.
    fn pipeline(&mut self, first: Token, place: Place) -> Result<Expression, Error> {
        match self.commands(first, place)? {
            (expression, Token::End, _) => Ok(expression),
            (_, _, place) => Err(place.error("`}}` is expected")),
        }
    }

    /// Parses commands with `|` between them, and returns the token behind them.
    fn commands(&mut self, first: Token, place: Place) -> Result<(Expression, Token, Place), Error> {
        let (mut expression, mut next, mut at) = self.command(first, place, None)?;
        while next == Token::Pipe {
            let (token, place) = lexer::next(&mut self.source)?;
            (expression, next, at) = self.command(token, place, Some(expression))?;
        }
        Ok((expression, next, at))
    }

    /// Parses an operand, or a function with its arguments, of which `piped` is the last one.
    fn command(
        &mut self,
        first: Token,
        place: Place,
        piped: Option<Expression>,
    ) -> Result<(Expression, Token, Place), Error> {
        let Token::Word(name) = first else {
            if piped.is_some() {
                return Err(place.error("a function is expected"));
            }
            let operand = self.operand(first, place)?;
            let (next, at) = lexer::next(&mut self.source)?;
            return Ok((operand, next, at));
        };
        let mut arguments = Vec::new();
        loop {
            let (token, at) = lexer::next(&mut self.source)?;
            if matches!(token, Token::End | Token::Close | Token::Pipe) {
                arguments.extend(piped);
                return Ok((call(&name, arguments, place)?, token, at));
            }
            arguments.push(self.operand(token, at)?);
        }
    }

    fn operand(&mut self, token: Token, place: Place) -> Result<Expression, Error> {
        let kind = match token {
            Token::Field(fields) => Kind::Field(fields),
            Token::Variable(name, fields) => Kind::Variable(name, fields),
            Token::Constant(value) => Kind::Constant(value),
            Token::Open => {
                return self.nested(place, |own| {
                    let (token, place) = lexer::next(&mut own.source)?;
                    match own.commands(token, place)? {
                        (expression, Token::Close, _) => Ok(expression),
                        (_, _, place) => Err(place.error("`)` is expected")),
                    }
                });
            }
            Token::Word(name) => return Err(place.error(format!("`{name}` is not supported here"))),
            Token::Close | Token::Pipe | Token::Comma | Token::Define | Token::End => {
                return Err(place.error("a value is expected"));
            }
        };
        Ok(Expression { place, kind })
    }
}

/// Returns the call of a function with its arguments.
fn call(name: &str, arguments: Vec<Expression>, place: Place) -> Result<Expression, Error> {
    let count = arguments.len();
    let arity = || place.error(format!("`{name}` does not take {count} arguments"));
    let one = |function, arguments: Vec<Expression>| match <[Expression; 1]>::try_from(arguments) {
        Ok([argument]) => Ok(Kind::Call(function, Box::new(argument))),
        Err(_) => Err(arity()),
    };
    let two = |arguments: Vec<Expression>| {
        <[Expression; 2]>::try_from(arguments).map(Box::new).map_err(|_| arity())
    };
    let kind = match name {
        "and" | "or" if count == 0 => return Err(arity()),
        "and" => Kind::And(arguments),
        "or" => Kind::Or(arguments),
        "not" => one(Function::Not, arguments)?,
        "eq" => Kind::Equal(two(arguments)?),
        "ne" => Kind::NotEqual(two(arguments)?),
        // Istio's own function, and that of the library Sprig.
        "toJSON" | "toJson" => one(Function::Json, arguments)?,
        "js" => one(Function::JavaScript, arguments)?,
        _ => return Err(place.error(format!("`{name}` is not supported"))),
    };
    Ok(Expression { place, kind })
}
