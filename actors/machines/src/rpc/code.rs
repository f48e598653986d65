//! The status codes of gRPC, and how to handle each as an answer of a plugin (table C.6).

use std::fmt;

use super::cause::Class;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal => $class:ident, $hint:literal;)*) => {
        /// A gRPC status code. All seventeen are handled (C016); a number outside of them counts as `Unknown` (C022).
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        impl Code {
            /// All codes.
            pub const ALL: [Self; 17] = [$(Self::$variant,)*];

            /// Its name in the specification.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }

            /// Its number on the wire.
            #[must_use]
            pub const fn number(self) -> i32 {
                self as i32
            }

            /// How to handle it (table C.6).
            #[must_use]
            pub const fn class(self) -> Class {
                match self {
                    $(Self::$variant => Class::$class,)*
                }
            }

            /// The remedy, for people.
            #[must_use]
            pub const fn hint(self) -> &'static str {
                match self {
                    $(Self::$variant => $hint,)*
                }
            }

            /// The code of a number on the wire.
            #[must_use]
            pub fn from_number(number: i32) -> Self {
                Self::ALL.into_iter().find(|code| code.number() == number).unwrap_or(Self::Unknown)
            }
        }
    };
}

codes!(
    /// Success in place of an error: the answer contradicts itself.
    Ok = "OK" => Fault, "report it to the plugin's vendor";
    /// The call was cancelled.
    Cancelled = "CANCELLED" => Unclear, "the call may have been carried out; repeat it after a pause";
    /// The plugin does not know the result.
    Unknown = "UNKNOWN" => Unclear, "the call may have been carried out; repeat it after a pause, and look into the plugin's log";
    /// The request is malformed; never retried unchanged (C017).
    InvalidArgument = "INVALID_ARGUMENT" => Final, "the same call will fail again; the request has to change";
    /// A limit of the plugin's own expired first.
    DeadlineExceeded = "DEADLINE_EXCEEDED" => Unclear, "a time limit of the plugin's own ran out; repeat the call after a pause";
    /// The object of the call does not exist.
    NotFound = "NOT_FOUND" => Final, "check that what was named exists";
    /// An incompatible object exists already.
    AlreadyExists = "ALREADY_EXISTS" => Final, "what is there is not compatible with what was asked for";
    /// Refused until an administrator has acted (C018).
    PermissionDenied = "PERMISSION_DENIED" => Final, "an administrator has to give the plugin the right it lacks";
    /// Space or quota is used up.
    ResourceExhausted = "RESOURCE_EXHAUSTED" => Unclear, "the plugin has run out of something; make room, then repeat the call";
    /// A precondition is not met (C041).
    FailedPrecondition = "FAILED_PRECONDITION" => Final, "something else has to be done first: see what the plugin says, or its log";
    /// Another call is pending (C003).
    Aborted = "ABORTED" => Unclear, "another call is pending; repeat this one after a pause";
    /// Out of the supported range.
    OutOfRange = "OUT_OF_RANGE" => Final, "the same call will fail again; the range has to change";
    /// The plugin does not implement this call (C019).
    Unimplemented = "UNIMPLEMENTED" => Unimplemented, "the plugin does not have this call";
    /// The plugin violated an invariant of its own.
    Internal = "INTERNAL" => Unclear, "the plugin is in trouble; repeat the call after a pause, and look into its log";
    /// Temporarily out of service.
    Unavailable = "UNAVAILABLE" => Unclear, "the plugin is out of service for now; repeat the call after a pause";
    /// Data are lost or damaged.
    DataLoss = "DATA_LOSS" => Unclear, "the plugin reports lost data; look into its log before anything else";
    /// Credentials are missing or wrong (C020).
    Unauthenticated = "UNAUTHENTICATED" => Final, "put the plugin's credentials right, then repeat the call";
);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_on_the_wire_has_its_code_and_a_strange_one_is_unknown_c016_c022() {
        for (number, code) in (0..).zip(Code::ALL) {
            assert_eq!((Code::from_number(number), code.number()), (code, number));
        }
        assert_eq!(Code::from_number(99), Code::Unknown);
    }

    #[test]
    fn every_code_is_final_or_unclear_as_table_c_6_has_it() {
        let of_class = |class| Code::ALL.into_iter().filter(move |c| c.class() == class).map(Code::as_str);
        let final_codes: Vec<_> = of_class(Class::Final).collect();
        let unclear: Vec<_> = of_class(Class::Unclear).collect();
        assert_eq!(
            final_codes,
            [
                "INVALID_ARGUMENT",
                "NOT_FOUND",
                "ALREADY_EXISTS",
                "PERMISSION_DENIED",
                "FAILED_PRECONDITION",
                "OUT_OF_RANGE",
                "UNAUTHENTICATED"
            ]
        );
        assert_eq!(
            unclear,
            [
                "CANCELLED",
                "UNKNOWN",
                "DEADLINE_EXCEEDED",
                "RESOURCE_EXHAUSTED",
                "ABORTED",
                "INTERNAL",
                "UNAVAILABLE",
                "DATA_LOSS"
            ]
        );
        assert_eq!(of_class(Class::Unimplemented).collect::<Vec<_>>(), ["UNIMPLEMENTED"]);
    }
}
