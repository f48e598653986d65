//! What can be said to a driver.

use super::Folded;
use crate::conversation;
use crate::vocabulary::Attempt;

/// Ends the driver's process and brings it anew, now and without a pause. One that is still looked for is ended when it is found; a
/// launch that is under way is not disturbed.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RestartNow {
    /// The number of this request; its reports name it from here on.
    pub number: Attempt,
}

/// Asks what went wrong lately (EVT-04).
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DescribeTroubles;

conversation! {
    /// What is said to a driver.
    #[derive(Clone, Hash)]
    pub enum DriverAsk -> #[derive(Hash)] DriverAnswer {
        RestartNow => (),
        DescribeTroubles => Vec<Folded>,
    }
}
