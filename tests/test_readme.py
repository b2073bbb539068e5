"""What the README and the pages of the docs show runs, and the commands they print exist."""

from __future__ import annotations

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


def python_script(markdown: str) -> str:
    """Join the Python blocks into one script with the line numbers of the page."""
    lines: list[str] = []
    for block in fenced_blocks(markdown):
        if block.language == "python":
            lines += [""] * (block.line - 1 - len(lines)) + block.text.splitlines()
    return "\n".join(lines)


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


@pytest.mark.parametrize("page", pages_with_examples())
def test_examples_run(page, tmp_path):
    script = python_script((ROOT / page).read_text(encoding="utf-8"))
    assert script.strip(), f"{page} has no ```python block."
    example = tmp_path / Path(page).name
    example.write_text(script, encoding="utf-8")
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        [sys.executable, str(example)], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, f"The examples of {page} fail (lines are those of the page):\n{run.stderr}"


def test_blocks_of_the_readme_run_alone(tmp_path):
    blocks = [
        one for one in fenced_blocks((ROOT / "README.md").read_text(encoding="utf-8")) if one.language == "python"
    ]
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT)}
    for block in blocks:
        run = subprocess.run(
            [sys.executable, "-c", block.text],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert run.returncode == 0, f"The block of README.md at line {block.line} fails alone:\n{run.stderr}"


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


def test_examples_share_a_namespace_and_keep_their_lines():
    script = python_script(SAMPLE)
    assert script.splitlines()[3] == "x = 2"
    with pytest.raises(ZeroDivisionError) as failure:
        exec(compile(script, "sample", "exec"), {})
    assert failure.traceback[-1].lineno + 1 == 1 + SAMPLE.splitlines().index("print(x / 0)")


def test_unknown_commands_are_found():
    assert unknown_commands(SAMPLE) == ["[nonsense]", "make coffee"]
    assert unknown_commands("```console\n$ make test\n$ python -m pip install -e '.[dev]'\n```\n") == []
