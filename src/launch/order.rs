//! Decides the start order of the parts of a host; they are stopped in reverse.

/// Why the parts of a host cannot be ordered, or cannot be started in this host. None of them was started.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PartsError {
    /// Two parts have the same name.
    #[error(
        "two parts of the host are named {name:?}, so neither could be told from the other; give one another name"
    )]
    Duplicate {
        /// The name.
        name: String,
    },
    /// The address of a part belongs to a part of another host.
    #[error(
        "part {part:?} is a part of another host in this process, which has not ended; give this host a part with an address of its \
         own, or stop the other host first"
    )]
    InUse {
        /// The name of the part.
        part: String,
    },
    /// A part is to start after a part that does not exist.
    #[error(
        "part {part:?} is to start after {after:?}, which is no part of this host; its parts are {known}"
    )]
    Unknown {
        /// The part.
        part: String,
        /// The missing part.
        after: String,
        /// The names of all parts, in words.
        known: String,
    },
    /// Parts are to start after each other, in a cycle.
    #[error("the parts {parts} wait for each other in a cycle; remove one `after`")]
    Cycle {
        /// Their names, in words.
        parts: String,
    },
}

/// The input of the order: the name of a part, and the names of the parts that it starts after.
pub(super) type Dependencies<'p> = (&'p str, &'p [String]);

/// The indexes of the parts in their start order: each after all of its dependencies, otherwise in the given order.
pub(super) fn start_order(parts: &[Dependencies<'_>]) -> Result<Vec<usize>, PartsError> {
    check_names(parts)?;
    let mut order: Vec<usize> = Vec::with_capacity(parts.len());
    while order.len() < parts.len() {
        let has_started = |name: &String| order.iter().any(|place| parts[*place].0 == name);
        let can_start = |place: &usize| !order.contains(place) && parts[*place].1.iter().all(has_started);
        match (0..parts.len()).find(can_start) {
            Some(next) => order.push(next),
            None => {
                let waiting = (0..parts.len()).filter(|place| !order.contains(place));
                let names: Vec<_> = waiting.map(|place| parts[place].0).collect();
                return Err(PartsError::Cycle { parts: names.join(", ") });
            }
        }
    }
    Ok(order)
}

fn check_names(parts: &[Dependencies<'_>]) -> Result<(), PartsError> {
    let is_known = |wanted: &str, among: &[Dependencies<'_>]| among.iter().any(|(name, _)| *name == wanted);
    for (place, (name, after)) in parts.iter().enumerate() {
        if is_known(name, &parts[..place]) {
            return Err(PartsError::Duplicate { name: (*name).to_owned() });
        }
        if let Some(unknown) = after.iter().find(|after| !is_known(after, parts)) {
            let names: Vec<_> = parts.iter().map(|(name, _)| *name).collect();
            return Err(PartsError::Unknown {
                part: (*name).to_owned(),
                after: unknown.clone(),
                known: names.join(", "),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(parts: &[(&str, &[&str])]) -> Result<Vec<String>, String> {
        let after: Vec<Vec<String>> =
            parts.iter().map(|(_, after)| after.iter().map(|name| (*name).to_owned()).collect()).collect();
        let dependencies: Vec<Dependencies<'_>> =
            parts.iter().zip(&after).map(|((name, _), after)| (*name, after.as_slice())).collect();
        let order = start_order(&dependencies).map_err(|error| error.to_string())?;
        Ok(order.into_iter().map(|place| parts[place].0.to_owned()).collect())
    }

    #[test]
    fn what_depends_on_nothing_starts_in_the_order_in_which_it_was_given_s2() {
        assert_eq!(
            order(&[("a", &[]), ("b", &[]), ("c", &[])]),
            Ok(vec!["a".into(), "b".into(), "c".into()])
        );
        assert_eq!(order(&[]), Ok(vec![]));
    }

    #[test]
    fn each_starts_behind_all_that_it_depends_on_s2() {
        let parts: &[(&str, &[&str])] = &[
            ("shelf", &["labels", "registry"]),
            ("registry", &["database"]),
            ("labels", &[]),
            ("database", &[]),
        ];
        assert_eq!(
            order(parts),
            Ok(vec!["labels".into(), "database".into(), "registry".into(), "shelf".into()])
        );
    }

    #[test]
    fn parts_that_cannot_be_put_in_order_are_refused_with_what_to_do() {
        for (parts, said) in [
            (
                &[("a", &[] as &[&str]), ("b", &[]), ("a", &[])] as &[(&str, &[&str])],
                "two parts of the host are named \"a\", so neither could be told from the other; give one another name",
            ),
            (
                &[("a", &[]), ("b", &["regitsry"])],
                "part \"b\" is to start after \"regitsry\", which is no part of this host; its parts are a, b",
            ),
            (
                &[("a", &[]), ("b", &["c", "a"]), ("c", &["b"])],
                "the parts b, c wait for each other in a cycle; remove one `after`",
            ),
            (&[("a", &["a"])], "the parts a wait for each other in a cycle; remove one `after`"),
        ] {
            assert_eq!(order(parts), Err(said.to_owned()));
        }
    }
}
