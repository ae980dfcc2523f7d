// SPDX-License-Identifier: MPL-2.0

//! A real browser: Debian's chromium, driven through its WebDriver.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use fantoccini::wd::Capabilities;
use fantoccini::{Client, ClientBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// After this long something hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// A process that ends with this, also where the browser does not start.
struct Driver(Child);

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// One window of a browser of its own.
pub struct Browser {
    runtime: Runtime,
    client: Client,
    _driver: Driver,
    /// Profile and home of the browser.
    _home: TempDir,
}

impl Browser {
    /// Starts driver and browser.
    pub fn start() -> Self {
        let home = TempDir::new().expect("a temporary folder");
        let driver = Command::new("chromedriver")
            .arg("--port=0")
            .env("HOME", home.path())
            .env_remove("LD_LIBRARY_PATH")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Debian's chromium-driver is installed (tests/run.sh does it)");
        let mut driver = Driver(driver);
        let mut said = BufReader::new(driver.0.stdout.take().expect("it is piped"));
        let port = loop {
            let mut line = String::new();
            let read = said.read_line(&mut line).expect("the driver talks");
            assert!(read > 0, "the driver ended without a port");
            if let Some((_, port)) = line.split_once("successfully on port ") {
                break port.trim().trim_end_matches('.').to_owned();
            }
        };
        // It must not block on a full pipe.
        thread::spawn(move || said.read_to_end(&mut Vec::new()));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let mut capabilities = Capabilities::new();
        let profile = format!("--user-data-dir={}", home.path().join("profile").display());
        capabilities.insert(
            "goog:chromeOptions".to_owned(),
            json!({ "args": [
                "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                "--window-size=1280,1040", profile,
            ] }),
        );
        let client = runtime
            .block_on(
                ClientBuilder::new(HttpConnector::new())
                    .capabilities(capabilities)
                    .connect(&format!("http://127.0.0.1:{port}")),
            )
            .expect("Debian's chromium starts");
        Self {
            runtime,
            client,
            _driver: driver,
            _home: home,
        }
    }

    /// Opens a page.
    pub fn open(&self, url: &str) {
        self.runtime
            .block_on(self.client.goto(url))
            .expect("the page opens");
    }

    /// What an expression is in the page.
    #[track_caller]
    pub fn eval(&self, expression: &str) -> Value {
        self.runtime
            .block_on(
                self.client
                    .execute(&format!("return ({expression});"), Vec::new()),
            )
            .unwrap_or_else(|error| panic!("{expression}: {error}"))
    }

    /// Waits until an expression is true in the page.
    #[track_caller]
    pub fn wait(&self, expression: &str) {
        let start = Instant::now();
        while self.eval(expression) != json!(true) {
            assert!(
                start.elapsed() < LIMIT,
                "{expression} does not come true; the page says: {}",
                self.eval("document.body.innerText")
            );
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// The text that is seen in an element.
    #[track_caller]
    pub fn text(&self, id: &str) -> String {
        let text = self.eval(&format!("document.getElementById({id:?}).innerText"));
        text.as_str().expect("text").to_owned()
    }

    /// Keeps a picture of the page in `screenshots/` of the build's folder, and says where.
    pub fn keep_picture(&self, name: &str) -> PathBuf {
        let picture = self
            .runtime
            .block_on(self.client.screenshot())
            .expect("a picture");
        assert!(picture.starts_with(b"\x89PNG"), "no PNG");
        let folder = e2e::profile_dir().join("screenshots");
        fs::create_dir_all(&folder).expect("the build's folder is writable");
        let path = folder.join(format!("{name}.png"));
        fs::write(&path, picture).expect("the build's folder is writable");
        println!("picture: {}", path.display());
        path
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser goes with its session, the driver after it.
        let _ = self.runtime.block_on(self.client.clone().close());
    }
}
