//! A browser for tests of pages: headless Chromium, controlled by its debugging protocol over a pipe. One process, which ends when the value is
//! dropped.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// A slower answer is a failure of the test.
const LIMIT: Duration = Duration::from_secs(20);

/// How a page is presented.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Presentation {
    pub(crate) dark: bool,
    pub(crate) print: bool,
    /// Width in pixels; a phone has 390.
    pub(crate) width: u32,
    pub(crate) without_scripts: bool,
}

pub(crate) struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: String,
    last: u64,
    complaints: Vec<String>,
}

impl Browser {
    /// Starts the browser with its files in `dir`; `None` if it is not installed.
    pub(crate) fn start(dir: &Path) -> Option<Self> {
        let mut version = Command::new("chromium");
        version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        if !version.status().is_ok_and(|status| status.success()) {
            return None;
        }
        // The protocol uses descriptors 3 and 4, which a shell connects.
        let line = "exec chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-extensions --disable-dev-shm-usage \
                    --user-data-dir=\"$0\" --remote-debugging-pipe about:blank 3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null";
        let mut child = Command::new("sh")
            .args(["-c", line])
            .arg(dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, out) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (send, from) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(out).split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).unwrap_or(Value::Null);
                if send.send(message).is_err() {
                    return;
                }
            }
        });
        let mut browser = Self { child, to, from, session: String::new(), last: 0, complaints: Vec::new() };
        let target = browser.ask("Target.createTarget", &json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.ask("Target.attachToTarget", &attach);
        browser.session = attached["sessionId"].as_str().unwrap().into();
        for domain in ["Page", "Runtime", "Log"] {
            browser.ask(&format!("{domain}.enable"), &json!({}));
        }
        Some(browser)
    }

    /// Sends a command and waits for its answer.
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let mut message = json!({ "id": self.last, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.clone().into();
        }
        let mut bytes = serde_json::to_vec(&message).unwrap();
        bytes.push(0);
        self.to.write_all(&bytes).unwrap();
        let since = Instant::now();
        loop {
            let left = LIMIT.saturating_sub(since.elapsed());
            let answer = self.from.recv_timeout(left).unwrap_or_else(|e| panic!("{method}: {e}"));
            if answer["id"] == self.last {
                assert!(answer["error"].is_null(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.hear(&answer);
        }
    }

    /// Keeps console messages and errors of the page.
    fn hear(&mut self, event: &Value) {
        let printed = ["Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded"];
        if event["method"].as_str().is_some_and(|method| printed.contains(&method)) {
            self.complaints.push(event["params"].to_string());
        }
    }

    /// Opens a file, waits until it is loaded, and returns its console messages and errors.
    pub(crate) fn open(&mut self, page: &Path, presentation: Presentation) -> Vec<String> {
        let scheme = json!({ "name": "prefers-color-scheme", "value": if presentation.dark { "dark" } else { "light" } });
        let media = if presentation.print { "print" } else { "" };
        self.ask("Emulation.setEmulatedMedia", &json!({ "media": media, "features": [scheme] }));
        self.ask("Emulation.setScriptExecutionDisabled", &json!({ "value": presentation.without_scripts }));
        let width = if presentation.width == 0 { 1200 } else { presentation.width };
        let size = json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500 });
        self.ask("Emulation.setDeviceMetricsOverride", &size);
        self.complaints.clear();
        self.ask("Page.navigate", &json!({ "url": format!("file://{}", page.display()) }));
        let since = Instant::now();
        while self.value("document.readyState + location.protocol") != "completefile:" {
            assert!(since.elapsed() < LIMIT, "{} was not opened", page.display());
            std::thread::sleep(Duration::from_millis(10));
        }
        std::mem::take(&mut self.complaints)
    }

    /// Evaluates an expression in the page; a promise is awaited.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.ask("Runtime.evaluate", &params);
        assert!(answer["exceptionDetails"].is_null(), "{expression:.200}: {answer}");
        answer["result"]["value"].clone()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.to.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        let since = Instant::now();
        while self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            if since.elapsed() > Duration::from_secs(5) {
                let _ = self.child.kill();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
