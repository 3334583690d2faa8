//! Generates cases, runs them in batches, minimizes those with an unknown difference, and prints
//! them in a form that can be added to `tests/conformance/cases/`.

use std::collections::BTreeMap;

use futures_util::future::try_join_all;

use super::allowed_differences;
use super::batch::{self, Outcome};
use super::case::Case;
use super::compare::describe;
use super::kind::Kind;
use super::random::{self, Tree};
use kit::terminal::say;

/// Number of cases to generate before running them.
const CHUNK: usize = 1000;
/// Maximum number of steps to minimize a case.
const STEPS: usize = 60;
/// Number of cases to minimize; further ones are only counted.
const SHRUNK: usize = 8;

/// Runs `cases` cases generated from `seed`. Returns whether each was equal or differed in a known
/// way.
///
/// # Errors
/// If the cases cannot be run.
pub async fn run(seed: u64, cases: u64) -> Result<bool, String> {
    let mut known: BTreeMap<Kind, usize> = BTreeMap::new();
    let (mut done, mut unknown) = (0, Vec::new());
    let mut trees = random::trees(seed, cases);
    loop {
        let chunk: Vec<Tree> = trees.by_ref().take(CHUNK).collect();
        if chunk.is_empty() {
            break;
        }
        let made: Vec<Case> = chunk.iter().map(|tree| tree.current()).collect();
        let outcomes = batch::run(&made, allowed_differences::kind).await?;
        for ((tree, case), outcome) in chunk.into_iter().zip(&made).zip(&outcomes) {
            let Some(difference) = &outcome.difference else { continue };
            match allowed_differences::kind(case, difference) {
                Some(kind) => *known.entry(kind).or_default() += 1,
                None => unknown.push(tree),
            }
        }
        done += made.len();
        let kinds: Vec<String> = known.iter().map(|(kind, count)| format!("{kind:?} {count}")).collect();
        say(&format!(
            "seed {seed}: {done} cases, unintended {}, known {}\n",
            unknown.len(),
            kinds.join(", ")
        ));
    }
    let seen = unknown.len();
    let shrunk = unknown.into_iter().take(SHRUNK).map(shrink);
    let reproduced: Vec<(Case, Outcome)> = try_join_all(shrunk).await?.into_iter().flatten().collect();
    let right = reproduced.is_empty() && seen <= SHRUNK;
    if right && seen > 0 {
        say(&format!("{seen} differences were not reproduced: races that also occur without the filter\n"));
    }
    for (case, outcome) in reproduced {
        let yaml = serde_saphyr::to_string(&vec![&case]).map_err(|error| error.to_string())?;
        say(&format!("\n{yaml}{}", describe(&outcome.direct, &outcome.through)));
    }
    Ok(right)
}

/// Returns the smallest case found that still differs in an unknown way; `None` if the case does not
/// differ when it runs again.
async fn shrink(mut tree: Tree) -> Result<Option<(Case, Outcome)>, String> {
    let mut smallest = None;
    for _ in 0..STEPS {
        let case = tree.current();
        let outcome = batch::run(std::slice::from_ref(&case), allowed_differences::kind).await?.remove(0);
        let differs = outcome
            .difference
            .as_ref()
            .is_some_and(|difference| allowed_differences::kind(&case, difference).is_none());
        let simpler = if differs {
            smallest = Some((case, outcome));
            tree.simplify()
        } else {
            smallest.is_some() && tree.complicate()
        };
        if !simpler {
            break;
        }
    }
    Ok(smallest)
}
