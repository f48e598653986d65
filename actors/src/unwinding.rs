//! Refuses to be built where a panic ends the process. That a panic in a step costs one message and no more (rule 4 of the shell)
//! rests on panics that unwind and are caught; with `panic = "abort"` one in any actor would end the whole host.

#[cfg(not(panic = "unwind"))]
compile_error!(
    "Callboard needs panic = \"unwind\": a panic in one actor costs one message, and one that aborts would end the whole host. \
     Take panic = \"abort\" out of the profile in your Cargo.toml, and -C panic=abort out of your RUSTFLAGS."
);
