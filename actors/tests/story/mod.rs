//! Runs the tests of actors: on one arbiter, under virtual time.

use std::sync::Once;

/// Runs a story on one arbiter under virtual time. Panics on purpose are not printed.
pub(crate) fn story<F: Future<Output = ()>>(tell: impl FnOnce() -> F) {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let text = info.payload().downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| info.payload().downcast_ref::<&str>().copied());
            if !text.is_some_and(|text| text.contains("on purpose")) {
                loud(info);
            }
        }));
    });
    let system = actix::System::with_tokio_rt(|| {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .expect("a runtime")
    });
    system.block_on(async { tell().await });
}
