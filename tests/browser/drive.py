#!/usr/bin/env python3
"""Looks at HTML reports in a real browser, headless Chromium: clicks through everything, by mouse and by keyboard.

    drive.py [--screenshots DIRECTORY] [--expect TEXT]... [--within SECONDS] [--megabytes SIZE] REPORT...

Every report is opened 1280 and 390 pixels wide, light and dark. What must hold: nothing in the console, no request but
for the report itself, nothing wider than the window, every control does what it says. Prints what it saw; the exit
code is 1 where something did not hold.

It speaks the WebDriver protocol over HTTP to chromedriver, with nothing but Python's standard library.
"""

import argparse
import base64
import concurrent.futures
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
SHORT = 6000  # pixels of a page on a telephone, before anything is opened
KEYS_AT_ONCE = 40
BROWSERS = 2  # which take turns at the windows
KEYS = {"Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c", "Left": "\ue012", "Up": "\ue013", "Right": "\ue014",
        "Down": "\ue015"}


class Browser:
    """A session with a browser of its own."""

    def __init__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.profile = tempfile.TemporaryDirectory(prefix="inodyne-browser-")
        self.driver = subprocess.Popen(["chromedriver", f"--port={port}", "--silent"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.base = f"http://127.0.0.1:{port}"
        self.session = None
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--disable-background-networking", f"--user-data-dir={self.profile.name}"]
        wanted = {"browserName": "chrome", "goog:chromeOptions": {"args": arguments},
                  "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        for _ in range(600):
            try:
                made = self.call("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
                break
            except OSError:
                if self.driver.poll() is not None:
                    raise
                time.sleep(0.05)
        self.session = f"/session/{made['sessionId']}"

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"].splitlines()[0]) from error

    def post(self, path, **body):
        return self.call("POST", self.session + path, body)

    def cdp(self, command, **parameters):
        return self.post("/goog/cdp/execute", cmd=command, params=parameters)

    def run(self, script, *arguments):
        return self.post("/execute/sync", script=script, args=list(arguments))

    def all(self, selector):
        return [one[ELEMENT] for one in self.post("/elements", using="css selector", value=selector)]

    def click(self, element):
        self.run("arguments[0].scrollIntoView({block: 'center', inline: 'center'})", {ELEMENT: element})
        self.post(f"/element/{element}/click")

    def press(self, *keys):
        """Keys, by name or as they are."""
        actions = []
        for key in keys:
            key = KEYS.get(key, key)
            actions += [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        self.post("/actions", actions=[{"type": "key", "id": "keyboard", "actions": actions}])

    def log(self, kind):
        return self.post("/se/log", type=kind)

    def screenshot(self, path, full=True):
        parameters = {"format": "png", "captureBeyondViewport": full}
        if full:
            size = self.cdp("Page.getLayoutMetrics")["cssContentSize"]
            parameters["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": min(size["height"], 12000), "scale": 1}
        path.write_bytes(base64.b64decode(self.cdp("Page.captureScreenshot", **parameters)["data"]))

    def close(self):
        try:
            if self.session:
                self.call("DELETE", self.session)
        finally:
            self.driver.terminate()
            self.driver.wait()
            self.profile.cleanup()


class Checks:
    """What was looked at, and what did not hold."""

    def __init__(self):
        self.failures = []
        self.where = ""
        self.done = 0

    def hold(self, what, condition, seen=""):
        self.done += 1
        if not condition:
            self.failures.append(f"{self.where}: {what}{f': {seen}' if seen != '' else ''}")


def look(browser, checks, report, width, scheme, screenshots):
    """One report in one window; how many seconds it took to open."""
    checks.where = f"{report.name} {width} {scheme}"
    browser.cdp("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
    browser.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.log("browser"), browser.log("performance")
    begun = time.monotonic()
    browser.post("/url", url=report.resolve().as_uri())
    loaded = browser.run("const t = performance.getEntriesByType('navigation')[0]; return t.loadEventEnd")
    print(f"{checks.where}: opened in {loaded / 1000:.2f} s ({time.monotonic() - begun:.2f} s with everything around), "
          f"{report.stat().st_size / 1e6:.2f} MB")
    if screenshots:
        browser.screenshot(screenshots / f"{report.stem}-{width}-{scheme}.png")
    back = browser.run("return getComputedStyle(document.body).backgroundColor")
    checks.hold("the colours follow the system", (back == "rgb(255, 255, 255)") == (scheme == "light"), back)
    fits(browser, checks, "at first")
    folds(browser, checks, width)
    themes(browser, checks)
    fold_out(browser, checks)
    uncropped(browser, checks, width)
    tables(browser, checks)
    flames(browser, checks)
    timelines(browser, checks)
    keyboard(browser, checks)
    fits(browser, checks, "after everything")
    paper(browser, checks, width)
    checks.hold("no image or foreign element", browser.run(
        "return document.querySelectorAll('img, iframe, object, embed, video, audio, script[src]').length") == 0)
    quiet(browser, checks, report)
    if screenshots:
        browser.screenshot(screenshots / f"{report.stem}-{width}-{scheme}-after.png")
    return loaded / 1000


def fits(browser, checks, when):
    wide = browser.run("return [document.documentElement.scrollWidth, innerWidth]")
    checks.hold(f"nothing is wider than the window {when}", wide[0] <= wide[1], wide)


def paper(browser, checks, width):
    """Printed: light whatever the screen shows, everything open but for cases of a study and small rows, no wider than a sheet."""
    (toggle,) = browser.all("#theme")
    dark = lambda: browser.run("return getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    if not dark():
        browser.click(toggle)
    closed = "return document.querySelectorAll('details:not([open])').length"
    browser.run("const one = document.querySelector('details'); if (one) one.open = false")
    before = browser.run(closed)
    browser.cdp("Emulation.setEmulatedMedia", media="print")
    # A4 with margins of a centimetre.
    browser.cdp("Emulation.setDeviceMetricsOverride", width=718, height=1047, deviceScaleFactor=1, mobile=False)
    checks.hold("paper is white, also without scripts", not dark())
    browser.run("dispatchEvent(new Event('beforeprint'))")
    checks.hold("paper shows what is folded in",
                browser.run("return document.querySelectorAll('details:not([open], .of-case, .minor)').length") == 0)
    cut = browser.run("""
        const right = document.documentElement.clientWidth;
        const all = [...document.querySelectorAll('main *')].filter(one => one.getBoundingClientRect().right > right + 1);
        return all.slice(0, 3).map(one => one.outerHTML.slice(0, 120));
    """)
    checks.hold("nothing is cut at the edge of the paper", not cut, cut)
    browser.run("dispatchEvent(new Event('afterprint'))")
    checks.hold("what was folded is folded again", browser.run(closed) == before)
    browser.run("const one = document.querySelector('details'); if (one) one.open = true")
    browser.cdp("Emulation.setEmulatedMedia", media="")
    browser.cdp("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
    checks.hold("the screen is as it was", dark())


def uncropped(browser, checks, width):
    """Where there is room, no table has to be scrolled."""
    if width < 1000:
        return
    cropped = browser.run("""
        return [...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth)
            .map(one => one.firstElementChild.className);
    """)
    checks.hold("no table is cropped", cropped == [], cropped)


def folds(browser, checks, width):
    """On a telephone only the first section is open, which keeps the page short; elsewhere all are."""
    closed = browser.run("return [...document.querySelectorAll('details.fold')].map(one => !one.open)")
    if width >= 600:
        checks.hold("every section is open", not any(closed), closed)
        return
    checks.hold("the first section is open, and those after it are not", not closed[0] and all(closed[2:]), closed)
    tall = browser.run("return document.documentElement.scrollHeight")
    checks.hold("the page is short", tall < SHORT, tall)


def themes(browser, checks):
    color = "return getComputedStyle(document.body).backgroundColor"
    before = browser.run(color)
    (toggle,) = browser.all("#theme")
    browser.click(toggle)
    checks.hold("the theme changes", browser.run(color) != before)
    browser.click(toggle)
    checks.hold("the theme changes back", browser.run(color) == before)


def fold_out(browser, checks):
    is_open = "return arguments[0].parentElement.open"
    for summary in browser.all("summary"):
        if not browser.run(is_open, {ELEMENT: summary}):
            browser.click(summary)
    for summary in browser.all("details.fold > summary")[:1]:
        browser.click(summary)
        checks.hold("a section folds in", not browser.run(is_open, {ELEMENT: summary}))
        browser.click(summary)
    checks.hold("all details open", browser.run("return document.querySelectorAll('details:not([open])').length") == 0)
    # A browser tells a page that something was opened after it is open, and only then is it drawn.
    undrawn = lambda: browser.run("return document.querySelectorAll('.widget .noscript').length")
    until = time.monotonic() + 60
    while undrawn() and time.monotonic() < until:
        time.sleep(0.02)
    checks.hold("what was opened is drawn", undrawn() == 0, undrawn())


def tables(browser, checks):
    """A click sorts, another one the other way round: the first column of each table with the mouse, then every column."""
    column = """
        const sorted = button => {
            const heading = button.closest('th');
            const rows = [...heading.closest('table').tBodies[0].rows];
            return [heading.getAttribute('aria-sort'), rows.map(row => {
                const cell = row.cells[heading.cellIndex];
                return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
            })];
        };
    """
    for button in browser.all("table.sorts th:first-child button"):
        # Which way round a column is sorted first is the page's choice.
        orders = []
        for _ in range(2):
            browser.click(button)
            orders.append(is_sorted(checks, *browser.run(f"{column} return sorted(arguments[0])", {ELEMENT: button})))
        checks.hold("the mouse sorts both ways", sorted(orders) == ["ascending", "descending"], orders)
    # A table at a time, as a script must end within 30 seconds.
    for table in browser.all("table.sorts"):
        seen = browser.run(column + """
            return [...arguments[0].querySelectorAll('th button')].map(button => {
                button.scrollIntoView({block: 'center', inline: 'center'});
                const box = button.getBoundingClientRect();
                const hit = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
                return [button.contains(hit), [0, 1].map(() => {
                    button.click();
                    return sorted(button);
                })];
            });
        """, {ELEMENT: table})
        for is_reached, both in seen:
            checks.hold("the mouse reaches the heading of every column", is_reached, both[0])
            orders = [is_sorted(checks, order, values) for order, values in both]
            checks.hold("every column is sorted both ways", sorted(orders) == ["ascending", "descending"], orders)


def is_sorted(checks, order, values):
    """Whether a column is in the order that it says; numbers only, since names have an order of their own."""
    if all(isinstance(value, (int, float)) for value in values):
        checks.hold(f"a column is {order}", values == sorted(values, reverse=order == "descending"), values)
    return order


def flames(browser, checks):
    """Zooming shows less, Escape all again, and the widths of children never exceed their parent's."""
    for widget in browser.all(".widget.flame"):
        here = {ELEMENT: widget}
        frames = lambda: browser.run("return arguments[0].querySelectorAll('.frames > div').length", here)
        status = lambda: browser.run("return arguments[0].querySelector('.status').textContent", here)
        all_frames = frames()
        checks.hold("the flame graph has frames", all_frames > 1, all_frames)
        excess = browser.run("""
            const rows = new Map();
            for (const frame of arguments[0].querySelectorAll('.frames > div')) {
                const sum = rows.get(frame.style.top) || 0;
                rows.set(frame.style.top, sum + parseFloat(frame.style.width));
            }
            return Math.max(...rows.values());
        """, here)
        checks.hold("no row is wider than the whole", excess <= 100.1, excess)
        whole = status()
        leaf = browser.run("""
            const wide = [...arguments[0].querySelectorAll('.frames > div')].filter(one => one.offsetWidth > 20);
            return wide.sort((a, b) => b.offsetTop - a.offsetTop)[0];
        """, here)[ELEMENT]
        checks.hold("the flame graph has no blank depth", browser.run("""
            const frames = arguments[0].querySelector('.frames');
            const rows = new Map();
            for (const one of frames.children) rows.set(one.offsetTop, (rows.get(one.offsetTop) || 0) + one.offsetWidth);
            const lowest = Math.max(...rows.keys());
            const isShallow = rows.size <= 2;
            return frames.offsetHeight <= lowest + 18 && (isShallow || rows.get(lowest) >= 0.02 * frames.offsetWidth);
        """, here))
        browser.click(leaf)
        checks.hold("a click zooms", browser.run(
            "return !arguments[0].querySelector('.controls button').disabled", here), whole)
        (reset,) = [one for one in browser.all(".widget.flame .controls button")
                    if browser.run("return arguments[0].contains(arguments[1])", here, {ELEMENT: one})]
        browser.click(reset)
        # Before, the pointer may have rested on some frame, which was described then.
        is_whole = ", 100% of " in status()
        checks.hold("the whole is back", frames() == all_frames and is_whole, (whole, status(), all_frames, frames()))
        search = browser.run("return arguments[0].querySelector('input')", here)[ELEMENT]
        browser.click(search)
        browser.press(*"sys")
        checks.hold("the search says what it found", "frames match" in status(), status())
        browser.post(f"/element/{search}/clear")
        browser.run("arguments[0].dispatchEvent(new Event('input'))", {ELEMENT: search})
        for option in browser.run("return [...arguments[0].querySelectorAll('option')]", here):
            browser.post(f"/element/{option[ELEMENT]}/click")
            checks.hold("another tree has frames", frames() > 1)


def timelines(browser, checks):
    for widget in browser.all(".widget.timeline"):
        here = {ELEMENT: widget}
        status = lambda: browser.run("return arguments[0].querySelector('.status').textContent", here)
        painted = browser.run("""
            const canvas = arguments[0].querySelector('canvas');
            const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
            const seen = new Set();
            for (let at = 0; at < pixels.length; at += 4) if (pixels[at + 3] === 255) seen.add(pixels.slice(at, at + 3).join());
            return seen.size;
        """, here)
        checks.hold("the timeline is painted in several colours", painted > 2, painted)
        buttons = [one[ELEMENT] for one in browser.run("return [...arguments[0].querySelectorAll('button')]", here)]
        closer, farther, earlier, later = buttons[:4]
        seen = [status()]
        for button in (closer, closer, earlier, later, farther):
            browser.click(button)
            seen.append(status())
        moved = all(before != after for before, after in zip(seen, seen[1:]))
        checks.hold("every control of the timeline moves it", moved, seen)
        browser.click(buttons[4])
        checks.hold("the timeline shows all again", re.fullmatch(r"0[.0]* \w+ to (.+) of \1", status()), status())
        canvas = browser.run("return arguments[0].querySelector('canvas')", here)[ELEMENT]
        browser.run("arguments[0].scrollIntoView({block: 'center'})", {ELEMENT: canvas})
        browser.post("/actions", actions=[{"type": "pointer", "id": "mouse", "actions": [
            {"type": "pointerMove", "duration": 0, "origin": {ELEMENT: canvas}, "x": 0, "y": 0}]}])
        checks.hold("the timeline says what is under the pointer", re.search(r" at | to |^[\d.]+ \w+$", status()), status())
        shown = browser.run("""
            const tip = arguments[0].querySelector('.tip');
            return [tip.hidden, tip.textContent, tip.getBoundingClientRect().right <= innerWidth];
        """, here)
        checks.hold("and says it beside the pointer", shown == [False, status(), True], shown)


def keyboard(browser, checks):
    """The whole page with keys alone: every control can be reached, and the widgets obey."""
    browser.run("document.activeElement.blur(); getSelection().removeAllRanges(); scrollTo(0, 0)")
    wanted = browser.run("""
        const all = [...document.querySelectorAll('a[href], button:not(:disabled), select, input, summary, [tabindex="0"]')];
        all.forEach((one, index) => one.setAttribute('data-reach', index));
        return all.filter(one => one.offsetParent !== null).map(one => Number(one.dataset.reach));
    """)
    # The page itself notes what takes the focus and whether that is seen, so that many keys can be pressed at once.
    browser.run("""
        window.reached = [];
        window.noteReached = ({target: one}) =>
            window.reached.push([one.dataset.reach, getComputedStyle(one).outlineStyle !== 'none']);
        addEventListener('focusin', window.noteReached, true);
    """)
    reached, invisible, pressed, idle = set(), [], 0, False
    # What scrolls takes the focus too; the end of the page gives it back to the beginning.
    while not idle and pressed < 2 * len(wanted) + 5 * KEYS_AT_ONCE:
        browser.press(*["Tab"] * KEYS_AT_ONCE)
        pressed += KEYS_AT_ONCE
        idle = True
        for at, outlined in browser.run("return window.reached.splice(0)"):
            if at is None or int(at) in reached:
                continue
            idle = False
            reached.add(int(at))
            if not outlined:
                invisible.append(int(at))
    browser.run("removeEventListener('focusin', window.noteReached, true)")
    # On a busy machine a click before may have been the last input that the page knew of when the first key came.
    invisible = browser.run("""
        return arguments[0].filter(at => {
            const one = document.querySelector(`[data-reach="${at}"]`);
            one.focus();
            return getComputedStyle(one).outlineStyle === 'none';
        });
    """, invisible)
    missing = sorted(set(wanted) - reached)
    names = browser.run("return arguments[0].map(n => document.querySelector(`[data-reach=\"${n}\"]`).outerHTML.slice(0, 80))",
                        missing)
    checks.hold("every control is reached by Tab", not missing, names)
    checks.hold("what has the focus is seen", not invisible, invisible)
    # The pointer would speak in between.
    browser.post("/actions", actions=[{"type": "pointer", "id": "mouse", "actions": [
        {"type": "pointerMove", "duration": 0, "x": 0, "y": 0}]}])
    for selector in (".frames", ".timeline canvas"):
        for element in browser.all(selector):
            status = lambda: browser.run(
                "return arguments[0].closest('.widget').querySelector('.status').textContent", {ELEMENT: element})
            browser.run("arguments[0].focus()", {ELEMENT: element})
            seen = []
            for key in ("Down", "Down", "Enter", "Escape") if selector == ".frames" else ("+", "+", "Right", "Escape"):
                browser.press(key)
                seen.append(status())
            checks.hold(f"{selector} obeys the keys", len(set(seen)) >= 3, seen)


def quiet(browser, checks, report):
    """Nothing in the console, nothing asked of a network."""
    entries = browser.log("browser")
    checks.hold("the console is empty", not entries, entries)
    own = report.resolve().as_uri()
    asked = []
    for entry in browser.log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            url = message["params"]["request"]["url"].split("#")[0]
            if url != own and not url.startswith("data:"):
                asked.append(url)
    checks.hold("no request", not asked, asked)


def in_one_browser(arguments, windows):
    """All reports in some of the windows, one after the other: the checks, and the least seconds in which each opened."""
    checks, opened = Checks(), {}
    if not windows:
        return checks, opened
    browser = Browser()
    try:
        for report in arguments.reports:
            for window in windows:
                width, scheme = window.split("-")
                seconds = look(browser, checks, report, int(width), scheme, arguments.screenshots)
                opened[report] = min(seconds, opened.get(report, seconds))
            closed = browser.run("""
                const closed = [...document.querySelectorAll('details:not([open])')];
                return closed.map(one => one.querySelector('summary').textContent.slice(0, 80));
            """)
            checks.hold("what was opened is open still", closed == [], closed)
            shown = browser.run("return document.body.innerText")
            there = browser.run("return document.body.textContent")
            for text in arguments.expect:
                checks.hold(f"shows {text!r}", text in shown, "it is hidden" if text in there else "it is not there")
    finally:
        browser.close()
    return checks, opened


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--screenshots", type=pathlib.Path)
    parser.add_argument("--expect", action="append", default=[], help="text that every report must show")
    parser.add_argument("--within", type=float, help="seconds in which a report opens, at the best of all windows")
    parser.add_argument("--megabytes", type=float, help="how large a report may be")
    parser.add_argument("--windows", default="1280-light,1280-dark,390-light,390-dark")
    parser.add_argument("reports", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.screenshots:
        arguments.screenshots.mkdir(parents=True, exist_ok=True)
    windows = arguments.windows.split(",")
    checks = Checks()
    with concurrent.futures.ThreadPoolExecutor(BROWSERS) as browsers:
        parts = browsers.map(lambda part: in_one_browser(arguments, windows[part::BROWSERS]), range(BROWSERS))
        opened = []
        for part, seconds in parts:
            checks.failures += part.failures
            checks.done += part.done
            opened.append(seconds)
    for report in arguments.reports:
        checks.where = report.name
        # The machine may be busy with other things at one of the windows.
        seconds = [part[report] for part in opened if part]
        if arguments.within:
            checks.hold(f"opens within {arguments.within} s", min(seconds) <= arguments.within, seconds)
        size = report.stat().st_size / 1e6
        if arguments.megabytes:
            checks.hold(f"is no larger than {arguments.megabytes} MB", size <= arguments.megabytes, size)
    for failure in checks.failures:
        print(f"FAILED {failure}")
    print(f"{checks.done} checks, {len(checks.failures)} failed")
    return 1 if checks.failures else 0


if __name__ == "__main__":
    sys.exit(main())
