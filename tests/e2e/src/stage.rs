// SPDX-License-Identifier: MPL-2.0

//! The staged plugins, and whether they are those of the sources at hand.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use crate::profile_dir;

/// What this process has checked: once is enough, and later a script under test may be at work with
/// cargo, which writes the dep-info anew.
static FRESH: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// `target/<profile>/stage`, where `tests/run.sh` puts what a host loads.
#[derive(Debug, Clone)]
pub struct Stage(PathBuf);

impl Stage {
    /// The stage of this test's profile, with the plugins of these folders of `plugins/` in it.
    ///
    /// # Panics
    ///
    /// If one of them is missing or older than one of its sources, with what to do about it.
    pub fn fresh(plugins: &[&str]) -> Self {
        let profile = profile_dir();
        let stage = Self(profile.join("stage"));
        let mut fresh = FRESH.lock().unwrap_or_else(PoisonError::into_inner);
        for &plugin in plugins {
            if fresh.contains(plugin) {
                continue;
            }
            let library = stage.plugins().join(format!("libgst{plugin}.so"));
            let sources = profile.join(format!("libgst{plugin}.d"));
            if let Err(reason) = check(&library, &sources) {
                panic!("{reason}; run tests/run.sh, which builds and stages the plugins");
            }
            fresh.insert(plugin.to_owned());
        }
        stage
    }

    /// What `GST_PLUGIN_PATH` names.
    pub fn plugins(&self) -> PathBuf {
        self.0.join("gstreamer-1.0")
    }
}

/// Whether `library` is there and not older than the sources that cargo's dep-info file names.
fn check(library: &Path, dep_info: &Path) -> Result<(), String> {
    let built =
        modified(library).map_err(|error| format!("{} is missing: {error}", library.display()))?;
    let text = fs::read_to_string(dep_info)
        .map_err(|error| format!("{} is missing: {error}", dep_info.display()))?;
    let sources = sources(&text);
    if sources.is_empty() {
        return Err(format!("{} names no source", dep_info.display()));
    }
    for source in sources {
        match modified(&source) {
            Ok(changed) if changed <= built => (),
            Ok(_) => {
                return Err(format!(
                    "{} is stale: {} is newer",
                    library.display(),
                    source.display()
                ));
            }
            Err(_) => {
                return Err(format!(
                    "{} is stale: {} is gone",
                    library.display(),
                    source.display()
                ));
            }
        }
    }
    Ok(())
}

fn modified(path: &Path) -> std::io::Result<SystemTime> {
    fs::metadata(path)?.modified()
}

/// The files behind the colon of a dep-info file; a space in a path has a backslash before it.
fn sources(dep_info: &str) -> Vec<PathBuf> {
    let Some((_, list)) = dep_info.lines().next().and_then(|l| l.split_once(": ")) else {
        return Vec::new();
    };
    list.replace("\\ ", "\0")
        .split_ascii_whitespace()
        .map(|path| PathBuf::from(path.replace('\0', " ")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::time::Duration;

    fn touch(path: &Path, seconds: u64) {
        let file = File::create(path).expect("the temporary folder is writable");
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
            .expect("the time can be set");
    }

    #[test]
    fn a_missing_or_stale_library_is_refused() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let source = dir.path().join("with a space.rs");
        let library = dir.path().join("libgstx.so");
        let dep_info = dir.path().join("libgstx.d");
        let escaped = source.display().to_string().replace(' ', "\\ ");

        let reason = check(&library, &dep_info).expect_err("nothing is there");
        assert!(reason.contains("libgstx.so is missing"), "{reason}");
        touch(&library, 200);
        let reason = check(&library, &dep_info).expect_err("no dep-info");
        assert!(reason.contains("libgstx.d is missing"), "{reason}");
        fs::write(&dep_info, format!("{}: {escaped}\n", library.display()))
            .expect("the temporary folder is writable");
        let reason = check(&library, &dep_info).expect_err("the source is gone");
        assert!(reason.contains("with a space.rs is gone"), "{reason}");
        touch(&source, 200);
        assert_eq!(check(&library, &dep_info), Ok(()));
        touch(&source, 201);
        let reason = check(&library, &dep_info).expect_err("the source is newer");
        assert!(reason.contains("with a space.rs is newer"), "{reason}");
        fs::write(&dep_info, "").expect("the temporary folder is writable");
        let reason = check(&library, &dep_info).expect_err("no source is named");
        assert!(reason.contains("names no source"), "{reason}");
    }
}
