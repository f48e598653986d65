//! What the fuzzers have in common.

/// Gives an input to the target of this name.
///
/// # Panics
/// When there is no such target, and when the target finds that something does not hold.
pub fn run(targets: &[(&str, fn(&[u8]))], name: &str, data: &[u8]) {
    let (_, target) = targets.iter().find(|(known, _)| *known == name).expect("the target is in the list");
    target(data);
}
