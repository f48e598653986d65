//! Numbers that define an order and distinguish stale from current.

use std::fmt;

macro_rules! number {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
        pub struct $name(u64);

        impl $name {
            /// Wraps a number that was stored or sent.
            #[must_use]
            pub const fn new(number: u64) -> Self {
                Self(number)
            }

            /// The bare number.
            #[must_use]
            pub const fn get(self) -> u64 {
                self.0
            }

            /// The next number.
            #[must_use]
            pub const fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// Grows with every new instance of a plugin and never repeats, also across restarts of the host.
    Generation
);
number!(
    /// The position of a registration in the order of all registrations. Of the registrations of a plugin that are equally fit, the newest is active (R1).
    RegistrationNumber
);
number!(
    /// The number of an attempt. A late outcome carries the attempt that it belongs to, so that it can be ignored.
    Attempt
);
number!(
    /// The number of a run of the host: it grows each time the database is opened.
    RunNumber
);
