// SPDX-License-Identifier: MPL-2.0

//! Which runtimes there are, in the order in which they are tried: hardware by the dispatcher, software by
//! the dispatcher, the bundled one without it.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use onevpl_sys::{DirectRuntime, Filter, ImplementationKind, Loader, dispatcher};

use crate::cwd::stray_runtime;
use crate::failure::{Failure, Kind};

/// The first API version with surfaces that are mapped and released by their interface, and with which every
/// runtime in use can be filtered.
const API: (u16, u16) = (2, 2);

/// Property `implementation`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Wanted {
    #[default]
    Auto,
    Hardware,
    Software,
}

/// What the properties say of the runtime.
#[derive(Debug, Clone, Default)]
pub(crate) struct Selection {
    pub(crate) wanted: Wanted,
    /// The bundled runtime's file, or its folder.
    pub(crate) bundled: Option<PathBuf>,
    pub(crate) allow_cwd: bool,
    pub(crate) render_device: Option<PathBuf>,
}

/// Where sessions come from.
#[derive(Clone)]
pub(crate) enum Source {
    Dispatcher(Arc<Loader>, u32),
    Direct(Arc<DirectRuntime>),
}

/// A runtime that can be tried.
#[derive(Clone)]
pub(crate) struct Candidate {
    pub(crate) source: Source,
    pub(crate) name: String,
    /// `None` where only a session tells it.
    pub(crate) api: Option<(u16, u16)>,
    pub(crate) hardware: bool,
    /// `None` where only a session tells them.
    pub(crate) codecs: Option<Vec<u32>>,
    pub(crate) path: String,
    /// The node that its display is opened on.
    pub(crate) render_device: Option<PathBuf>,
}

impl fmt::Debug for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.path)
    }
}

/// What there is, and what is missing.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) candidates: Vec<Candidate>,
    /// Why no hardware is among them; empty where it is.
    pub(crate) no_hardware: String,
}

/// Looks for runtimes.
///
/// # Errors
/// There is none, or the current folder holds a library that must not be loaded.
pub(crate) fn find(selection: &Selection) -> Result<Found, Failure> {
    if let Some(node) = &selection.render_device
        && !node.exists()
    {
        return Err(Failure::new(
            Kind::NotFound,
            format!(
                "render-device {} does not exist; there are: {}",
                node.display(),
                render_nodes_text()
            ),
        ));
    }
    let bundled = selection.bundled.as_deref().map(bundled_file);
    let mut missing = Vec::new();
    let mut found = Found::default();
    match dispatcher() {
        Ok(_) => {
            refuse_strays(selection, bundled.as_deref())?;
            by_dispatcher(selection, &mut found, &mut missing);
        }
        Err(error) => missing.push(error.to_string()),
    }
    if !found.candidates.iter().any(|candidate| candidate.hardware) {
        found.no_hardware = format!(
            "{}; render nodes: {}",
            missing.join("; "),
            render_nodes_text()
        );
    }
    if selection.wanted != Wanted::Hardware {
        match direct(bundled.as_deref()) {
            Ok(candidate) => found.candidates.push(candidate),
            Err(reason) => missing.push(reason),
        }
    }
    if found.candidates.is_empty() {
        let what = match selection.wanted {
            Wanted::Hardware => "no oneVPL hardware implementation",
            Wanted::Auto | Wanted::Software => "no oneVPL implementation",
        };
        return Err(Failure::new(
            Kind::NotFound,
            format!(
                "{what}: {}; render nodes: {}. For an Intel GPU install libvpl2 and libmfx-gen1.2 and see that \
                 the user may open the render node; without one, put libvplsoft.so into the folder vplsoft beside \
                 the plugin's folder, or name it with runtime-path",
                missing.join("; "),
                render_nodes_text()
            ),
        ));
    }
    Ok(found)
}

fn refuse_strays(selection: &Selection, bundled: Option<&Path>) -> Result<(), Failure> {
    if selection.allow_cwd {
        return Ok(());
    }
    let Ok(folder) = std::env::current_dir() else {
        return Ok(());
    };
    match stray_runtime(&folder, bundled) {
        None => Ok(()),
        Some(stray) => Err(Failure::new(
            Kind::NotTrusted,
            format!(
                "the oneVPL dispatcher would load {} because it lies in the current folder, and it is not \
                 this element's own runtime: start from another folder, remove the file, or set \
                 allow-cwd-runtime=true if it is to be trusted",
                stray.display()
            ),
        )),
    }
}

fn by_dispatcher(selection: &Selection, found: &mut Found, missing: &mut Vec<String>) {
    for (kind, name, wanted) in [
        (
            ImplementationKind::Hardware,
            "hardware",
            selection.wanted != Wanted::Software,
        ),
        (
            ImplementationKind::Software,
            "software",
            selection.wanted != Wanted::Hardware,
        ),
    ] {
        if !wanted {
            continue;
        }
        let mut filters = vec![Filter::Kind(kind), Filter::ApiAtLeast(API.0, API.1)];
        let hardware = kind == ImplementationKind::Hardware;
        if let Some(number) = selection.render_device.as_deref().and_then(node_number)
            && hardware
        {
            filters.push(Filter::RenderNode(number));
        }
        let loader = match Loader::new(&filters) {
            Ok(loader) => Arc::new(loader),
            Err(error) => {
                missing.push(error.to_string());
                continue;
            }
        };
        let before = found.candidates.len();
        for implementation in loader.implementations() {
            found.candidates.push(Candidate {
                source: Source::Dispatcher(Arc::clone(&loader), implementation.index),
                name: implementation.name,
                api: Some(implementation.api),
                hardware,
                codecs: Some(implementation.codecs),
                path: implementation.path.map_or_else(
                    || "found by the dispatcher".to_owned(),
                    |path| path.display().to_string(),
                ),
                render_device: hardware
                    .then(|| selection.render_device.clone().or_else(intel_node))
                    .flatten(),
            });
        }
        if found.candidates.len() == before {
            missing.push(format!(
                "the dispatcher finds no {name} implementation of API {}.{} or later",
                API.0, API.1
            ));
        }
    }
}

fn direct(file: Option<&Path>) -> Result<Candidate, String> {
    /// A runtime that was opened stays open: there is one for each file.
    static OPEN: LazyLock<Mutex<HashMap<PathBuf, Arc<DirectRuntime>>>> =
        LazyLock::new(Mutex::default);
    let file = file.ok_or(
        "no bundled runtime: the plugin was not loaded from a file, and runtime-path is not set",
    )?;
    let key = file
        .canonicalize()
        .map_err(|error| format!("the bundled runtime {}: {error}", file.display()))?;
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let runtime = match open.get(&key) {
        Some(runtime) => Arc::clone(runtime),
        None => {
            let runtime = Arc::new(DirectRuntime::open(&key).map_err(|error| error.to_string())?);
            open.insert(key.clone(), Arc::clone(&runtime));
            runtime
        }
    };
    let stem = key
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    Ok(Candidate {
        source: Source::Direct(runtime),
        name: stem.strip_prefix("lib").unwrap_or(&stem).to_owned(),
        api: None,
        hardware: false,
        codecs: None,
        path: key.display().to_string(),
        render_device: None,
    })
}

fn bundled_file(path: &Path) -> PathBuf {
    if path.is_dir() {
        path.join("libvplsoft.so")
    } else {
        path.to_owned()
    }
}

/// The number in `/dev/dri/renderD128`.
fn node_number(path: &Path) -> Option<u32> {
    let name = path.canonicalize().ok()?;
    name.file_name()?
        .to_str()?
        .strip_prefix("renderD")?
        .parse()
        .ok()
}

/// The render nodes of this machine.
fn render_nodes() -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir("/dev/dri") else {
        return Vec::new();
    };
    let mut nodes: Vec<PathBuf> = entries
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("renderD"))
        .map(|entry| entry.path())
        .collect();
    nodes.sort();
    nodes
}

/// The first render node of Intel's.
fn intel_node() -> Option<PathBuf> {
    render_nodes().into_iter().find(|node| {
        let name = node.file_name().unwrap_or_default();
        let vendor = Path::new("/sys/class/drm").join(name).join("device/vendor");
        std::fs::read_to_string(vendor).is_ok_and(|vendor| vendor.trim() == "0x8086")
    })
}

fn render_nodes_text() -> String {
    let nodes: Vec<String> = render_nodes()
        .iter()
        .map(|node| {
            let opened = std::fs::File::options().read(true).write(true).open(node);
            match opened {
                Ok(_) => node.display().to_string(),
                Err(error) => format!("{} ({error})", node.display()),
            }
        })
        .collect();
    if nodes.is_empty() {
        "none".to_owned()
    } else {
        nodes.join(", ")
    }
}
