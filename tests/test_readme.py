"""What the README and the pages of the docs show runs, and the commands they print exist."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHELL = {"bash", "console", "sh", "shell"}


class Block(NamedTuple):
    language: str
    line: int
    text: str


def fenced_blocks(markdown: str) -> list[Block]:
    """Return the fenced blocks of a page, each with the line on which its text starts."""
    return [
        Block(match["language"], markdown.count("\n", 0, match.start("text")) + 1, match["text"])
        for match in re.finditer(r"^```(?P<language>\w+)[^\n]*\n(?P<text>.*?)^```", markdown, re.MULTILINE | re.DOTALL)
    ]


# Runs blocks one after the other, each with no names and no files but its own; their lines are those of the page.
RUN_ALONE = """
import json, os, sys, tempfile

page = sys.argv[1]
for line, text in json.load(sys.stdin):
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        exec(compile("\\n" * (line - 1) + text, page, "exec"), {"__name__": "__main__"})
        os.chdir(os.path.dirname(folder))
"""


def unknown_commands(markdown: str) -> list[str]:
    """Return what the shell blocks ask for and the project does not have: make targets and extras."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {name for rule in re.findall(r"^([\w .-]+):(?!=)", makefile, re.MULTILINE) for name in rule.split()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    unknown = []
    for block in fenced_blocks(markdown):
        if block.language not in SHELL:
            continue
        for command in re.split(r"&&|\|\||[;\n]", block.text.replace("\\\n", " ")):
            words = shlex.split(command.strip().removeprefix("$ "), comments=True)
            if words[:1] == ["make"]:
                asked = [word for word in words[1:] if "=" not in word and not word.startswith("-")]
                unknown += [f"make {target}" for target in asked if target not in targets]
            if "pip" in words and "install" in words:
                for word in words:
                    found = re.match(r"(?:grbb[-_]ext|\.)\[(.*)\]", word)
                    extras = [extra.strip() for extra in found[1].split(",")] if found else []
                    unknown += [f"[{extra}]" for extra in extras if extra not in project["optional-dependencies"]]
    return unknown


def pages_with_examples() -> list[str]:
    folders = ("docs", "docs/howto")  # the build of the site runs tutorials and gallery
    pages = [path.relative_to(ROOT).as_posix() for folder in folders for path in sorted(ROOT.glob(f"{folder}/*.md"))]
    return ["README.md", *(page for page in pages if "```python" in (ROOT / page).read_text(encoding="utf-8"))]


def run_alone(markdown: str, page: str) -> subprocess.CompletedProcess[str]:
    """Run the Python blocks of a page."""
    blocks = [(block.line, block.text) for block in fenced_blocks(markdown) if block.language == "python"]
    return subprocess.run(
        [sys.executable, "-c", RUN_ALONE, page],
        input=json.dumps(blocks),
        env={**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("page", pages_with_examples())
def test_every_block_runs_alone(page):
    run = run_alone((ROOT / page).read_text(encoding="utf-8"), page)
    assert run.returncode == 0, f"A block of {page} fails alone (lines are those of the page):\n{run.stderr}"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_links_and_pictures_exist(page):
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / page).read_text(encoding="utf-8"))
    assert targets
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_code_of_the_docs_fits_its_column():
    """Longer lines are clipped on a phone and in the theme's column."""
    long = [
        f"{page}:{block.line + i}"
        for page in pages_with_examples()
        for block in fenced_blocks((ROOT / page).read_text(encoding="utf-8"))
        for i, line in enumerate(block.text.splitlines())
        if len(line) > 88
    ]
    assert long == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/installation.md"])
def test_commands_exist(page):
    markdown = (ROOT / page).read_text(encoding="utf-8")
    assert any(block.language in SHELL for block in fenced_blocks(markdown)), f"{page} has no ```bash block."
    assert unknown_commands(markdown) == []


SAMPLE = """# Sample

```python
x = 2
```

```bash
pip install 'grbb_ext[lightgbm,nonsense]'   # make tea is a comment
cd grbb_ext && make demo WORKERS=1 && make coffee
```

```python
print(x / 0)
```
"""


def test_blocks_share_no_names_and_keep_their_lines():
    run = run_alone(SAMPLE, "sample")
    assert f'File "sample", line {1 + SAMPLE.splitlines().index("print(x / 0)")}' in run.stderr
    assert run.stderr.endswith("NameError: name 'x' is not defined\n")


def test_unknown_commands_are_found():
    assert unknown_commands(SAMPLE) == ["[nonsense]", "make coffee"]
    assert unknown_commands("```console\n$ make test\n$ python -m pip install -e '.[dev]'\n```\n") == []
