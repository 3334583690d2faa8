//! Runs the commands of a documentation page: each `sh` block is one script, and a `text` block
//! after it is its expected output.
//!
//! In the expected output, `…` matches anything within a line, or any number of lines if it is
//! alone on a line; the amount of whitespace between words does not matter. A block that cannot run
//! in the tests has a mark after `sh`, for example `sh elsewhere`; the tests list these blocks.

mod compare;
mod script;

use std::fs;

use kit::envoy::workspace;
use kit::terminal::say;
use tokio::time::Instant;

pub use compare::difference;
pub use script::Scripts;

/// An `sh` block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// The line of its first command in the page, from 1.
    pub line: usize,
    pub script: String,
    /// The text after `sh`.
    pub mark: String,
    /// The expected output, as the page shows it.
    pub expected_output: Option<String>,
}

/// A fenced block of any language.
struct Fence {
    line: usize,
    language: String,
    mark: String,
    text: String,
    /// Whether only empty lines separate it from the previous block.
    is_adjacent: bool,
}

/// Runs every block of a page without a mark, in order. `page` is a path in the repository.
///
/// # Panics
/// If the page cannot be run, or a block fails or prints something else than the page shows.
pub fn run_page(page: &str, scripts: &Scripts) {
    let text = fs::read_to_string(workspace().join(page)).expect("the page");
    let blocks = blocks(&text).unwrap_or_else(|error| panic!("{page}, {error}"));
    for block in blocks.iter().filter(|block| block.mark.is_empty()) {
        let begin = Instant::now();
        if let Err(error) = scripts.run(block) {
            panic!("{page}, {error}");
        }
        say(&format!("{page}, line {}: {} s\n", block.line, begin.elapsed().as_secs()));
    }
}

/// Returns the commands of a page, in order.
///
/// # Errors
/// Names the line of a block that would not be checked: one of a language other than `sh` and
/// `text`, a `text` block that does not follow a command, or one without an end.
pub fn blocks(page: &str) -> Result<Vec<Block>, String> {
    let mut blocks: Vec<Block> = Vec::new();
    for fence in fences(page)? {
        let Fence { line, language, mark, text, is_adjacent } = fence;
        match (language.as_str(), blocks.last_mut()) {
            ("sh", _) => blocks.push(Block { line, script: text, mark, expected_output: None }),
            ("text", Some(block)) if is_adjacent && block.expected_output.is_none() => {
                block.expected_output = Some(text)
            }
            ("text", _) => return Err(format!("line {line}: a text block without a command before it")),
            _ => return Err(format!("line {line}: unsupported language {language:?} of a block")),
        }
    }
    Ok(blocks)
}

fn fences(page: &str) -> Result<Vec<Fence>, String> {
    let mut fences = Vec::new();
    let mut is_adjacent = false;
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(info) = line.trim_start().strip_prefix("```") else {
            is_adjacent &= line.trim().is_empty();
            continue;
        };
        let indent = line.len() - line.trim_start().len();
        let (language, mark) = info.trim().split_once(' ').unwrap_or((info.trim(), ""));
        let mut text = String::new();
        loop {
            let (_, line) = lines.next().ok_or(format!("line {}: a block without an end", number + 1))?;
            if line.trim() == "```" {
                break;
            }
            // A block inside a list is indented as a whole.
            text.push_str(line.get(indent..).unwrap_or_default());
            text.push('\n');
        }
        let (language, mark) = (language.to_owned(), mark.trim().to_owned());
        fences.push(Fence { line: number + 2, language, mark, text, is_adjacent });
        is_adjacent = true;
    }
    Ok(fences)
}

/// Returns the texts between single backquotes, outside of blocks.
pub fn inline(page: &str) -> Vec<&str> {
    let outside = page.split("```").step_by(2);
    outside.flat_map(|text| text.split('`').skip(1).step_by(2)).collect()
}

#[cfg(test)]
mod tests;
