//! Volumes of a host, against the same CSI calls made by a bare client to the same plugin process: the time of a claim, many claims at
//! once, claims beside a plugin that hangs, and the start of a host that holds many claims.
//!
//! The reference plugin really mounts, so the bench runs in a mount namespace of its own. If the system refuses that, nothing is
//! measured, and a message is printed. `--only claim` measures one part (or `crowd`, `hanging`, `restart`).

mod bare;
mod claim;
mod crowd;
mod hanging;
mod namespace;
mod restart;
mod site;
#[path = "../support/mod.rs"]
mod support;

use support::Pace;

fn main() {
    if namespace::is_own() {
        support::run("volumes: claims of a host, against the same calls of a bare client", measure);
    } else {
        namespace::run_in_own();
    }
}

async fn measure(pace: Pace) {
    if is_wanted("claim") {
        claim::measure(pace).await;
    }
    if is_wanted("crowd") {
        crowd::measure(pace).await;
    }
    if is_wanted("hanging") {
        hanging::measure(pace).await;
    }
    if is_wanted("restart") {
        restart::measure(pace).await;
    }
}

fn is_wanted(part: &str) -> bool {
    let mut arguments = std::env::args().skip_while(|argument| argument != "--only").skip(1);
    arguments.next().is_none_or(|wanted| wanted == part)
}
