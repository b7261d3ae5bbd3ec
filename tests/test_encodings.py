"""Text has one encoding, whatever the locale: every file and pipe that is opened as text names it.

Bytes have none: what is read and written as bytes may say nothing.
"""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("jaxrl", "envs", "train", "bench")
MODE = re.compile(r"[rwxa]b?\+?b?t?")
PIPES = {"run", "Popen", "check_output"}
FOREIGN_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def lines_by_locale(source: str) -> list[int]:
    """The lines whose calls take the encoding of the locale."""
    calls = (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call))
    return sorted(call.lineno for call in calls if takes_the_locale(call))


def takes_the_locale(call: ast.Call) -> bool:
    """Whether a call opens text, reads or writes it, or talks to a process in it, by the locale."""
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    if "encoding" in keywords:
        return False
    match call.func:
        case ast.Attribute(attr="read_text"):
            return not call.args
        case ast.Attribute(attr="write_text"):
            return len(call.args) < 2
        case ast.Attribute(value=ast.Name(id="subprocess"), attr=name) if name in PIPES:
            return bool(keywords.keys() & {"text", "universal_newlines", "errors"})
        case ast.Name(id="open") | ast.Attribute(value=ast.Name(id="io"), attr="open"):
            modes = [*call.args[1:2], *filter(None, [keywords.get("mode")])]
            return all(is_text(mode) for mode in modes)
        case ast.Attribute(attr="open"):
            modes = [*call.args[:1], *filter(None, [keywords.get("mode")])]
            return (not modes and not call.keywords) or any(
                is_mode(x) and is_text(x) for x in modes
            )
    return False


def is_mode(argument: ast.expr) -> bool:
    """Whether an argument is a mode of `Path.open`, not a name, as for other things that open."""
    value = argument.value if isinstance(argument, ast.Constant) else None
    return isinstance(value, str) and MODE.fullmatch(value) is not None


def is_text(mode: ast.expr | None) -> bool:
    return not (isinstance(mode, ast.Constant) and "b" in str(mode.value))


def sources() -> Iterator[Path]:
    for folder in FOLDERS:
        yield from sorted((ROOT / folder).rglob("*.py"))


def test_every_text_names_its_encoding():
    lines = {path: lines_by_locale(path.read_bytes().decode()) for path in sources()}
    assert {str(path): numbers for path, numbers in lines.items() if numbers} == {}


@pytest.mark.parametrize(
    "call",
    [
        "path.read_text()",
        "path.read_text(errors='replace')",
        "path.write_text(text)",
        "path.open()",
        "path.open('w')",
        "path.open(mode='r', newline='')",
        "open(name)",
        "open(name, 'a')",
        "subprocess.run(command, text=True)",
    ],
)
def test_the_encoding_of_the_locale_is_seen(call: str):
    assert lines_by_locale(call) == [1]


@pytest.mark.parametrize(
    "call",
    [
        "path.read_text('utf-8')",
        "path.read_text(encoding='utf-8')",
        "path.write_text(text, 'utf-8')",
        "path.open('rb')",
        "path.open('w', encoding='utf-8')",
        "path.open(mode='a+b')",
        "open(name, 'rb')",
        "Image.open('film.gif')",
        "archive.open(member)",
        "subprocess.run(command, encoding='utf-8')",
        "subprocess.run(command, capture_output=True)",
    ],
)
def test_what_is_right_passes(call: str):
    assert lines_by_locale(call) == []


@pytest.mark.slow
def test_a_page_holds_the_same_bytes_in_every_locale():
    code = (
        "import sys\n"
        "from train.report import page\n"
        "sys.stdout.buffer.write(page.html('a\\u2212b', {}, []).encode())"
    )
    pages = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env=os.environ | locale,
            check=True,
            capture_output=True,
        ).stdout
        for locale in ({"PYTHONUTF8": "1"}, FOREIGN_LOCALE)
    ]
    assert pages[0] == pages[1]
    assert "−".encode() in pages[0]
