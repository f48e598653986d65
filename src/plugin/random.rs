//! Random names.

use std::fs::File;
use std::io::{self, Read};

/// This many random bytes as hexadecimal digits.
pub(crate) fn hex(bytes: usize) -> io::Result<String> {
    let mut random = vec![0; bytes];
    File::open("/dev/urandom")?.read_exact(&mut random)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}
