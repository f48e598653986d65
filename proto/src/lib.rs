//! The wire of Callboard and nothing else.
