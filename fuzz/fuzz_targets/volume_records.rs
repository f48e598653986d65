//! See `docs/fuzzing.md`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| callboard_fuzz::run(callboard_actors::fuzzing::TARGETS, "volume_records", data));
