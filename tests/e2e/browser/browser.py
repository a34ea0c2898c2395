# SPDX-License-Identifier: GPL-2.0-only
"""Controls a headless Chromium with the DevTools protocol over its pipe: JSON messages that end with NUL."""
import base64
import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time


class BrowserError(Exception):
    pass


def chromium():
    """Its path, or None."""
    return shutil.which("chromium")


class Browser:
    """One page. Everything that its console or its scripts complain of is in `complaints`."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="vcpuscope-browser.")
        to_browser, from_us = os.pipe()
        from_browser, to_us = os.pipe()
        self.read_fd, self.write_fd = from_browser, from_us
        self.buffer, self.next_id, self.answers, self.complaints = b"", 1, {}, []
        self.requests, self.loaded, self.session = [], False, None
        self.process = self._start(to_browser, to_us)
        os.close(to_browser)
        os.close(to_us)
        target = self._targets()
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def _start(self, to_browser, to_us):
        arguments = [
            chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-dev-shm-usage", "--disable-background-networking", "--disable-sync",
            "--disable-component-update", "--disable-extensions", "--hide-scrollbars",
            "--force-color-profile=srgb", "--user-data-dir=" + self.profile,
            "--remote-debugging-pipe", "about:blank"]

        def place():
            # It reads from 3 and writes to 4; ours may be these numbers, so by way of others.
            ends = [fcntl.fcntl(fd, fcntl.F_DUPFD, 10) for fd in (to_browser, to_us)]
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        # Killed at its end, it would leave its folder of sockets in /tmp.
        return subprocess.Popen(arguments, preexec_fn=place, pass_fds=(3, 4),
                                env={**os.environ, "TMPDIR": self.profile},
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                start_new_session=True)

    def _targets(self):
        for target in self.call("Target.getTargets")["targetInfos"]:
            if target["type"] == "page":
                return target["targetId"]
        raise BrowserError("the browser has no page")

    def _read(self, deadline):
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.read_fd], [], [], left)[0]:
                raise BrowserError("the browser does not answer")
            chunk = os.read(self.read_fd, 1 << 20)
            if not chunk:
                raise BrowserError("the browser has ended")
            self.buffer += chunk
        message, self.buffer = self.buffer.split(b"\0", 1)
        self._take(json.loads(message))

    def _take(self, message):
        method, params = message.get("method"), message.get("params", {})
        if "id" in message:
            self.answers[message["id"]] = message
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description",
                                                                    details["text"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.complaints.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded = True

    def call(self, method, timeout=180, **params):
        """A command's result. BrowserError if it fails or takes longer than `timeout` seconds."""
        number, self.next_id = self.next_id, self.next_id + 1
        message = {"id": number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.write_fd, data):]
        deadline = time.monotonic() + timeout
        while number not in self.answers:
            self._read(deadline)
        answer = self.answers.pop(number)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error']['message']}")
        return answer["result"]

    def open(self, path, fragment="", timeout=180, draws=True):
        """Loads a file from disk and waits until it is loaded and, if it `draws`, drawn."""
        self.loaded = False
        self.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri() + fragment)
        deadline = time.monotonic() + timeout
        while not self.loaded:
            self._read(deadline)
        if draws:
            self.settle()

    def settle(self):
        """Until everything that is waiting to be drawn is."""
        self.run("new Promise(done => requestAnimationFrame(() => "
                 "requestAnimationFrame(() => setTimeout(done, 30))))")

    def run(self, script):
        """The value of a JavaScript expression; a promise is awaited."""
        result = self.call("Runtime.evaluate", expression=script, awaitPromise=True,
                           returnByValue=True)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description", details["text"]))
        return result["result"].get("value")

    def size(self, width, height, dark=False, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=scale, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.settle()

    def mouse(self, kind, x, y, button="none", clicks=0, modifiers=0):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button,
                  clickCount=clicks, modifiers=modifiers)

    def hover(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.settle()

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, "left", 1)
        self.mouse("mouseReleased", x, y, "left", 1)
        self.settle()

    def drag(self, x1, y1, x2, y2):
        self.mouse("mouseMoved", x1, y1)
        self.mouse("mousePressed", x1, y1, "left", 1)
        self.mouse("mouseMoved", x2, y2, "left")
        self.mouse("mouseReleased", x2, y2, "left", 1)
        self.settle()

    def key(self, key, code=0, modifiers=0, text=None):
        """modifiers: 1 alt, 2 ctrl, 4 meta, 8 shift; code: the Windows virtual key code."""
        params = {"key": key, "modifiers": modifiers, "windowsVirtualKeyCode": code}
        if text:
            params["text"] = text
        self.call("Input.dispatchKeyEvent", type="keyDown", **params)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, modifiers=modifiers,
                  windowsVirtualKeyCode=code)
        self.settle()

    def box(self, selector):
        """x, y, width, height of the first element, scrolled into view."""
        return self.run(f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
                        "e.scrollIntoView({block: 'center'});"
                        "const b = e.getBoundingClientRect();"
                        "return [b.x, b.y, b.width, b.height]; })()")

    def screenshot(self, path, full=False):
        params = {"format": "png", "captureBeyondViewport": full}
        if full:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            params["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": size["height"],
                              "scale": 1}
        data = self.call("Page.captureScreenshot", **params)["data"]
        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(path).write_bytes(base64.b64decode(data))

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        os.close(self.read_fd)
        os.close(self.write_fd)
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
