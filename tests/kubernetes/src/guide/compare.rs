//! What a command printed, against what the page shows.

/// Anything: within a line, or as a line of its own for any number of lines.
const ANYTHING: &str = "…";

/// Where the output leaves what is shown: the line that did not come, and the whole output. `None`: it fits.
pub fn difference(shown: &str, output: &str) -> Option<String> {
    let (shown, printed) = (lines(shown), lines(output));
    let reached = reach(&shown, &printed, |line| line == ANYTHING, fits);
    let missing = match reached {
        Reach::End => return None,
        Reach::Item(index) => format!("this line did not come: {}", shown[index]),
        Reach::More => "there is more than the page shows".to_owned(),
    };
    Some(format!("{missing}\nprinted:\n{output}"))
}

/// Lines with single blanks, without the blank lines at the end.
fn lines(text: &str) -> Vec<String> {
    text.trim_end().lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn fits(shown: &str, printed: &str) -> bool {
    let chars = |text: &str| text.chars().map(String::from).collect::<Vec<_>>();
    let reached = reach(&chars(shown), &chars(printed), |char| char == ANYTHING, |a, b| a == b);
    matches!(reached, Reach::End)
}

/// How far a pattern goes.
enum Reach {
    /// It fits as a whole.
    End,
    /// This item of it is the first that cannot be found.
    Item(usize),
    /// It is over before the text is.
    More,
}

/// A pattern with gaps over a text: each gap takes as little as it can, and more when what follows it does not fit.
fn reach(
    pattern: &[String],
    text: &[String],
    is_gap: impl Fn(&str) -> bool,
    same: impl Fn(&str, &str) -> bool,
) -> Reach {
    let (mut item, mut at, mut furthest) = (0, 0, 0);
    // The last gap, and where in the text its turn ends.
    let mut gap: Option<(usize, usize)> = None;
    loop {
        furthest = furthest.max(item);
        match (pattern.get(item), text.get(at)) {
            (None, None) => return Reach::End,
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
                _ if furthest < pattern.len() => return Reach::Item(furthest),
                _ => return Reach::More,
            },
        }
    }
}
