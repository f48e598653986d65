//! What the benches share: how they are called, what they measure against, and how they say what came out.
//!
//! Every bench runs its plain baseline in the same process and in turn with ours, round by round, so that noise hits both;
//! what is judged is the median over the rounds of the ratio within a round.

#![allow(dead_code, reason = "each bench is a program of its own and uses the part it needs")]

pub(crate) mod bare;
pub(crate) mod clerk;
pub(crate) mod clients;
pub(crate) mod curve;
pub(crate) mod disk;
pub(crate) mod drivers;
pub(crate) mod figures;
pub(crate) mod hostpath;
pub(crate) mod memory;
pub(crate) mod rig;
pub(crate) mod stage;

/// How thorough a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// All rounds, at full length.
    Full,
    /// One short round, which shows only that the bench works.
    Quick,
}

impl Pace {
    /// Full if `cargo bench` called, unless `--quick` was given: `cargo test --benches` only wants to see it work.
    pub(crate) fn from_arguments() -> Self {
        let arguments: Vec<String> = std::env::args().collect();
        let has = |flag| arguments.iter().any(|argument| argument == flag);
        if has("--bench") && !has("--quick") { Self::Full } else { Self::Quick }
    }

    /// One of two, by pace.
    pub(crate) fn choose<T>(self, full: T, quick: T) -> T {
        match self {
            Self::Full => full,
            Self::Quick => quick,
        }
    }
}

/// Says what is measured and how thoroughly, then measures it inside an actix system.
pub(crate) fn run<F: Future<Output = ()>>(title: &str, bench: impl FnOnce(Pace) -> F) {
    let pace = Pace::from_arguments();
    println!("\n{title}");
    if pace == Pace::Quick {
        println!("a quick run: it shows that the bench works, and its figures mean nothing");
    }
    actix_rt::System::new().block_on(bench(pace));
}
