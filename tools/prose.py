#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the prose of the repository against a list of words and patterns to avoid.

It reads Markdown, YAML, templates, scripts, changelog fragments and, in Python files, comments, strings
and docstrings. In Markdown, it also reports lines of more than 100 characters. On the pages for users and
contributors, and in docstrings and comments of Python, it reports sentences of more than 25 words. On the
pages, it also reports placeholders. Phrases and sentences may continue on further lines.

Arguments are files or folders; the default is every tracked file. ``--count`` prints one line per file and the
total. Files that have not changed since they had no findings are not read again. A line that quotes the output of
another program ends with ``prose: quote``.

The package of Vale, a similar tool, downloads its program at run time. CI without internet access cannot do that.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import io
import os
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLEAN = ROOT / ".cache" / "prose"  # digests of files without findings
# The empty suffix selects Makefile, .ci/run and scripts.
SUFFIXES = {
    "",
    ".py",
    ".md",
    ".yml",
    ".yaml",
    ".j2",
    ".html",
    ".js",
    ".rst",
    ".sh",
    ".service",
    ".proto",
    ".toml",
    ".txt",
    ".in",
    ".cfg",
    ".conf",
}
# Other people's words, lock files, and files that list the patterns themselves.
SKIPPED = re.compile(
    r"LICENSE|LICENSES/.*|proto/vipuuser\.proto|requirements/.*\.txt|roles/openipu/files/requirements\.txt|tools/prose\.py"
    r"|(?:plugins|src)/.*/contract\.py"
)
QUOTE = "prose: quote"
# Pages whose sentences are measured, and the words that a sentence may have.
PAGES = re.compile(r"(?:.*/)?README\.md|(?:CODE_OF_CONDUCT|CONTRIBUTING|SECURITY)\.md|docs/.*\.md")
LONGEST = 25
WIDEST = 100  # characters of a line of Markdown, except rows of tables, code, and long links
PLACEHOLDER = re.compile(r"[A-Z_]{2,}")

# Words and phrases to avoid, and what to write.
WORDS = {
    r"anew": "again, or new",
    r"(?:un)?told|tells?": "report, return, receive, print",
    r"hears?|heard": "receive",
    r"forgets?|forgotten|forgot": "expire, drop, omit",
    r"stands?(?!-|\s(?:alone|by|in|for)\b)|stood": "is",
    r"of before": "previous",
    r"who(?:m|se)?ever": "name the reader or the program",
    r"nobody|somebody|anybody|everybody": "name the user or the program",
    r"mend(?:s|ed|ing)?": "fix, repair",
    r"deeds?": "operation, action",
    r"wish(?:es)?": "request",
    r"good-?bye": "close",
    r"without a word": "silently",
    r"in the same breath": "in the same request",
    r"look(?:s|ed)? before": "run preflight checks",
    r"none of .{1,20} business": "not managed",
    r"lets? (?:\w+ ){1,3}in": "allow, accept",
    r"carr(?:y|ies|ied) along": "include",
    r"(?:is|are|was|were) there already|there already (?:is|are)": "already exists",
    r"(?:all|everything) that there is": "everything",
    r"makes? (?:\w+ )?good": "restore",
    r"who asks": "the caller",
    r"(?<!connection\s)refus\w+(?!`)": "reject",  # ``refused`` is a former name
    r"also (?:when|if|after|across)": "even when, even after, or including",
    r"what (?:is|was|are|were) (?:wanted|asked|missing|there)": "name the thing",
    r"yonder|thither|henceforth|therein|whereby|wherein|hereby|save for": "a plain word",
}
# A phrase can continue on the next line, after the mark of a comment or quotation.
BREAK = r"(?:[ \t]+|[ \t]*\n[ \t]*(?:#+|//|>)?[ \t]*)"
BANNED = re.compile(
    r"\b(?:" + "|".join(f"(?:{pattern.replace(' ', BREAK)})" for pattern in WORDS) + r")\b", re.IGNORECASE
)
OPENERS = re.compile(
    r"(?:What|See|Who|Whom|Whose|Where|When|How|Which|That|Whether|Why|Let|Have|Be|As|If|It|The same)\b"
)
THIRD_PERSON = re.compile(r"([A-Z][a-z]+s)(?:,| and| the| an?)\s")
# Nouns that begin a docstring and have the form of a verb, and verbs whose imperative ends with s.
NOUNS = re.compile(
    "Address(?:es)?|Allocations|Arguments|Benchmarks|Cables|Clusters|Connections|Counters|Dashboards|Figures|Files"
    "|Folders|Images|Interfaces|Loads|Messages|Names|Pass|Partitions|Ports|Quotas|Records|Removals|Replies|Requests"
    "|Shares|Switches|Tags|Users|Writers"
)
METRIC_TYPES = {"counter", "gauge", "histogram", "info"}
TASK = re.compile(
    r"^\s*- name: [\"']?((?:See|Say|Let|Look|Have|Tell|Know|Ask|Mend|Do now|What|Who|Give|Take|Bring|Put|Be) .*)"
)


def advice(word: str) -> str:
    """Return what to write instead of a banned word."""
    word = re.sub(BREAK, " ", word)
    return next(text for pattern, text in WORDS.items() if re.match(pattern, word, re.IGNORECASE))


def text_tokens(source: str) -> list[tokenize.TokenInfo]:
    """Return the tokens of comments and strings of a Python file."""
    types = (tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1))
    return [token for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type in types]


def python_text(tokens: list[tokenize.TokenInfo]) -> Iterator[tuple[int, str]]:
    """Yield comments and strings of a Python file, each with the number of its first line."""
    yield from comments(tokens)
    for token in tokens:
        if token.type != tokenize.COMMENT:
            yield token.start[0], token.string


def comments(tokens: list[tokenize.TokenInfo]) -> Iterator[tuple[int, str]]:
    """Yield first line number and text of each comment of a Python file. Comments below each other are one."""
    start, text, place = 0, "", (0, 0)
    for token in tokens:
        if token.type != tokenize.COMMENT:
            continue
        alone = not token.line[: token.start[1]].strip()
        if text and not (alone and token.start == place):
            yield start, text
            text = ""
        start = start if text else token.start[0]
        text += token.string.lstrip("#! ") + "\n"
        place = (token.start[0] + 1, token.start[1])
    if text:
        yield start, text


def text_nodes(source: str) -> list[ast.AST]:
    """Return the nodes of a Python file that may have a docstring, and its tuples."""
    types = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.Tuple)
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, types)]


def docstrings(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield line number and text of each docstring of a Python file."""
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node, clean=False)
            if text:
                yield node.body[0].lineno, text


def openers(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield docstrings that do not open with a verb in the imperative or a noun phrase."""
    for number, text in docstrings(nodes):
        if opens_badly(text.lstrip()):
            first = text.strip().splitlines()[0]
            yield number, f"docstring opens with a clause or in the third person: {first!r}"
    for node in nodes:
        if isinstance(node, ast.Tuple):  # a row of the catalog of metrics: name, type, help, …
            row = [each.value if isinstance(each, ast.Constant) else "" for each in node.elts]
            if len(row) > 2 and row[1] in METRIC_TYPES and opens_badly(str(row[2]).removeprefix("Whether ")):
                yield node.elts[2].lineno, f"help of a metric is no noun phrase: {row[2]!r}"


def opens_badly(text: str) -> bool:
    """Return whether a description opens with a clause or with a verb in the third person."""
    verb = THIRD_PERSON.match(text)
    return bool(OPENERS.match(text) or (verb and not NOUNS.fullmatch(verb[1])))


def code_lines(lines: list[str]) -> set[int]:
    """Return the numbers of the lines of fenced code blocks of a Markdown page, including the fences."""
    found, fence = set(), ""
    for number, line in enumerate(lines, 1):
        content = line.strip()
        mark = re.match(r"`{3,}|~{3,}", content)
        if fence or mark:
            found.add(number)
        if mark:
            fence = "" if fence and content.startswith(fence) else fence or mark[0]
    return found


def wide_lines(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield number and width of each line of a Markdown page that is too long and can be broken."""
    code = code_lines(lines)
    for number, line in enumerate(lines, 1):
        content = re.sub(r"^(?:[-*+>]|\d+\.)\s+", "", line.strip())
        if len(line) > WIDEST and number not in code and " " in content and not content.startswith("|"):
            yield number, f"line of {len(line)} characters: write at most {WIDEST}"


def paragraphs(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield first line number and text of each paragraph and list item of a Markdown page, without code and tables."""
    start, text, code = 0, "", code_lines(lines)
    for number, line in enumerate([*lines, ""], 1):
        content = line.strip()
        skipped = number in code or re.match(r"[|#]|<!--|$", content) is not None
        item = re.match(r"(?:[-*+>]|\d+\.)\s+", content)
        if text and (skipped or item):
            yield start, text
            text = ""
        if not skipped:
            start = start if text else number
            text += re.sub(r"^(?:[-*+>]|\d+\.)\s+", "", content) + "\n"


def long_sentences(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield line number and length of each sentence with too many words. A code span is one word."""
    for start, text in paragraphs(lines):
        text = re.sub(r"(`+)[^`]+\1", lambda span: "code" + "\n" * span[0].count("\n"), text)
        text = re.sub(r"\]\([^)]*\)", "]", text)
        line = start
        for sentence in re.split(r"(?<=[.!?])(?=[\"')*_\]]*\s)", text):
            words = re.findall(r"\S*\w\S*", sentence)
            if len(words) > LONGEST:
                first = line + sentence[: len(sentence) - len(sentence.lstrip())].count("\n")
                yield first, f"sentence of {len(words)} words: write at most {LONGEST}"
            line += sentence.count("\n")


def problems(path: Path) -> Iterator[tuple[int, str]]:
    """Yield line number and message for each finding in a file."""
    source = path.read_text(errors="replace")
    lines = source.splitlines()
    python = path.suffix == ".py"
    tokens, nodes = (text_tokens(source), text_nodes(source)) if python else ([], [])
    for start, text in python_text(tokens) if python else [(1, source)]:
        for match in BANNED.finditer(text):
            number = start + text.count("\n", 0, match.start())
            if not lines[number - 1].rstrip().endswith(QUOTE):
                yield number, f"{match[0].strip()!r}: write {advice(match[0])}"
    if python:
        yield from openers(nodes)
        for start, text in (*docstrings(nodes), *comments(tokens)):
            for number, message in long_sentences(text.split("\n")):
                yield start + number - 1, message
    if path.suffix == ".md":
        yield from wide_lines(lines)
    if PAGES.fullmatch(path.relative_to(ROOT).as_posix()):
        yield from long_sentences(lines)
        for number, line in enumerate(lines, 1):
            if PLACEHOLDER.fullmatch(line.strip()):
                yield number, f"placeholder {line.strip()!r}: write the text"
    elif path.suffix in (".yml", ".yaml"):
        for number, line in enumerate(lines, 1):
            if task := TASK.match(line):
                yield number, f"name without verb and object: {task[1]!r}"


def files(arguments: list[str]) -> list[Path]:
    """Return the tracked and new text files below the arguments."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *arguments]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")  # noqa: S603
    chosen = [name for name in listed if Path(name).suffix in SUFFIXES and not SKIPPED.fullmatch(name)]
    return [ROOT / name for name in sorted(set(chosen)) if (ROOT / name).is_file()]


class CleanFiles:
    """Record of the files without findings, by digests of their names and contents, and of this program."""

    def __init__(self, record: Path) -> None:
        self._record = record
        self._program = hashlib.sha256(sys.version.encode() + Path(__file__).read_bytes()).digest()
        self._known = set(record.read_text().split()) if record.is_file() else set()
        self._clean: set[str] = set()

    def findings(self, path: Path) -> list[tuple[int, str]]:
        """Return the findings in a file: none without a check if the record has it."""
        content = path.relative_to(ROOT).as_posix().encode() + b"\n" + path.read_bytes()
        digest = hashlib.sha256(self._program + content).hexdigest()
        found = [] if digest in self._known else list(problems(path))
        if not found:
            self._clean.add(digest)
        return found

    def write(self, *, complete: bool) -> None:
        """Store the record; after a check of all files, drop former contents and removed files."""
        self._record.parent.mkdir(parents=True, exist_ok=True)
        new = self._record.with_suffix(f".{os.getpid()}")
        new.write_text("\n".join(sorted(self._clean if complete else self._clean | self._known)))
        new.replace(self._record)


def main() -> int:
    """Print all findings; return 1 when there are any."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", metavar="PATH")
    parser.add_argument("--count", action="store_true", help="print one line per file")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    checked, clean = files(options.paths), CleanFiles(CLEAN)
    for path in checked:
        name = str(path.relative_to(ROOT))
        for number, message in clean.findings(path):
            counts[name] += 1
            if not options.count:
                print(f"{name}:{number}: {message}")
    clean.write(complete=not options.paths)
    if options.count:
        for name, count in counts.most_common():
            print(f"{count:6} {name}")
    print(f"{counts.total()} findings in {len(checked)} checked files", file=sys.stderr)
    return 1 if counts else 0


if __name__ == "__main__":
    sys.exit(main())
