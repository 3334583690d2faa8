//! Paths of fields: `spec.containers[0].livenessProbe`, `metadata.annotations["a.b/c"]`.

/// One step of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Index(usize),
}

/// Splits a path into its steps. The path was made by this crate and by the injector; a part that
/// has another form ends it.
pub(crate) fn steps(path: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(quoted) = rest.strip_prefix("[\"") {
            let Some((key, after)) = quoted.split_once("\"]") else { break };
            steps.push(Step::Key(key.to_owned()));
            rest = after;
        } else if let Some(indexed) = rest.strip_prefix('[') {
            let Some((index, after)) = indexed.split_once(']') else { break };
            let Ok(index) = index.parse() else { break };
            steps.push(Step::Index(index));
            rest = after;
        } else {
            let name = rest.strip_prefix('.').unwrap_or(rest);
            let end = name.find(['.', '[']).unwrap_or(name.len());
            if end == 0 {
                break;
            }
            steps.push(Step::Key(name[..end].to_owned()));
            rest = &name[end..];
        }
    }
    steps
}

#[cfg(test)]
mod tests;
