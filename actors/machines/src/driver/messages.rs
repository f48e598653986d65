//! The messages of a driver.

use super::Folded;
use crate::conversation;
use crate::vocabulary::Attempt;

/// Ends the driver's process and launches it again, now and without a pause. A process that is still being recalled is ended when it is
/// found; a launch in progress is not disturbed.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RestartNow {
    /// The number of this request. Reports contain it from now on.
    pub number: Attempt,
}

/// Asks for the latest troubles (EVT-04).
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DescribeTroubles;

conversation! {
    /// The messages of a driver.
    #[derive(Clone, Hash)]
    pub enum DriverAsk -> #[derive(Hash)] DriverAnswer {
        RestartNow => (),
        DescribeTroubles => Vec<Folded>,
    }
}
