//! Renders tables as HTML. All text is escaped.

use std::fmt::Write;
use std::time::Duration;

use super::table::{Cell, Table};

/// Escapes text for an HTML element or a quoted attribute. Control characters, which HTML forbids, and
/// characters that change the direction of the text become U+FFFD.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\t' | '\n' => escaped.push(char),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => escaped.push('\u{fffd}'),
            _ if char.is_control() => escaped.push('\u{fffd}'),
            _ => escaped.push(char),
        }
    }
    escaped
}

/// Renders a table at `now`, a time since the start of the process.
pub fn render(table: &Table, now: Duration) -> String {
    let Table { id, caption, note, columns, rows } = table;
    let mut html = format!("<section id=\"{id}\"><h2 id=\"{id}-title\">{}</h2>", escape(caption));
    let _ = write!(html, "<p class=\"note\">{}</p>", escape(note));
    let _ = write!(
        html,
        "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-labelledby=\"{id}-title\"><table>\
         <caption>{}</caption><thead><tr>",
        escape(caption)
    );
    for column in *columns {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(column));
    }
    html.push_str("</tr></thead><tbody>");
    for row in rows {
        html.push_str("<tr>");
        for (index, cell) in row.iter().enumerate() {
            let (open, close) = if index == 0 { ("<th scope=\"row\">", "</th>") } else { ("<td>", "</td>") };
            let _ = write!(html, "{open}{}{close}", render_cell(cell, now));
        }
        html.push_str("</tr>");
    }
    html.push_str("</tbody></table></div></section>");
    html
}

fn render_cell(cell: &Cell, now: Duration) -> String {
    match cell {
        Cell::Text(text) => escape(text),
        Cell::Status { tone, text } => format!("<span class=\"{}\">{}</span>", tone.word(), escape(text)),
        Cell::At { at } => age(now.saturating_sub(*at)),
        Cell::Results { results } => {
            let runs: Vec<String> =
                results.iter().map(|(reason, count, _)| format!("{} ×{count}", escape(reason))).collect();
            runs.join(", ")
        }
    }
}

/// Writes an age in its two largest units, as the page's script does.
fn age(age: Duration) -> String {
    match age.as_secs() {
        seconds @ 0..60 => format!("{seconds} s"),
        seconds @ 60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        seconds @ 3600..86_400 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        seconds => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}
