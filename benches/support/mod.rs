//! Shared parts of the benches: arguments, baselines, and reports.
//!
//! Every bench runs its baseline in the same process and in turn with ours, round by round, so that noise affects both. The
//! result is the median over the rounds of the ratio within a round.

#![allow(dead_code, reason = "each bench is a program of its own and uses the part it needs")]

pub(crate) mod bare;
pub(crate) mod clients;
pub(crate) mod counting;
pub(crate) mod curve;
pub(crate) mod disk;
pub(crate) mod drivers;
pub(crate) mod figures;
pub(crate) mod hostpath;
pub(crate) mod memory;
pub(crate) mod rig;
pub(crate) mod sample_actor;
pub(crate) mod stage;

/// The length of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// All rounds, at full length.
    Full,
    /// One short round, which only shows that the bench works.
    Quick,
}

impl Pace {
    /// Full for `cargo bench` without `--quick`; `cargo test --benches` only checks that the bench works.
    pub(crate) fn from_arguments() -> Self {
        let arguments: Vec<String> = std::env::args().collect();
        let has = |flag| arguments.iter().any(|argument| argument == flag);
        if has("--bench") && !has("--quick") { Self::Full } else { Self::Quick }
    }

    /// Returns one of two values.
    pub(crate) fn choose<T>(self, full: T, quick: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
        }
    }
}

/// Prints title and pace, then runs the bench inside an actix system.
pub(crate) fn run<F: Future<Output = ()>>(title: &str, bench: impl FnOnce(Pace) -> F) {
    let pace = Pace::from_arguments();
    println!("\n{title}");
    if pace == Pace::Quick {
        println!("a quick run: it shows that the bench works, and its figures mean nothing");
    }
    actix_rt::System::new().block_on(bench(pace));
}
