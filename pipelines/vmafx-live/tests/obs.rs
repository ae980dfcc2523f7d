// SPDX-License-Identifier: MPL-2.0

//! What `pipelines/obs` gives to OBS. OBS itself is tried by `tests/obs/run.sh`.

use std::fs;
use std::path::Path;
use std::process::Command;

use e2e::{run, workspace_root};
use serde_json::Value;
use tempfile::TempDir;

fn install(home: &Path, score_text: &str) {
    let script = workspace_root().join("pipelines/obs/install.sh");
    run(Command::new(script)
        .env("HOME", home)
        .env_remove("XDG_CONFIG_HOME")
        .env("VMAFX_SCORE_TEXT", score_text))
    .success();
}

fn source(collection: &Value, name: &str) -> Value {
    let sources = collection["sources"].as_array().expect("sources");
    let found = sources.iter().find(|source| source["name"] == name);
    found.expect("the source").clone()
}

#[test]
fn scenes_and_profile_are_put_where_obs_finds_them_and_nothing_else_is_touched() {
    let desk = TempDir::new().expect("a temporary folder");
    let home = desk.path().join("a & b|c");
    let basic = home.join(".config/obs-studio/basic");
    fs::create_dir_all(basic.join("scenes")).expect("ours");
    fs::write(basic.join("scenes/mine.json"), "{}").expect("ours");
    let odd = r#"/run/a "text" & more|\file.txt"#;
    install(&home, odd);
    // Again, over its own.
    install(&home, odd);

    let read = |name: &str| fs::read_to_string(basic.join(name)).expect("a file");
    assert_eq!(read("scenes/mine.json"), "{}");
    let profile = read("profiles/vmafx/basic.ini");
    let recordings = format!("FilePath={}\n", home.display());
    assert!(profile.contains(&recordings), "{profile}");
    let collection = |name: &str| -> Value {
        serde_json::from_str(&read(&format!("scenes/{name}.json"))).expect("JSON")
    };
    let text = collection("vmafx-text");
    assert_eq!(source(&text, "Scores")["settings"]["text_file"], odd);
    let browser = collection("vmafx-browser");
    let url = &source(&browser, "Scores")["settings"]["url"];
    assert_eq!(url, "http://127.0.0.1:8086/?overlay=1");
    let within = collection("vmafx-source");
    let filter = collection("vmafx-filter");
    let word = r#"score-text-path="/run/a \"text\" & more|\\file.txt" messages=0"#;
    for pipeline in [
        &source(&within, "Stream")["settings"]["pipeline"],
        &source(&filter, "Stream")["filters"][0]["settings"]["pipeline"],
    ] {
        let pipeline = pipeline.as_str().expect("a pipeline");
        assert!(pipeline.contains(word), "{pipeline}");
    }
    assert_eq!(source(&filter, "Scores")["settings"]["text_file"], odd);
    for collection in [text, browser, filter] {
        let input = &source(&collection, "Stream")["settings"]["input"];
        assert_eq!(input, "udp://127.0.0.1:5004");
    }
}

#[test]
fn wrong_usage_of_the_scripts() {
    for (script, argument, said) in [
        ("pipelines/obs/install.sh", "--what", "usage: "),
        ("pipelines/obs/stream.sh", "--what", "unknown option --what"),
        (
            "pipelines/obs/stream.sh",
            "film.mp4",
            "film.mp4 is no address",
        ),
        ("pipelines/packages.sh", "--what", "unknown option --what"),
    ] {
        let done = run(Command::new(workspace_root().join(script)).arg(argument)).failure(2);
        assert!(done.stderr.contains(said), "{done}");
    }
}
