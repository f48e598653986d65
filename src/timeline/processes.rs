//! The news of the processes as sentences. They have no lines: the lines of the drivers report processes.

use callboard_actors::processes::ProcessesNews;

/// A piece of news as a sentence.
pub(super) fn sentence(news: &ProcessesNews) -> String {
    match news {
        ProcessesNews::Changed(report) => format!("{} is {}", report.name, report.phase.as_str()),
        ProcessesNews::Ended(ending) => format!("{} has ended: {ending}", ending.name),
        ProcessesNews::Retired { name, reason, .. } => format!("the record of {name} was retired: {reason}"),
        ProcessesNews::Settled => "all processes of earlier runs are settled".to_owned(),
    }
}
