//! Lines of the timeline as marks of a picture.

use std::collections::BTreeSet;

use callboard_proto::admin::v1::{Fate, Said};

use crate::picture::{Arrow, Mark, Sign};

/// Draws lines, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Drawer {
    /// Who is gone at the moment.
    lost: BTreeSet<String>,
    /// When the last line was heard of.
    at_unix_ms: Option<u64>,
}

/// So long nothing is said before it is worth a line of its own, in milliseconds.
const PAUSE_MIN_MS: u64 = 1_000;

impl Drawer {
    /// The marks for a line. Whoever is lost is drawn so until it lives again.
    pub(crate) fn drawn(&mut self, said: &Said) -> Vec<Mark> {
        let sign = |actor: &str, text: &str, sign| Mark::Sign {
            actor: actor.to_owned(),
            text: text.to_owned(),
            about: about(said),
            sign,
        };
        let fate = said.fate();
        let of = &said.whose_fate;
        let since = said.at_unix_ms.saturating_sub(self.at_unix_ms.unwrap_or(said.at_unix_ms));
        self.at_unix_ms = Some(said.at_unix_ms);
        let mut marks = Vec::new();
        if since >= PAUSE_MIN_MS {
            marks.push(Mark::Pause(format!("{}.{} s later", since / 1_000, since % 1_000 / 100)));
        }
        marks.push(match fate {
            // Who is lost says nothing any more: others have noticed it.
            Fate::Lost => sign(of, &said.message, Sign::Crash),
            Fate::Troubled => sign(of, &said.message, Sign::Trouble),
            Fate::Unspecified | Fate::Alive if said.from == "timeline" => Mark::Chapter(said.message.clone()),
            Fate::Unspecified | Fate::Alive if said.to == "everyone" => {
                sign(&said.from, &said.message, Sign::News)
            }
            Fate::Unspecified | Fate::Alive => Mark::Message {
                from: said.from.clone(),
                to: said.to.clone(),
                text: said.message.clone(),
                about: about(said),
                arrow: Arrow::Said,
            },
        });
        if fate == Fate::Lost {
            self.lost.insert(of.clone());
        }
        if fate == Fate::Alive && self.lost.remove(of) {
            marks.push(Mark::Sign {
                actor: of.clone(),
                text: "lives again".to_owned(),
                about: String::new(),
                sign: Sign::Restart,
            });
        }
        marks
    }
}

/// The plugin that a line is about, with its generation.
fn about(said: &Said) -> String {
    let generation = match said.generation {
        0 => String::new(),
        generation => format!("@{generation}"),
    };
    [said.plugin.clone(), generation]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(from: &str, to: &str, message: &str) -> Said {
        Said { from: from.to_owned(), to: to.to_owned(), message: message.to_owned(), ..Default::default() }
    }

    #[test]
    fn what_is_said_to_one_is_an_arrow_and_what_is_said_to_everyone_is_a_sign() {
        let mut drawer = Drawer::default();
        let plugin = "csi-node/zfs".to_owned();
        let news = Said {
            plugin: plugin.clone(),
            generation: 2,
            ..said("registry", "everyone", "active: nobody → a")
        };
        let marks = drawer.drawn(&news);
        assert!(
            matches!(&marks[..], [Mark::Sign { about, sign: Sign::News, .. }] if about == "csi-node/zfs @2")
        );
        let told = Said { plugin, ..said("registry", "instances", "it is active") };
        let marks = drawer.drawn(&told);
        assert!(
            matches!(&marks[..], [Mark::Message { to, about, .. }] if to == "instances" && about == "csi-node/zfs")
        );
    }

    #[test]
    fn time_that_passes_and_what_the_timeline_says_of_itself_go_over_the_whole_width() {
        let mut drawer = Drawer::default();
        let at = |at_unix_ms, said: Said| Said { at_unix_ms, ..said };
        let begin = drawer.drawn(&at(5_000, said("timeline", "you", "this is what is said from now on")));
        assert_eq!(begin, [Mark::Chapter("this is what is said from now on".to_owned())]);
        assert_eq!(drawer.drawn(&at(5_900, said("agent", "registry", "one"))).len(), 1);
        let troubled = Said { fate: Fate::Troubled.into(), ..at(5_900, said("registry", "everyone", "two")) };
        assert!(matches!(&drawer.drawn(&troubled)[..], [Mark::Sign { sign: Sign::Trouble, .. }]));
        let later = drawer.drawn(&at(8_150, said("agent", "registry", "two")));
        assert_eq!(later[0], Mark::Pause("2.2 s later".to_owned()));
    }

    #[test]
    fn who_is_lost_is_drawn_so_until_it_lives_again() {
        let mut drawer = Drawer::default();
        let of =
            |fate: Fate, said: Said| Said { whose_fate: "driver exec".to_owned(), fate: fate.into(), ..said };
        let run = of(Fate::Alive, said("drivers", "driver exec", "run as process 7"));
        let lost = of(Fate::Lost, said("drivers", "everyone", "exec is lost: signal 9"));
        let marks: Vec<Mark> =
            [&run, &lost, &run, &run].into_iter().flat_map(|line| drawer.drawn(line)).collect();
        let kinds: Vec<_> = marks.iter().map(|mark| matches!(mark, Mark::Message { .. })).collect();
        assert_eq!(kinds, [true, false, true, false, true]);
        assert!(
            matches!(&marks[1], Mark::Sign { actor, sign: Sign::Crash, .. } if actor == "driver exec"),
            "{marks:?}"
        );
        assert!(matches!(&marks[3], Mark::Sign { sign: Sign::Restart, .. }), "{marks:?}");
    }
}
