//! Classifies tonic's status of a failed call: an answer of the plugin, or an error on the way.

use std::error::Error;

use tonic::Status;

use super::{Cause, Code, Fault, Problem};
use crate::vocabulary::text::quoted;

/// The prefix of tonic's message for an answer over the size limit.
const TOO_LARGE: &str = "Error, decoded message length too large";
/// The prefix of prost's message for undecodable bytes.
const UNDECODABLE: &str = "failed to decode Protobuf message";
/// The prefix of tonic's message for success without an answer.
const MISSING: &str = "Missing response message";

/// The cause of a failed call. An answer that cannot be decoded breaks the given rule.
///
/// A status that the plugin sent has no source. One that tonic made has the transport's error as source. This distinguishes
/// a plugin's own `UNKNOWN` from a dead plugin, which tonic reports under the same code. The few statuses that tonic makes
/// without a source are recognised by their messages, which tests verify against tonic.
pub(crate) fn cause(status: &Status, rule: &'static str) -> Cause {
    if let Some(source) = status.source() {
        return Cause::Disconnected { detail: told(source) };
    }
    let message = status.message();
    if [TOO_LARGE, UNDECODABLE, MISSING].iter().any(|words| message.starts_with(words)) {
        return Cause::Fault(unreadable(message, rule));
    }
    let code = Code::from_number(status.code().into());
    Cause::Status { code, message: quoted(message) }
}

fn unreadable(message: &str, rule: &'static str) -> Fault {
    Fault { rule, field: "answer", problem: Problem::Unreadable { detail: quoted(message) } }
}

type Chain<'a> = Vec<&'a (dyn Error + 'static)>;

fn chain<'a>(error: &'a (dyn Error + 'static)) -> Chain<'a> {
    std::iter::successors(Some(error), |error| (*error).source()).collect()
}

/// The messages of a chain of errors, each once: many of them repeat those of their source.
fn words(chain: &Chain<'_>) -> String {
    let mut words: Vec<String> = Vec::new();
    for error in chain {
        let word = error.to_string();
        if !words.iter().any(|said| said.contains(&word)) {
            words.push(word);
        }
    }
    words.join(": ")
}

pub(super) fn told(error: &(dyn Error + 'static)) -> String {
    quoted(&words(&chain(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_of_tonic_is_read_as_ours_of_the_same_name_c016() {
        for code in Code::ALL {
            let of_tonic = tonic::Code::from(code.number());
            let name: String = format!("{of_tonic:?}").to_uppercase();
            assert_eq!(name, code.as_str().replace('_', ""));
            let status = Status::new(of_tonic, "told");
            assert_eq!(cause(&status, "C011"), Cause::Status { code, message: "told".to_owned() });
        }
    }

    #[test]
    fn what_a_plugin_says_is_cut_and_escaped_c021() {
        let status = Status::internal(format!("no room\n{}", "x".repeat(1 << 20)));
        let Cause::Status { code: Code::Internal, message } = cause(&status, "C011") else {
            panic!("the plugin's own answer");
        };
        assert!(message.starts_with("no room\\nxxx") && message.ends_with("(1048584 bytes in all)"));
        assert!(message.len() < 600);
    }
}
