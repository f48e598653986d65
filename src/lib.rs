//! The face of Callboard.
