//! A host program runs message scripts in its own tests, with a verb of its own.
//!
//! The host of this example sells slots at its plugins: one slot for each allocation on standby. The verb `places PLUGIN`
//! returns their number. Run it with `cargo run --example own_verbs`.

use callboard::actors::registry::Describe;
use callboard::script::{Player, Verdict};

const STORY: &str = "\
# Two stand by, and one takes over.
(host start)
(register red csi-node/zfs)
(register blue csi-node/zfs)
(register green csi-node/zfs)
places csi-node/zfs
---
2 places

(deregister green)
places csi-node/zfs
---
1 places
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut player = Player::new();
    player.add_verb("places", "places PLUGIN", |stage, words| {
        let plugin = words.plugin()?;
        let registry = stage.host()?.registry().clone();
        stage.ask("registry", registry.ask(Describe { plugin }), |described| {
            format!("{} places", described.standby.len())
        });
        Ok(())
    });

    // A test would keep its scripts in files, and contain only: assert_eq!(player.check(path)?, Verdict::Same).
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("a_place_is_taken_when_its_holder_leaves");
    std::fs::write(&path, STORY)?;
    match player.check(&path)? {
        Verdict::Same => println!("the story came out as it is told"),
        Verdict::Different { diff } => println!("{diff}"),
    }
    Ok(())
}
