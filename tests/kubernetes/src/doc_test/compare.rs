//! Compares the output of a command with the output that the page shows.

/// Matches anything within a line, or any number of lines if it is alone on a line.
const WILDCARD: &str = "…";

/// Returns the first expected line that is missing, or says that there is more output than
/// expected; `None` if the output matches.
pub fn difference(expected_output: &str, output: &str) -> Option<String> {
    let (shown, printed) = (lines(expected_output), lines(output));
    let result = match_pattern(&shown, &printed, |line| line == WILDCARD, fits);
    let missing = match result {
        MatchResult::End => return None,
        MatchResult::Item(index) => format!("missing line: {}", shown[index]),
        MatchResult::More => "more output than the page shows".to_owned(),
    };
    Some(format!("{missing}\nprinted:\n{output}"))
}

/// Splits text into lines, with single spaces between words and without empty lines at the end.
fn lines(text: &str) -> Vec<String> {
    text.trim_end().lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn fits(expected_output: &str, printed: &str) -> bool {
    let chars = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
    let result =
        match_pattern(&chars(expected_output), &chars(printed), |char| char == WILDCARD, |a, b| a == b);
    matches!(result, MatchResult::End)
}

/// The result of matching a pattern.
enum MatchResult {
    /// The whole pattern matches.
    End,
    /// The index of the first item of the pattern that cannot be found.
    Item(usize),
    /// The pattern ends before the text does.
    More,
}

/// Matches a pattern with wildcards against a text. Each wildcard matches as little as possible,
/// and more if the items after it do not match.
fn match_pattern(
    pattern: &[String],
    text: &[String],
    is_gap: impl Fn(&str) -> bool,
    same: impl Fn(&str, &str) -> bool,
) -> MatchResult {
    let (mut item, mut at, mut furthest) = (0, 0, 0);
    // The last wildcard, and the position in the text up to which it matches.
    let mut gap: Option<(usize, usize)> = None;
    loop {
        furthest = furthest.max(item);
        match (pattern.get(item), text.get(at)) {
            (None, None) => return MatchResult::End,
            (Some(shown), _) if is_gap(shown) => {
                gap = Some((item, at));
                item += 1;
            }
            (Some(shown), Some(printed)) if same(shown, printed) => {
                item += 1;
                at += 1;
            }
            (_, rest) => match gap {
                Some((start, end)) if rest.is_some() => {
                    gap = Some((start, end + 1));
                    item = start + 1;
                    at = end + 1;
                }
                _ if furthest < pattern.len() => return MatchResult::Item(furthest),
                _ => return MatchResult::More,
            },
        }
    }
}
