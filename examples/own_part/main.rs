//! A host program's own part, beside those of the host: it assigns ports, which survive a restart.
//!
//! `ports.rs` is the actor: a machine that decides, and its table in the host's database. Here it becomes a part: it is started with
//! the host and stopped before it, restarted when it ends by itself, and shown in the tree and in the report of the end. Its
//! tests check its law and play a message script with a verb of its own. Run it with `cargo run --example own_part`.

mod ports;

use std::error::Error;

use callboard::actors::shell::{Address, FeedItem, NoEffectHandler, start};
use callboard::actors::supervisor::TreeNode;
use callboard::host::{Host, Part};

use ports::{ListPorts, Ports, PortsStore, Reserve};

fn part(address: &Address<Ports>) -> Part<Ports> {
    Part::new(address, |address, context| {
        let store = PortsStore::new(context.host().database());
        start(address, 9000..=9001, NoEffectHandler, store, context.settings())
    })
    .after("registry")
    .ready_when(|| ListPorts)
    .described_by(|| ListPorts, |ports| ports.iter().map(node).collect())
}

fn node((owner, port): &(String, u16)) -> TreeNode {
    let state = "reserved".to_owned();
    TreeNode {
        name: port.to_string(),
        kind: "port".to_owned(),
        state,
        message: owner.clone(),
        ..TreeNode::default()
    }
}

fn show(node: &TreeNode, depth: usize) {
    let TreeNode { kind, name, state, message, .. } = node;
    println!("{:depth$}{kind} {name}: {state} {message}", "");
    node.children.iter().for_each(|child| show(child, depth + 2));
}

#[actix::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let data_dir = tempfile::tempdir()?;
    let ports = Address::vacant("ports", 100);
    let host = Host::builder(data_dir.path()).part(part(&ports)).start().await?;
    let mut feed = ports.subscribe("example", 16)?;
    println!("web has port {}", ports.ask(Reserve { owner: "web".to_owned() }).await??);
    while let Some(item) = feed.try_next() {
        if let FeedItem::Change { number, news } = item {
            println!("change {number}: {news:?}");
        }
    }
    show(&host.tree().await?, 0);
    for child in host.stop().await.children {
        println!("{}: {}", child.name, child.ending);
    }

    // Every answer is on disk.
    let host = Host::builder(data_dir.path()).part(part(&ports)).start().await?;
    println!("web still has port {}", ports.ask(Reserve { owner: "web".to_owned() }).await??);
    host.stop().await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use callboard::script::Player;

    use super::ports::Release;
    use super::*;

    const STORY: &str = "\
# What was told survives the host and a crash of the part.
(host start)
reserve web
reserve api
reserve third
---
web has port 9000
api has port 9001
all ports from 9000 to 9001 are taken; release one

(host kill)
(host start)
(crash ports)
release api
reserve third
reserve web
---
api has released its port
third has port 9001
web has port 9000
";

    #[test]
    fn the_part_is_played_in_a_message_script_with_verbs_of_its_own() {
        let ports = Address::vacant("ports", 100);
        let mut player = Player::new();
        player.add_part(part(&ports));
        let asked = ports.clone();
        player.add_verb("reserve", "reserve OWNER", move |stage, words| {
            let owner = words.next("an owner")?.to_owned();
            stage.ask("ports", asked.ask(Reserve { owner: owner.clone() }), move |port| match port {
                Ok(port) => format!("{owner} has port {port}"),
                Err(error) => error.to_string(),
            });
            Ok(())
        });
        player.add_verb("release", "release OWNER", move |stage, words| {
            let owner = words.next("an owner")?.to_owned();
            stage.ask("ports", ports.ask(Release { owner: owner.clone() }), move |had| match had {
                true => format!("{owner} has released its port"),
                false => format!("{owner} had no port"),
            });
            Ok(())
        });
        assert_eq!(player.play(STORY).expect("it has no mistake").text, STORY);
    }
}
