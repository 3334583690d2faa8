mod health;
mod limits;
mod recovery;
mod simulation;
mod streams;
mod support;
mod verdicts;
mod versions;
