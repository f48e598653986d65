//! Tests restored registrations and the sockets they name: the plugin that answers there proves its identity, or does not.

use std::time::Duration;

use callboard_actors::registry::{
    self, Describe, List, MemoryStore, Register, Registry, RegistryOptions, SocketCheck,
};
use callboard_actors::shell::{Address, Running, Settings};

use crate::plugin::{Place, Plugin, Reply, named};
use crate::stage::{GRACE, name_of, pass, plugin, register, story};

const ZFS: &str = "csi-node/zfs";

struct Fixture {
    registry: Address<Registry>,
    running: Running,
}

impl Fixture {
    fn on(store: &MemoryStore) -> Self {
        let registry = Address::vacant("registry", 64);
        let options = RegistryOptions { restore_grace: GRACE, ..RegistryOptions::default() };
        let check = SocketCheck { deadline: Duration::from_secs(2) };
        let running = registry::start(&registry, options, check, store.clone(), Settings::default());
        Self { registry, running }
    }

    async fn next_run(self, store: &MemoryStore) -> Self {
        self.running.kill();
        self.running.ended().await;
        store.begin_run();
        Self::on(store)
    }

    async fn signs_in(&self, id: &str, place: &Place) {
        let provider = Some("zfs.example".into());
        let message = Register { socket: place.socket.clone(), provider, ..register(id, &[ZFS]) };
        assert!(self.registry.ask(message).await.expect("it runs").is_ok());
    }

    async fn active(&self) -> Option<String> {
        let description = self.registry.ask(Describe { plugin: plugin(ZFS) }).await.expect("it runs");
        description.active.as_ref().map(name_of)
    }

    async fn listed(&self) -> Vec<String> {
        let entries = self.registry.ask(List).await.expect("it runs");
        entries.iter().map(|entry| entry.registration.allocation.to_string()).collect()
    }
}

fn called(name: &str) -> Plugin {
    Plugin { info: Reply::Answer(named(name)), ..Plugin::default() }
}

#[test]
fn res_06_only_who_answers_at_its_socket_under_its_name_is_proven() {
    story(|| async {
        let store = MemoryStore::default();
        let fixture = Fixture::on(&store);
        let [alive, gone, impostor, mute] = [(); 4].map(|()| Place::new());
        for (id, place) in [("alive", &alive), ("gone", &gone), ("impostor", &impostor), ("mute", &mute)] {
            fixture.signs_in(id, place).await;
        }
        alive.serve(called("zfs.example"));
        impostor.serve(called("btrfs.example"));
        mute.serve(Plugin { info: Reply::Hang, ..Plugin::default() });
        let fixture = fixture.next_run(&store).await;
        for _ in 0..GRACE.as_secs() {
            pass(1).await;
            assert_eq!(fixture.active().await.as_deref(), Some("alive"), "no newer one is proven");
        }
        pass(2).await;
        assert_eq!(fixture.listed().await, ["alive"]);
    });
}

#[test]
fn reg_10_a_socket_left_dead_by_a_killed_plugin_is_no_proof_and_a_fresh_one_there_is() {
    story(|| async {
        let store = MemoryStore::default();
        let fixture = Fixture::on(&store);
        let place = Place::new();
        fixture.signs_in("a", &place).await;
        // The file stays when its listener is killed.
        drop(std::os::unix::net::UnixListener::bind(place.socket.as_path()).unwrap());
        let fixture = fixture.next_run(&store).await;
        pass(5).await;
        assert_eq!(fixture.active().await, None);
        std::fs::remove_file(place.socket.as_path()).unwrap();
        place.serve(called("zfs.example"));
        // Its owner would register again within a second; without an owner, the next round of checks finds it.
        pass(10).await;
        assert_eq!(fixture.active().await.as_deref(), Some("a"));
        tokio::time::sleep(GRACE).await;
        assert_eq!(fixture.listed().await, ["a"]);
    });
}
