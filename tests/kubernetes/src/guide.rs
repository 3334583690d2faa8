//! A page whose commands are run: each block of `sh` is one script, and a block of `text` behind it is what that prints.
//!
//! In such a text `…` stands for anything within a line, and for any number of lines where a line has nothing else; how many blanks stand
//! between words does not count. A block that cannot run here has a mark behind `sh`, as in `sh elsewhere`; the tests list those.

mod compare;
mod script;

pub use compare::difference;
pub use script::Scripts;

/// One block of `sh`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Where its first command stands in the page, from 1.
    pub line: usize,
    /// The commands.
    pub script: String,
    /// What stands behind `sh`.
    pub mark: String,
    /// What it has to print, as the page shows it.
    pub shown: Option<String>,
}

/// A fenced block of any language.
struct Fence {
    line: usize,
    language: String,
    mark: String,
    text: String,
    /// Whether only blank lines stand between it and the block before.
    follows: bool,
}

/// The commands of a page, in order.
///
/// # Errors
/// A block that nothing would check, with its line: of another language than `sh` and `text`, a `text` that follows no command, or one that
/// has no end.
pub fn blocks(page: &str) -> Result<Vec<Block>, String> {
    let mut blocks: Vec<Block> = Vec::new();
    for fence in fences(page)? {
        let Fence { line, language, mark, text, follows } = fence;
        match (language.as_str(), blocks.last_mut()) {
            ("sh", _) => blocks.push(Block { line, script: text, mark, shown: None }),
            ("text", Some(block)) if follows && block.shown.is_none() => block.shown = Some(text),
            ("text", _) => return Err(format!("line {line}: a text that no command prints")),
            _ => return Err(format!("line {line}: a block of {language:?}, which is not run")),
        }
    }
    Ok(blocks)
}

fn fences(page: &str) -> Result<Vec<Fence>, String> {
    let mut fences = Vec::new();
    let mut follows = false;
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(info) = line.trim_start().strip_prefix("```") else {
            follows &= line.trim().is_empty();
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
        fences.push(Fence { line: number + 2, language, mark, text, follows });
        follows = true;
    }
    Ok(fences)
}

/// What stands between single backquotes, outside of blocks.
pub fn inline(page: &str) -> Vec<&str> {
    let outside = page.split("```").step_by(2);
    outside.flat_map(|text| text.split('`').skip(1).step_by(2)).collect()
}

#[cfg(test)]
mod tests;
