//! Reads what tonic reports as a failed call: the plugin's own answer, or something on the way.

use std::error::Error;

use tonic::{Status, TimeoutExpired};

use super::cause::Cause;
use super::code::Code;
use super::fault::{Fault, Problem};
use crate::vocabulary::text::quoted;

/// How tonic begins to speak of an answer that is over the limit of size.
const TOO_LARGE: &str = "Error, decoded message length too large";
/// How prost begins to speak of bytes that are no answer.
const UNDECODABLE: &str = "failed to decode Protobuf message";
/// How tonic begins to speak of success without an answer.
const MISSING: &str = "Missing response message";
/// How the generated client begins to speak of a channel that has ended.
const CHANNEL_ENDED: &str = "Service was not ready";

/// Says what a failed call came to. An answer that cannot be read breaks the rule that is given.
///
/// A status that the plugin sent has no source. One that tonic made up has: the transport's error. That is how a plugin's
/// own `UNKNOWN` is told from a plugin that died, which tonic reports under the same code. The few statuses that tonic
/// makes without a source are known by their words, which the tests hold tonic to.
pub(crate) fn cause(status: &Status, rule: &'static str) -> Cause {
    if let Some(source) = status.source() {
        return broken(source);
    }
    let message = status.message();
    if [TOO_LARGE, UNDECODABLE, MISSING].iter().any(|words| message.starts_with(words)) {
        return Cause::Fault(unreadable(message, rule));
    }
    if message.starts_with(CHANNEL_ENDED) {
        return Cause::Disconnected { detail: quoted(message) };
    }
    let code = Code::from_tonic(status.code());
    Cause::Status { code, message: quoted(message) }
}

fn unreadable(message: &str, rule: &'static str) -> Fault {
    Fault { rule, field: "answer", problem: Problem::Unreadable { detail: quoted(message) } }
}

fn broken(source: &(dyn Error + 'static)) -> Cause {
    let chain = chain(source);
    if chain.iter().any(|error| error.is::<TimeoutExpired>()) {
        return Cause::DeadlineExceeded;
    }
    Cause::Disconnected { detail: quoted(&words(&chain)) }
}

type Chain<'a> = Vec<&'a (dyn Error + 'static)>;

fn chain<'a>(error: &'a (dyn Error + 'static)) -> Chain<'a> {
    std::iter::successors(Some(error), |error| (*error).source()).collect()
}

/// The words of a chain of errors, each once: many of them repeat those of their source.
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

/// The words of an error and of all its sources.
pub(super) fn told(error: &(dyn Error + 'static)) -> String {
    quoted(&words(&chain(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

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
