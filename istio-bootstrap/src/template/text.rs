//! Divides a template into texts and actions, with Go's rules for `{{-` and `-}}`.

use super::{Error, Place};

/// The characters that a trim marker removes.
const SPACE: [char; 4] = [' ', '\t', '\r', '\n'];

/// The rest of a template, and where it begins.
pub(super) struct Source<'a> {
    rest: &'a str,
    line: usize,
    column: usize,
}

impl<'a> Source<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text, line: 1, column: 1 }
    }

    pub(super) fn rest(&self) -> &'a str {
        self.rest
    }

    pub(super) fn place(&self) -> Place {
        Place { line: self.line, column: self.column }
    }

    /// Skips `bytes`, which must end at a character, and returns them.
    pub(super) fn take(&mut self, bytes: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        for char in taken.chars() {
            if char == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
        self.rest = rest;
        taken
    }

    pub(super) fn take_if(&mut self, prefix: &str) -> bool {
        let found = self.rest.starts_with(prefix);
        if found {
            self.take(prefix.len());
        }
        found
    }

    pub(super) fn skip_space(&mut self) {
        self.take(self.rest.len() - self.rest.trim_start_matches(SPACE).len());
    }

    /// Returns the text up to the next action, whose `{{` is skipped with its trim marker. Comments are
    /// skipped too. The last text has no action behind it.
    pub(super) fn text(&mut self) -> Result<(String, bool), Error> {
        let mut out = String::new();
        loop {
            let Some(length) = self.rest.find("{{") else {
                out.push_str(self.take(self.rest.len()));
                return Ok((out, false));
            };
            let text = self.take(length);
            let start = self.place();
            self.take(2);
            if self.rest.starts_with('-') && self.rest.get(1..).is_some_and(|rest| rest.starts_with(SPACE)) {
                self.take(1);
                out.push_str(text.trim_end_matches(SPACE));
                self.skip_space();
            } else {
                out.push_str(text);
            }
            if !self.rest.starts_with("/*") {
                return Ok((out, true));
            }
            let end = self.rest.find("*/").ok_or_else(|| start.error("the comment has no end"))?;
            self.take(end + 2);
            if !self.end_of_action() {
                return Err(start.error("the comment is not followed by `}}`"));
            }
        }
    }

    /// Skips the end of an action, and the space behind it if there is a trim marker.
    pub(super) fn end_of_action(&mut self) -> bool {
        let trimmed = self.rest.trim_start_matches(SPACE);
        let is_trimmed = trimmed.len() < self.rest.len() && trimmed.starts_with("-}}");
        if !is_trimmed && !trimmed.starts_with("}}") {
            return false;
        }
        self.skip_space();
        self.take(if is_trimmed { 3 } else { 2 });
        if is_trimmed {
            self.skip_space();
        }
        true
    }
}
