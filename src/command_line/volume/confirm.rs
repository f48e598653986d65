//! Asks for confirmation before an action that cannot be undone.

use std::io::{self, BufRead, IsTerminal};

use crate::command_line::ask::AskError;
use crate::output::complain;

/// Asks the user at the terminal, if standard input is one; `why` gives the reason for the question.
///
/// # Errors
/// Unless the answer is yes.
pub(super) fn at_terminal(question: &str, why: &str) -> Result<(), AskError> {
    let stdin = io::stdin();
    let terminal = stdin.is_terminal().then(|| stdin.lock());
    confirm(question, why, terminal)
}

fn confirm(question: &str, why: &str, terminal: Option<impl BufRead>) -> Result<(), AskError> {
    let Some(mut terminal) = terminal else {
        let message = format!(
            "{why}, and standard input is no terminal; nothing was changed: add --yes to go on without a question"
        );
        return Err(AskError::Invalid(message));
    };
    complain(question);
    let mut answer = String::new();
    let unread = |error| AskError::Invalid(format!("cannot read the answer: {error}; nothing was changed"));
    terminal.read_line(&mut answer).map_err(unread)?;
    if answer.trim() == "yes" { Ok(()) } else { Err(AskError::Declined) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_force_is_confirmed_by_yes_and_by_nothing_else_v9() {
        let answered = |answer: &'static str| confirm("sure?", "it is final", Some(answer.as_bytes()));
        assert!(answered("yes\n").is_ok());
        for answer in ["", "\n", "y\n", "no\n", "yes please\n"] {
            let error = answered(answer).expect_err(answer);
            assert_eq!(error.to_string(), "nothing was changed, since the answer was not \"yes\"");
            assert_eq!(error.exit_code(), 1);
        }
        let error = confirm("sure?", "it is final", None::<&[u8]>).expect_err("no terminal");
        assert_eq!(error.exit_code(), 2);
        assert!(error.to_string().ends_with("nothing was changed: add --yes to go on without a question"));
    }
}
