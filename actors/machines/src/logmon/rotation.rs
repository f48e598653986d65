//! Decides which bytes go into which file: lines are not split between files, unless they are longer than the limit.
//!
//! ```text
//!  0                              file_bytes_max less one line           file_bytes_max
//!  ├──────────── far: no inspection ────────────┼──── near: whole lines only ────┤ next file
//! ```

/// Lines up to this length are never split between two files (T066), or up to a quarter of a file if that is less.
const LINE_BYTES_MAX: u64 = 32 * 1_024;

/// The length limit for unsplit lines in files of this size.
const fn line_bytes_max(file_bytes_max: u64) -> u64 {
    let quarter = file_bytes_max / 4;
    if quarter < LINE_BYTES_MAX { quarter } else { LINE_BYTES_MAX }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Write this many bytes, at least one.
    Write(u64),
    Turn,
}

/// How many bytes may be written without inspection; 0 near the end of the file.
pub const fn far(position: u64, file_bytes_max: u64) -> u64 {
    file_bytes_max.saturating_sub(line_bytes_max(file_bytes_max)).saturating_sub(position)
}

/// The next step near the end of a file with `position` bytes. `next` is the beginning of the buffered bytes: all of them,
/// or as many as fit into the file. It is not empty, unless the file is full.
pub fn near(position: u64, file_bytes_max: u64, is_line_finished: bool, next: &[u8]) -> Step {
    let room = file_bytes_max.saturating_sub(position);
    if room == 0 {
        return Step::Turn;
    }
    let length = next.len() as u64;
    if let Some(end) = next.iter().rposition(|byte| *byte == b'\n') {
        return Step::Write(end as u64 + 1);
    }
    if position == 0 || !is_line_finished {
        // The line began in this file. If it does not end in it either, it is over the limit for unsplit lines.
        return Step::Write(length);
    }
    Step::Turn
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn files(pieces: &[Vec<u8>], file_bytes_max: u64) -> Vec<Vec<u8>> {
        let mut files = vec![Vec::new()];
        for piece in pieces {
            let mut left = &piece[..];
            while !left.is_empty() {
                let file = files.last_mut().unwrap();
                let position = file.len() as u64;
                let free = far(position, file_bytes_max);
                let step = if free > 0 {
                    Step::Write(free.min(left.len() as u64))
                } else {
                    let room = file_bytes_max.saturating_sub(position).min(left.len() as u64);
                    let is_finished = file.last() == Some(&b'\n');
                    near(position, file_bytes_max, is_finished, &left[..usize::try_from(room).unwrap()])
                };
                match step {
                    Step::Write(count) => {
                        let (now, rest) = left.split_at(usize::try_from(count).unwrap());
                        file.extend_from_slice(now);
                        left = rest;
                    }
                    Step::Turn => files.push(Vec::new()),
                }
            }
        }
        files
    }

    fn pieces(lines: &[usize], cuts: &[usize]) -> Vec<Vec<u8>> {
        let mut all: Vec<u8> =
            lines.iter().flat_map(|length| [vec![b'x'; *length], vec![b'\n']].concat()).collect();
        let mut pieces = Vec::new();
        for cut in cuts.iter().cycle() {
            if all.is_empty() {
                break;
            }
            let rest = all.split_off((*cut).min(all.len()));
            pieces.push(all);
            all = rest;
        }
        pieces
    }

    proptest! {
        #[test]
        fn lines_that_fit_are_never_split_whatever_pieces_they_come_in_th024(
            lines in vec(0_usize..3_000, 1..200),
            cuts in vec(1_usize..5_000, 1..20),
            file_bytes_max in 12_004_u64..100_000,
        ) {
            let pieces = pieces(&lines, &cuts);
            let files = files(&pieces, file_bytes_max);
            prop_assert_eq!(files.concat(), pieces.concat(), "nothing is lost or doubled");
            for (number, file) in files.iter().enumerate() {
                prop_assert!(file.len() as u64 <= file_bytes_max);
                if number + 1 < files.len() {
                    prop_assert_eq!(file.last(), Some(&b'\n'), "file {} ends with a line", number);
                }
            }
        }

        #[test]
        fn lines_that_are_longer_than_any_file_are_split_and_nothing_is_lost_th024(
            lines in vec(0_usize..90_000, 1..8),
            cuts in vec(1_usize..70_000, 1..20),
            file_bytes_max in 1_024_u64..50_000,
        ) {
            let pieces = pieces(&lines, &cuts);
            let files = files(&pieces, file_bytes_max);
            prop_assert_eq!(files.concat(), pieces.concat());
            prop_assert!(files.iter().all(|file| file.len() as u64 <= file_bytes_max));
        }
    }

    #[test]
    fn a_line_of_32_kib_that_begins_late_goes_whole_into_the_next_file_t066() {
        let lines = [1_000_000, 32 * 1_024 - 1, 10];
        let files = files(&pieces(&lines, &[65_536]), 1_020_000);
        assert_eq!(files.iter().map(Vec::len).collect::<Vec<_>>(), [1_000_001, 32 * 1_024 + 11]);
    }
}
