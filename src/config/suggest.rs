//! Suggests the known word that was probably meant.

/// The known word nearest to the given one, if it is near enough.
pub(crate) fn nearest<'w>(given: &str, known: &[&'w str]) -> Option<&'w str> {
    let given = given.to_lowercase().replace('-', "_");
    let distance = |word: &str| edits(&given, word);
    let best = known.iter().copied().min_by_key(|word| distance(word))?;
    let allowed = (best.len() / 3).max(1);
    (distance(best) <= allowed).then_some(best)
}

/// The end of a message: the suggestion, else all known words.
pub(crate) fn advice(given: &str, known: &[&str]) -> String {
    match nearest(given, known) {
        Some(word) => format!("did you mean `{word}`?"),
        None if known.is_empty() => "there is none".to_owned(),
        None => format!("known here: {}", known.join(", ")),
    }
}

/// The edit distance: the number of letters to insert, delete or replace.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, letter) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for j in 0..to.len() {
            let exchanged = diagonal + usize::from(to[j] != letter);
            diagonal = row[j + 1];
            row[j + 1] = exchanged.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_fingers_finds_its_word() {
        let known = ["data_dir", "admin_socket", "restart"];
        assert_eq!(nearest("datadir", &known), Some("data_dir"));
        assert_eq!(nearest("Data-Dir", &known), Some("data_dir"));
        assert_eq!(nearest("restrat", &known), Some("restart"));
        assert_eq!(nearest("colour", &known), None);
    }
    #[test]
    fn each_letter_put_in_taken_out_or_exchanged_is_one_edit() {
        for (from, to, count) in
            [("", "", 0), ("", "abc", 3), ("abc", "", 3), ("abc", "axc", 1), ("kitten", "sitting", 3)]
        {
            assert_eq!((edits(from, to), edits(to, from)), (count, count), "{from} and {to}");
        }
    }
}
