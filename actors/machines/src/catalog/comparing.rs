//! Compares the results of two scans.

use super::messages::{CatalogNews, Listing};

/// The news between two scans: none if nothing changed (SCL-05).
pub(super) fn compare(before: &Listing, after: &Listing) -> Vec<CatalogNews> {
    let mut news = Vec::new();
    for plugin in before.found.keys().filter(|plugin| !after.found.contains_key(*plugin)) {
        let told = after.refused.iter().find(|refused| {
            refused.plugin.as_ref() == Some(plugin)
                || (refused.plugin.is_none() && before.found[plugin].info.source == refused.source)
        });
        let reason = told.map(|refused| refused.reason.clone());
        news.push(CatalogNews::Lost { plugin: plugin.clone(), reason });
    }
    for (plugin, found) in &after.found {
        match before.found.get(plugin) {
            None => news.push(CatalogNews::Found(Box::new(found.clone()))),
            Some(known) if known != found => news.push(CatalogNews::Changed(Box::new(found.clone()))),
            Some(_) => {}
        }
    }
    for refused in after.refused.iter().filter(|refused| !before.refused.contains(refused)) {
        news.push(CatalogNews::Refused(Box::new(refused.clone())));
    }
    let is_other = before.scanned_at.is_none()
        || !news.is_empty()
        || before.shadowed != after.shadowed
        || before.refused != after.refused
        || before.blocked != after.blocked
        || before.directory_error != after.directory_error;
    if is_other {
        news.push(CatalogNews::Scanned {
            found: after.found.len(),
            shadowed: after.shadowed.len(),
            refused: after.refused.len(),
            blocked: after.blocked.len(),
        });
    }
    news
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{BlockedBy, BlockedPlugin, DirectoryError, PluginSource, Refusal, RefusedPlugin};
    use crate::vocabulary::Timestamp;

    #[test]
    fn a_scan_that_changed_anything_at_all_is_told_and_another_one_is_not_scl_05() {
        let known = Listing { scanned_at: Some(Timestamp::default()), ..Listing::default() };
        assert_eq!(compare(&known, &known), []);
        assert_eq!(compare(&Listing::default(), &known).len(), 1, "the first one is told");
        let source = PluginSource::External("exec".to_owned());
        let blocked = Listing {
            blocked: vec![BlockedPlugin { source, plugin: None, by: BlockedBy::Name }],
            ..known.clone()
        };
        assert_eq!(compare(&known, &blocked).len(), 1);
        assert_eq!(compare(&blocked, &blocked), []);
        let error = DirectoryError::System { directory: "/plugins".into(), message: "denied".to_owned() };
        let unread = Listing { directory_error: Some(error), ..known.clone() };
        assert_eq!(compare(&known, &unread).len(), 1);
        assert_eq!(compare(&unread, &known).len(), 1);
        let refused = Listing {
            refused: vec![RefusedPlugin {
                source: PluginSource::External("raw".to_owned()),
                plugin: None,
                reason: Refusal::Link,
            }],
            ..known.clone()
        };
        assert_eq!(compare(&known, &refused).len(), 2, "that it is refused, and the scan");
        assert_eq!(
            compare(&refused, &known).len(),
            1,
            "that it is refused no more is told by the scan alone"
        );
    }
}
