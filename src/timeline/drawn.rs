//! Lines of the timeline as marks of a picture.

use callboard_proto::admin::v1::Said;

use crate::picture::{Arrow, Mark, Sign};

/// The mark for a line.
pub(crate) fn drawn(said: &Said) -> Mark {
    let about = match said.generation {
        0 => said.plugin.clone(),
        generation => format!("{} @{generation}", said.plugin),
    };
    let (from, text) = (said.from.clone(), said.message.clone());
    if said.to == "everyone" {
        return Mark::Sign { actor: from, text, about, sign: Sign::News };
    }
    Mark::Message { from, to: said.to.clone(), text, about, arrow: Arrow::Said }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_to_one_is_an_arrow_and_what_is_said_to_everyone_is_a_sign() {
        let mut said = Said {
            from: "registry".to_owned(),
            to: "everyone".to_owned(),
            message: "active: nobody → a".to_owned(),
            plugin: "csi-node/zfs".to_owned(),
            generation: 2,
            ..Default::default()
        };
        let about = "csi-node/zfs @2";
        assert!(matches!(drawn(&said), Mark::Sign { about: told, sign: Sign::News, .. } if told == about));
        said.to = "instances".to_owned();
        said.generation = 0;
        assert!(
            matches!(drawn(&said), Mark::Message { to, about, .. } if to == "instances" && about == "csi-node/zfs")
        );
    }
}
