//! Reads cases from files. A case with `each` is expanded to one case per entry: `{each}` is
//! replaced in all its texts, and `({each})` is appended to its name. A range is written `{from:
//! 100, to: 599}`, both inclusive.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::bytes::fill;
use super::case::Case;

#[derive(Deserialize)]
#[serde(untagged)]
enum Each {
    List(Vec<Value>),
    Range { from: u32, to: u32 },
}

/// A file of `tests/conformance/cases/`; chapters are ordered by file name.
pub struct Chapter {
    /// The file name without its number and extension.
    pub title: String,
    pub cases: Vec<Case>,
}

/// Reads every `*.yaml` of a folder.
///
/// # Errors
/// Names the file, the case, and what is wrong.
pub fn read(folder: &Path) -> Result<Vec<Chapter>, String> {
    let listing = std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<_> = listing.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    files.sort();
    let chapter = |path: &std::path::PathBuf| {
        let within = |error: String| format!("{}: {error}", path.display());
        let text = std::fs::read_to_string(path).map_err(|error| within(error.to_string()))?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let title = stem.trim_start_matches(|character: char| character.is_ascii_digit() || character == '-');
        Ok(Chapter { title: title.replace('-', " "), cases: cases(&text).map_err(within)? })
    };
    files.iter().map(chapter).collect()
}

/// Parses the cases of a file.
///
/// # Errors
/// Names the case and what is wrong.
pub fn cases(text: &str) -> Result<Vec<Case>, String> {
    let written: Vec<Value> = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
    let mut cases = Vec::new();
    for mut value in written {
        let each = value.as_object_mut().and_then(|case| case.remove("each"));
        let name = value["name"].as_str().unwrap_or("a case without a name").to_owned();
        let within = |error: serde_json::Error| format!("{name}: {error}");
        let entries = match each.map(serde_json::from_value).transpose().map_err(within)? {
            None => vec![None],
            Some(Each::List(list)) => list.into_iter().map(Some).collect(),
            Some(Each::Range { from, to }) => (from..=to).map(|number| Some(number.into())).collect(),
        };
        for entry in entries {
            let filled = entry.map_or_else(|| value.clone(), |entry| filled(&value, &entry));
            cases.push(serde_json::from_value(filled).map_err(within)?);
        }
    }
    Ok(cases)
}

fn filled(case: &Value, entry: &Value) -> Value {
    let text = entry.as_str().map_or_else(|| entry.to_string(), str::to_owned);
    let mut case = case.clone();
    if !case["name"].as_str().unwrap_or_default().contains("{each}") {
        let name = format!("{} ({})", case["name"].as_str().unwrap_or_default(), text.escape_default());
        case["name"] = name.into();
    }
    replace(&mut case, &[("each".to_owned(), text)], entry);
    case
}

/// Replaces `{each}` in all texts. A text that consists only of `{each}` becomes the entry itself,
/// so that a number remains a number.
fn replace(value: &mut Value, placeholders: &[(String, String)], entry: &Value) {
    match value {
        Value::String(text) if text == "{each}" => *value = entry.clone(),
        Value::String(text) => *text = fill(text, placeholders),
        Value::Array(list) => list.iter_mut().for_each(|value| replace(value, placeholders, entry)),
        Value::Object(fields) => fields.values_mut().for_each(|value| replace(value, placeholders, entry)),
        _ => {}
    }
}

#[cfg(test)]
mod tests;
