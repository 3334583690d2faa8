//! The flag that decides which series get a label for their target.

use clap::ValueEnum;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TargetLabel {
    /// With several targets.
    Auto,
    Always,
    Never,
}
