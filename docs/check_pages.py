"""Open the built site in a headless browser: `make docs-check`.

Every page is loaded at 1400 and at 390 pixels. Pages that are wider than the window, links without a target and
messages of the console are reported, and a screenshot of each page in ``SHOWN`` is kept in ``docs/_build/screenshots``.
"""

from __future__ import annotations

import argparse
import functools
import html
import http.server
import json
import re
import shutil
import subprocess
import sys
import threading
import urllib.parse
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path

WIDTHS = (1400, 390)
SHOWN = (
    "index",
    "auto_tutorials/1_few_labels",
    "howto/prepared_columns",
    "teacher",
    "mathematics",
    "auto_examples/index",
    "results",
)
# Loads each page into a frame of each width, and writes what is wider than it into the document.
HARNESS = """<!doctype html><meta charset="utf-8"><body><pre id="found"></pre><script>
const pages = PAGES, widths = WIDTHS, found = [];
const frame = document.body.appendChild(document.createElement("iframe"));
frame.style.height = "900px";
async function load(page) {
  await new Promise(done => { frame.onload = done; frame.src = "/" + page; });
  await new Promise(done => setTimeout(done, 50));
}
(async () => {
  for (const width of widths) {
    frame.style.width = width + "px";
    for (const page of pages) {
      await load(page);
      const root = frame.contentDocument.documentElement;
      if (root.scrollWidth > root.clientWidth + 1) found.push([page, width, root.scrollWidth]);
    }
  }
  document.getElementById("found").textContent = JSON.stringify(found) + " end";
})();
</script>"""
FRAME = '<!doctype html><body style="margin:0"><iframe src="/{page}" style="border:0" width={width} height=1600>'


class _Links(HTMLParser):
    """Ids and targets of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.targets: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and (name == "id" or (tag == "a" and name == "name")):
                self.ids.add(value)
            elif value and name in ("href", "src"):
                self.targets.add(value)


def broken_links(root: Path) -> list[str]:
    """Return links within the site that lead nowhere."""
    read: dict[Path, _Links] = {}
    for path in root.rglob("*.html"):
        read[path] = _Links()
        read[path].feed(path.read_text(encoding="utf-8"))
    broken = []
    for path, links in read.items():
        for target in sorted(links.targets):
            where = urllib.parse.urlsplit(target)
            if where.scheme or where.netloc or target in ("#", ""):
                continue
            other = (
                (path.parent / urllib.parse.unquote(where.path)).resolve()
                if where.path
                else path
            )
            anchor = urllib.parse.unquote(where.fragment)
            missing = not other.exists() or (
                anchor and other in read and anchor not in read[other].ids
            )
            if missing:
                broken.append(f"{path.relative_to(root)}: {target}")
    return broken


def browse(browser: str, address: str, *options: str) -> tuple[str, list[str]]:
    """Open an address; return the document and the messages of the console."""
    command = [
        browser,
        "--headless",
        "--disable-gpu",
        "--hide-scrollbars",
        "--no-first-run",
        "--enable-logging=stderr",
    ]
    run = subprocess.run(
        [*command, *options, address], capture_output=True, text=True, timeout=1800
    )
    # The inspector's own line has the text in quotes and the page after "source:".
    return run.stdout, re.findall(r"CONSOLE[^\]]*\] (.*)", run.stderr)


def main() -> int:
    """Report what is wrong; the exit code is 1 where anything is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("root", type=Path, nargs="?", default=Path("docs/_build/html"))
    parser.add_argument(
        "--browser", default=shutil.which("chromium") or shutil.which("google-chrome")
    )
    parser.add_argument(
        "--sandbox", action=argparse.BooleanOptionalAction, default=True
    )
    options = parser.parse_args()
    root = options.root.resolve()
    if not (root / "index.html").is_file():
        sys.exit(f"{options.root} has no index.html: run make docs first.")
    problems = [f"broken link: {one}" for one in broken_links(root)]
    if options.browser is None:
        sys.exit(
            "\n".join(
                [*problems, "No browser: install Debian's chromium, or pass --browser."]
            )
        )
    pages = sorted(
        path.relative_to(root).as_posix()
        for path in root.rglob("*.html")
        if "_static" not in path.parts
    )

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            where = urllib.parse.urlsplit(self.path)
            asked = urllib.parse.parse_qs(where.query)
            if where.path == "/_harness":
                text = HARNESS.replace("PAGES", json.dumps(pages), 1).replace(
                    "WIDTHS", json.dumps(WIDTHS), 1
                )
            elif where.path == "/_frame":
                text = FRAME.format(
                    page=html.escape(asked["page"][0]), width=int(asked["width"][0])
                )
            else:
                super().do_GET()
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(text.encode())

    server = http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=str(root))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    site = f"http://127.0.0.1:{server.server_port}"
    flags = [] if options.sandbox else ["--no-sandbox"]

    # Virtual time passes as fast as pages load; what is not measured by its end is reported.
    budget = f"--virtual-time-budget={200 * len(pages) * len(WIDTHS) + 10_000}"
    document, messages = browse(
        options.browser, f"{site}/_harness", "--dump-dom", budget, *flags
    )
    measured = re.search(r'<pre id="found">(.*?) end</pre>', document, re.DOTALL)
    if measured is None:
        problems.append("the browser did not finish: its pages were not measured")
    else:
        wide = json.loads(html.unescape(measured[1]))
        problems += [
            f"clipped at {width} pixels: {page} is {extent} wide"
            for page, width, extent in wide
        ]
    counted: defaultdict[str, int] = defaultdict(int)
    for message in messages:
        counted[message] += 1
    problems += [f"console ({n} times): {message}" for message, n in counted.items()]

    folder = root.parent / "screenshots"
    folder.mkdir(exist_ok=True)
    for page in SHOWN:
        for width in WIDTHS:
            path = folder / f"{page.replace('/', '-')}-{width}.png"
            address = f"{site}/_frame?page={page}.html&width={width}"
            size = f"--window-size={max(width, 500)},1600"
            browse(
                options.browser,
                address,
                f"--screenshot={path}",
                size,
                "--virtual-time-budget=4000",
                *flags,
            )
            if not path.is_file():
                problems.append(f"no screenshot of {page} at {width} pixels")
    server.shutdown()
    print(
        "\n".join(problems)
        or f"{len(pages)} pages at {WIDTHS} pixels: nothing to report."
    )
    print(f"screenshots: {folder}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
