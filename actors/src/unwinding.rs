//! Refuses to be built where a panic ends the process. A panic in a step costs only one message (rule 4 of the shell) because
//! panics unwind and are caught; with `panic = "abort"` a panic in any actor would end the whole host.

#[cfg(not(panic = "unwind"))]
compile_error!(
    "Callboard needs panic = \"unwind\": a panic in one actor costs one message, and one that aborts would end the whole host. \
     Take panic = \"abort\" out of the profile in your Cargo.toml, and -C panic=abort out of your RUSTFLAGS."
);
