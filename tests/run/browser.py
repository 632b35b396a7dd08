"""A page in headless Chromium, driven over its debugging pipe.

usage: browser.py PAGE SCRIPT     opens the page at 1280 and at 400 pixels, light and dark, and runs SCRIPT in each of them
                                  (an async function's body; what it returns is a list of [good, what])
Each line of standard output is "ok" or "FAILED: what".  Exceptions, messages of errors and requests for anything but the
page itself are failures, too.  What is taken: SHOTS=folder writes a screenshot of each."""
import base64
import json
import os
import select
import subprocess
import sys
import tempfile
import time

LIMIT = 60


class Chromium:
    def __init__(self, profile):
        read_end, self.write_end = os.pipe()
        self.read_end, write_end = os.pipe()

        def pipes():
            a, b = os.dup(read_end), os.dup(write_end)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--disable-background-networking", "--disable-component-update", "--remote-debugging-pipe",
             f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=pipes, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(read_end)
        os.close(write_end)
        self.number, self.rest, self.events = 0, b"", []

    def message(self, until):
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.read_end], [], [], max(0, until - time.time()))
            got = os.read(self.read_end, 1 << 20) if ready else b""
            if not got:
                raise SystemExit("FAILED: chromium does not answer")
            self.rest += got
        one, self.rest = self.rest.split(b"\0", 1)
        return json.loads(one)

    def call(self, method, session=None, **parameters):
        self.number += 1
        call = {"id": self.number, "method": method, "params": parameters}
        if session:
            call["sessionId"] = session
        os.write(self.write_end, json.dumps(call).encode() + b"\0")
        until = time.time() + LIMIT
        while True:
            m = self.message(until)
            if m.get("id") == self.number:
                if "error" in m:
                    raise SystemExit(f"FAILED: {method}: {m['error']}")
                return m["result"]
            self.events.append(m)

    def end(self):
        self.process.kill()
        self.process.wait()


def check(good, what):
    print("ok" if good else f"FAILED: {what}")


def look(chromium, page, script, width, dark):
    name = f"{width} pixels, {'dark' if dark else 'light'}"
    target = chromium.call("Target.createTarget", url="about:blank")["targetId"]
    s = chromium.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
    chromium.events.clear()
    for domain in ("Page", "Runtime", "Log", "Network"):
        chromium.call(f"{domain}.enable", s)
    chromium.call("Emulation.setDeviceMetricsOverride", s, width=width, height=900, deviceScaleFactor=1, mobile=False)
    chromium.call("Emulation.setEmulatedMedia", s, features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
    went = chromium.call("Page.navigate", s, url="file://" + os.path.abspath(page).replace("%", "%25").replace("#", "%23").replace("?", "%3f"))
    if "errorText" in went:
        check(False, f"{name}: {went['errorText']}")
        return
    until = time.time() + LIMIT
    ready = False
    while not ready and time.time() < until:
        time.sleep(0.05)
        ready = chromium.call("Runtime.evaluate", s, expression="document.readyState === 'complete' && location.protocol === 'file:'")["result"].get("value")
    run = f"(async () => {{ const width = {width}, dark = {str(dark).lower()}; {script} }})()"
    got = chromium.call("Runtime.evaluate", s, expression=run, awaitPromise=True, returnByValue=True)
    if "exceptionDetails" in got:
        check(False, f"{name}: {got['exceptionDetails'].get('exception', {}).get('description')}")
    else:
        for good, what in got["result"]["value"]:
            check(good, f"{name}: {what}")
    events = [m for m in chromium.events if m.get("sessionId") == s]
    wrong = [m["params"] for m in events if m["method"] == "Runtime.exceptionThrown" or
             (m["method"] == "Log.entryAdded" and m["params"]["entry"]["level"] == "error") or
             (m["method"] == "Runtime.consoleAPICalled" and m["params"]["type"] in ("error", "assert"))]
    check(not wrong, f"{name}: errors: {json.dumps(wrong)[:400]}")
    asked = [m["params"]["request"]["url"] for m in events if m["method"] == "Network.requestWillBeSent"]
    check([u for u in asked if not u.startswith(("data:", "file:"))] == [] and sum(u.startswith("file:") for u in asked) == 1,
          f"{name}: asks for more than itself: {asked}")
    if os.environ.get("SHOTS"):
        shot = chromium.call("Page.captureScreenshot", s)
        with open(os.path.join(os.environ["SHOTS"], f"{width}{'-dark' if dark else ''}.png"), "wb") as f:
            f.write(base64.b64decode(shot["data"]))
    chromium.call("Target.closeTarget", targetId=target)


def main():
    page, script = sys.argv[1:3]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        chromium = Chromium(profile)
        try:
            for width in (1280, 400):
                for dark in (False, True):
                    look(chromium, page, script, width, dark)
        finally:
            chromium.end()


if __name__ == "__main__":
    main()
