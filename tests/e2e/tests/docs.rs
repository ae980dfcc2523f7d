// SPDX-License-Identifier: MPL-2.0

//! The documentation is true: its commands run, its tables are those of the element, its links lead somewhere.
//!
//! A fenced block of the language `sh` is run. Behind the language may stand why it is not, and how many such
//! blocks there are is asserted, so that none joins them unnoticed:
//!
//! | tag | why |
//! |---|---|
//! | `needs=gpu`, `needs=root`, `needs=obs` | no test machine has it |
//! | `runs=long` | it builds, tests or measures at length: `every_long_command_block_runs`, which is ignored |
//!
//! A page is one shell that runs its blocks from top to bottom, in a folder that looks like the root of the
//! checkout, so that results do not go among a user's. The build is the test's own (`VMAFX_PROFILE`).

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Once;
use std::time::Duration;

use e2e::child::wait;
use e2e::{Stage, command, profile, run, workspace_root};

/// Blocks that are not run here, by tag.
const NOT_RUN: [(&str, usize); 4] = [
    ("needs=gpu", 5),
    ("needs=obs", 3),
    ("needs=root", 3),
    (LONG, 14),
];

/// Blocks that are run by a test of their own.
const LONG: &str = "runs=long";
/// After this long such a block hangs.
const LONG_LIMIT: Duration = Duration::from_secs(3600);

/// Words that begin a command; behind four spaces they would be a block that nobody runs.
const COMMANDS: [&str; 9] = [
    "cargo ",
    "gst-",
    "./",
    "tests/",
    "pipelines/",
    ".ci/",
    "export ",
    "source ",
    "apt-get ",
];

/// A fenced block.
struct Block {
    line: usize,
    info: String,
    text: String,
}

impl Block {
    /// What stands behind the language.
    fn tag(&self) -> &str {
        self.info.split_whitespace().nth(1).unwrap_or_default()
    }
}

fn pages() -> Vec<PathBuf> {
    let root = workspace_root();
    let mut pages = vec![root.join("README.md"), root.join("CONTRIBUTING.md")];
    let docs = fs::read_dir(root.join("docs")).expect("the documentation");
    pages.extend(docs.map(|entry| entry.expect("an entry").path()));
    pages.retain(|page| page.extension().is_some_and(|end| end == "md"));
    pages.sort();
    assert!(pages.len() > 10, "{pages:?}");
    pages
}

fn name(page: &Path) -> String {
    let name = page
        .strip_prefix(workspace_root())
        .expect("a page of the checkout");
    name.display().to_string()
}

fn read(page: &Path) -> String {
    fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}

/// The fenced blocks of a page, and the lines outside.
fn parse(page: &Path) -> (Vec<Block>, Vec<(usize, String)>) {
    let (mut blocks, mut outside) = (Vec::new(), Vec::new());
    let mut open: Option<Block> = None;
    for (line, text) in read(page)
        .lines()
        .enumerate()
        .map(|(i, text)| (i + 1, text))
    {
        match (text.strip_prefix("```"), &mut open) {
            (Some(info), None) => {
                open = Some(Block {
                    line,
                    info: info.to_owned(),
                    text: String::new(),
                });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.text += &format!("{text}\n"),
            (None, None) => outside.push((line, text.to_owned())),
        }
    }
    assert!(open.is_none(), "{}: a block without end", name(page));
    (blocks, outside)
}

/// Whether a line is one that a reader would paste into a shell.
fn is_command(line: &str) -> bool {
    let variable = line.split_once('=').is_some_and(|(before, _)| {
        !before.is_empty() && before.chars().all(|c| c.is_ascii_uppercase() || c == '_')
    });
    variable || COMMANDS.iter().any(|begin| line.starts_with(begin))
}

/// What is run of a page, and what is not: its tag is in its info.
fn commands(page: &Path) -> (Vec<Block>, Vec<Block>) {
    let (mut runs, mut tagged) = (Vec::new(), Vec::new());
    for block in parse(page).0 {
        match block.info.split_whitespace().collect::<Vec<_>>()[..] {
            [] => assert!(
                !block
                    .text
                    .lines()
                    .any(|line| line.starts_with("$ ") || is_command(line)),
                "{}:{}: a block of commands without language: it is `sh`, its output `text`",
                name(page),
                block.line
            ),
            ["sh"] => runs.push(block),
            ["sh", _] => tagged.push(block),
            ["bash" | "shell" | "console", ..] => {
                panic!("{}:{}: commands are `sh`", name(page), block.line)
            }
            _ => {}
        }
    }
    (runs, tagged)
}

/// A folder in which the checkout's files are found as in its root, and that is empty otherwise.
fn root_like(page: &Path) -> PathBuf {
    let root = workspace_root();
    let folder = root.join("target/docs").join(name(page).replace('/', "-"));
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("the last run's folder can go");
    }
    fs::create_dir_all(&folder).expect("target/ is writable");
    for entry in fs::read_dir(root).expect("the checkout") {
        let entry = entry.expect("an entry");
        // cargo looks for its files upwards, and finds the real ones.
        let file = entry.file_name().into_string().unwrap_or_default();
        let is_cargo_s = file.starts_with("Cargo.") || file == "rustfmt.toml";
        if !file.starts_with(".git") && file != "scores" && !is_cargo_s {
            symlink(entry.path(), folder.join(file)).expect("target/ is writable");
        }
    }
    folder
}

/// A shell that runs these blocks of a page from top to bottom, and ends at the first command that fails.
fn shell(stage: &Stage, page: &Path, folder: &Path, blocks: &[Block]) -> Command {
    let mut script = "set -euo pipefail\n".to_owned();
    for Block { line, text, .. } in blocks {
        script += &format!("echo '### {}:{line}' >&2\n{text}", name(page));
    }
    let file = folder.join("blocks.bash");
    fs::write(&file, script).expect("target/ is writable");
    let mut shell = command(stage, "bash");
    shell
        .arg("blocks.bash")
        .current_dir(folder)
        .env_remove("GST_PLUGIN_PATH")
        .env_remove("GST_REGISTRY")
        .env_remove("VMAFX_SCORES_DIR")
        .env("VMAFX_PROFILE", profile());
    shell
}

#[test]
fn every_command_block_runs() {
    let stage = Stage::fresh(&["vmafxmotion"]);
    let mut ran = 0;
    for page in pages() {
        let (blocks, _) = commands(&page);
        if blocks.is_empty() {
            continue;
        }
        let folder = root_like(&page);
        let done = run(&mut shell(&stage, &page, &folder, &blocks));
        assert!(
            done.status.success(),
            "{}: the last block named below failed: {done}",
            name(&page)
        );
        ran += blocks.len();
    }
    assert!(ran >= 14, "only {ran} blocks were found");
}

/// Builds, all tests, campaigns and measurements with `--check`: for a machine that does nothing else. Pages that
/// `VMAFX_DOCS_PAGES` names, with commas between them, or all.
#[test]
#[ignore = "takes an hour"]
fn every_long_command_block_runs() {
    let stage = Stage::fresh(&["vmafxmotion"]);
    let wanted = std::env::var("VMAFX_DOCS_PAGES").unwrap_or_default();
    let mut wanted: BTreeSet<&str> = wanted.split(',').filter(|page| !page.is_empty()).collect();
    let all = wanted.is_empty();
    for page in pages() {
        let mut blocks = commands(&page).1;
        blocks.retain(|block| block.tag() == LONG);
        let chosen = wanted.remove(name(&page).as_str()) || all;
        if blocks.is_empty() || !chosen {
            continue;
        }
        let folder = root_like(&page);
        // What it says is seen while it runs.
        let mut child = shell(&stage, &page, &folder, &blocks)
            .stdin(Stdio::null())
            .spawn()
            .expect("bash is there");
        let status = wait(&mut child, LONG_LIMIT);
        assert!(
            status.is_some_and(|status| status.success()),
            "{}: the last block named above failed: {status:?}",
            name(&page)
        );
    }
    assert!(wanted.is_empty(), "no page with long blocks: {wanted:?}");
}

#[test]
fn what_is_not_run_is_counted_and_nothing_hides() {
    let mut counts: BTreeMap<String, usize> = NOT_RUN
        .iter()
        .map(|(tag, _)| ((*tag).to_owned(), 0))
        .collect();
    for page in pages() {
        for block in commands(&page).1 {
            let tag = block.tag();
            let count = counts.get_mut(tag);
            *count.unwrap_or_else(|| panic!("{}: unknown tag {tag}", name(&page))) += 1;
        }
        for (line, text) in parse(&page).1 {
            let hides = text.strip_prefix("    ").is_some_and(is_command);
            assert!(
                !hides,
                "{}:{line}: a command outside a fenced block: {text}",
                name(&page)
            );
        }
    }
    let expected = NOT_RUN
        .iter()
        .map(|(tag, count)| ((*tag).to_owned(), *count));
    assert_eq!(counts, expected.collect(), "blocks that are not run");
}

/// How GitHub makes an anchor of a heading.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[test]
fn every_link_leads_somewhere() {
    let mut links = 0;
    for page in pages() {
        for (line, text) in parse(&page).1 {
            for rest in text.split("](").skip(1) {
                let link = rest.split(')').next().unwrap_or_default();
                if link.starts_with("http") {
                    continue;
                }
                let (file, heading) = link.split_once('#').unwrap_or((link, ""));
                let target = match file {
                    "" => page.clone(),
                    file => page.parent().expect("a folder").join(file),
                };
                assert!(
                    target.exists(),
                    "{}:{line}: {link} leads nowhere",
                    name(&page)
                );
                if !heading.is_empty() {
                    let (_, outside) = parse(&target);
                    let found = outside.iter().any(|(_, text)| {
                        text.starts_with('#') && anchor(text.trim_start_matches('#')) == heading
                    });
                    assert!(found, "{}:{line}: {link} has no such heading", name(&page));
                }
                links += 1;
            }
        }
    }
    assert!(links > 30, "only {links} links were found");
}

#[test]
fn every_page_and_script_is_on_a_map() {
    let map = read(&workspace_root().join("docs/README.md"));
    for page in pages() {
        let file = page
            .file_name()
            .and_then(|file| file.to_str())
            .expect("a name");
        let listed = file == "README.md" || map.contains(&format!("{file})"));
        assert!(listed, "docs/README.md does not list {file}");
    }
    let scripts = read(&workspace_root().join("docs/scripts.md"));
    for entry in fs::read_dir(workspace_root().join("pipelines")).expect("the scripts") {
        let file = entry
            .expect("an entry")
            .file_name()
            .into_string()
            .expect("UTF-8");
        if file.ends_with(".sh") {
            assert!(
                scripts.contains(&format!("`{file}")),
                "docs/scripts.md does not list {file}"
            );
        }
    }
}

/// GStreamer with the plugin linked in, once for all tests of this process.
fn init() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        gst::init().expect("GStreamer");
        gstvmafxmotion::plugin_register_static().expect("the plugin");
    });
}

/// The cells of the table rows below a heading, up to the next one.
fn rows(page: &str, heading: &str) -> Vec<Vec<String>> {
    let text = read(&workspace_root().join(page));
    let lines = text
        .lines()
        .skip_while(|line| line.trim_start_matches('#').trim() != heading);
    let lines = lines.skip(1).take_while(|line| !line.starts_with('#'));
    let rows: Vec<Vec<String>> = lines
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let cells = line.trim_matches('|').split('|');
            cells
                .map(|cell| cell.trim().trim_matches('`').to_owned())
                .collect()
        })
        .collect();
    assert!(!rows.is_empty(), "{page} has no table below {heading}");
    rows
}

/// Fields and types that a page gives for a structure; `FEATURE.METHOD` stands for all of them.
fn documented(heading: &str) -> BTreeMap<String, String> {
    let rows = rows("docs/messages.md", heading);
    rows.into_iter()
        .map(|row| (row[0].clone(), row[1].clone()))
        .collect()
}

/// Fields and types of a structure as it comes.
fn found(structure: &gst::StructureRef) -> BTreeMap<String, String> {
    let pooled = |field: &str| field.starts_with("motion") && field.contains('.');
    let fields = structure.iter().map(|(field, value)| {
        let field = field.as_str();
        let name = if pooled(field) {
            "FEATURE.METHOD"
        } else {
            field
        };
        (name.to_owned(), value.type_().name().to_owned())
    });
    fields.collect()
}

#[test]
fn messages_are_as_documented() {
    use gst::prelude::*;

    init();
    let pipeline = gst::parse::launch(
        "videotestsrc num-buffers=6 ! video/x-raw,width=64,height=64 \
         ! vmafxmotion name=motion n-stats-frames=2 ! fakesink name=sink",
    )
    .expect("Debian's elements");
    let bin = pipeline.downcast_ref::<gst::Bin>().expect("a pipeline");
    let element = bin.by_name("motion").expect("the element");
    let (sender, metas) = std::sync::mpsc::channel();
    let pad = bin
        .by_name("sink")
        .and_then(|sink| sink.static_pad("sink"))
        .expect("a pad");
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        if let Some(buffer) = info.buffer() {
            let meta =
                gst::meta::CustomMeta::from_buffer(buffer, "VmafxMotionMeta").expect("a meta");
            sender
                .send(found(meta.structure()))
                .expect("the test listens");
        }
        gst::PadProbeReturn::Ok
    });
    let bus = pipeline.bus().expect("a bus");
    pipeline.set_state(gst::State::Playing).expect("plays");
    let mut kinds = BTreeMap::<String, BTreeMap<String, String>>::new();
    let mut take = |structure: &gst::StructureRef| {
        kinds
            .entry(structure.name().to_string())
            .or_default()
            .extend(found(structure));
    };
    for message in bus.iter_timed(gst::ClockTime::NONE) {
        match message.view() {
            gst::MessageView::Element(message) => take(message.structure().expect("scores")),
            gst::MessageView::Eos(_) => break,
            gst::MessageView::Error(error) => panic!("{error:?}"),
            _ => {}
        }
    }
    // A window that cannot be had, and frames that are final, too late and to come.
    let id = element.emit_by_name::<u64>("submit-window", &[&900_u64, &901_u64]);
    for id in [id, 0] {
        take(&element.emit_by_name::<gst::Structure>("poll-window", &[&id]));
    }
    for frame in [0_u64, 900] {
        take(&element.emit_by_name::<gst::Structure>("frame-score", &[&frame]));
    }
    take(&element.property::<gst::Structure>("stats"));
    pipeline.set_state(gst::State::Null).expect("stops");
    kinds.insert(
        "VmafxMotionMeta".to_owned(),
        metas.try_iter().flatten().collect(),
    );

    for (heading, count) in [
        ("VmafxMotionMeta", 8),
        ("vmafxmotion-frame", 9),
        ("vmafxmotion-window", 18),
        ("vmafxmotion-summary", 9),
        ("vmafxmotion-frame-score", 8),
        ("vmafxmotion-stats", 12),
    ] {
        let documented = documented(heading);
        assert_eq!(documented.len(), count, "{heading}: {documented:?}");
        assert_eq!(kinds.get(heading), Some(&documented), "{heading}");
    }
}

/// The messages that a decoder posts on a stream under faults, as `gst-launch-1.0 -m` prints them.
fn decoder_messages(
    stage: &Stage,
    decoder: &str,
    variables: &[(&str, String)],
) -> Vec<gst::Structure> {
    let stream = test_streams::named("test-25fps.h264").path;
    let mut launch = command(stage, "gst-launch-1.0");
    launch
        .args(["-m", "filesrc"])
        .arg(format!("location={}", stream.display()));
    launch
        .args(["!", "h264parse", "!"])
        .args(decoder.split(' '))
        .args(["!", "fakesink"]);
    let done = run(launch.envs(
        variables
            .iter()
            .map(|(name, value)| (*name, value.as_str())),
    ));
    let name = decoder.split(' ').next().unwrap_or_default();
    let lines = done
        .stdout
        .lines()
        .filter_map(|line| line.split_once("(element): "));
    let lines = lines.filter(|(_, structure)| structure.starts_with(name));
    let parse = |text: &str| {
        text.parse()
            .unwrap_or_else(|error| panic!("{text}: {error}"))
    };
    lines.map(|(_, structure)| parse(structure)).collect()
}

#[test]
fn the_messages_of_vplretrydec_are_as_documented() {
    init();
    let stage = Stage::fresh(&["vplretry"]);
    for (faults, heading) in [
        ("busy=3", "vplretrydec-retry"),
        ("device-lost=9", "vplretrydec-recovered"),
        ("corrupt=5", "vplretrydec-corrupted"),
    ] {
        let faults = [("VPLSOFT_FAULTS", faults.to_owned())];
        let messages = decoder_messages(&stage, "vplretrydec implementation=software", &faults);
        let message = messages.iter().find(|message| message.name() == heading);
        let message = message.unwrap_or_else(|| panic!("no {heading} in {messages:?}"));
        assert_eq!(found(message), documented(heading), "{heading}");
        if let Ok(stats) = message.get::<gst::Structure>("stats") {
            assert_eq!(found(&stats), documented("vplretrydec-stats"));
        }
    }
}

#[test]
fn properties_are_as_documented() {
    use gst::prelude::*;

    init();
    let element = gst::ElementFactory::make("vmafxmotion")
        .build()
        .expect("the element");
    let real: BTreeSet<String> = element
        .list_properties()
        .iter()
        .filter(|property| property.owner_type() == element.type_())
        .map(|property| property.name().to_owned())
        .collect();
    let rows = rows("docs/vmafxmotion.md", "Properties");
    let (properties, signals): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| {
        row.len() == 3 && !row[0].contains("-window") && row[0] != "frame-score"
            || row[0] == "motion-five-frame-window"
    });
    let documented: BTreeSet<String> = properties.iter().map(|row| row[0].clone()).collect();
    assert_eq!(documented, real);
    let signals: BTreeSet<&str> = signals.iter().map(|row| row[0].as_str()).collect();
    let known = [
        "submit-window",
        "poll-window",
        "cancel-window",
        "frame-score",
    ];
    assert_eq!(signals, known.into_iter().collect());
    for row in properties {
        let (property, default) = (&row[0], row[1].as_str());
        let value = element.property_value(property);
        let text = value
            .serialize()
            .map(|text| text.to_string())
            .unwrap_or_default();
        match default {
            // GLib writes flags in its own order, and no text for none.
            "frame+window+summary" | "all eight" | "none" | "" => {}
            number if number.parse::<f64>().is_ok() => {
                assert_eq!(
                    number.parse::<f64>().ok(),
                    text.parse().ok(),
                    "{property} is {text}"
                );
            }
            word => assert_eq!(word, text, "{property}"),
        }
    }
}
