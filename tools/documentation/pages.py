# SPDX-License-Identifier: GPL-3.0-or-later
"""Collect the pages of the repository as sources of the site.

Pages link to each other, and to other files of the repository, with relative paths, so that the links work on a
code-hosting site. Here, links to pages become links inside the site, and links to other files become links to the
repository. A page with the line ``<!-- contents -->`` defines the navigation: the links below each of its headings.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from tools import links

ROOT = Path(__file__).resolve().parents[2]
CONTENTS = "<!-- contents -->"
_FILES = {".svg", ".png", ".json"}  # copied beside the pages
_PROJECT = {"CONTRIBUTING.md": "contributing", "SECURITY.md": "security", "CODE_OF_CONDUCT.md": "code-of-conduct"}
_GENERATED = {"CHANGELOG.rst": "project/changelog.rst", "plugins": "plugins/index.rst"}
_HIDDEN = re.compile(r"\.|docs/build/|tests/")


def repository() -> str:
    """Return the URL of the repository, from galaxy.yml."""
    found = re.search(r"^repository: (\S+)$", (ROOT / "galaxy.yml").read_text(), re.MULTILINE)
    if not found:
        raise ValueError("Cannot build the site: galaxy.yml has no 'repository'.")
    return found[1]


def docname(path: str) -> str:
    """Return the name in the site of a page with this path in the repository."""
    if path in _PROJECT:
        return f"project/{_PROJECT[path]}"
    page = PurePosixPath(path)
    if page.name == "README.md" and len(page.parts) == 1:
        return "overview"
    name = page.with_suffix("").as_posix().removeprefix("docs/")
    if name == "README":
        return "index"
    return name.removesuffix("/README")


def tracked() -> list[str]:
    """Return the paths of all tracked and new files of the repository."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout  # noqa: S603
    return [name for name in listing.splitlines() if (ROOT / name).is_file()]


def site_pages() -> dict[str, str]:
    """Return the name in the site of each Markdown page, by its path in the repository."""
    return {name: docname(name) for name in tracked() if name.endswith(".md") and not _HIDDEN.match(name)}


def converted(path: str, pages: dict[str, str]) -> str:
    """Return the source of a page for the site, with the same lines as the page and its navigation at the end."""
    text = (ROOT / path).read_text()
    spots = [_target(found) for found in links.LINK.finditer(links.without_code(text))]
    for start, end in reversed(spots):
        text = text[:start] + _in_site(text[start:end], path, pages) + text[end:]
    if CONTENTS in text:
        text += "".join(_toctrees(path, pages))
    role = re.fullmatch(r"roles/(\w+)/README\.md", path)
    if role:
        text += f"\n## All variables\n\nSee [openipu.pod.{role[1]}](../plugins/{role[1]}_role.rst).\n"
    return text


def _target(found: re.Match[str]) -> tuple[int, int]:
    return found.span("inline" if found["inline"] else "reference")


def _in_site(target: str, page: str, pages: dict[str, str]) -> str:
    """Return a link target of a page, as it is valid in the site."""
    file, mark, anchor = target.partition("#")
    if not file or "://" in target or target.startswith("mailto:"):
        return target
    path = os.path.normpath(PurePosixPath(page).parent / file)
    if path in pages:
        return _relative(pages[path] + ".md", pages[page]) + mark + anchor
    if PurePosixPath(path).suffix in _FILES:
        return _relative(_file(path), pages[page])
    if path in _GENERATED:
        return _relative(_GENERATED[path], pages[page])
    kind = "tree" if (ROOT / path).is_dir() else "blob"
    return f"{repository()}/{kind}/main/{path}{mark}{anchor}"


def _file(path: str) -> str:
    return path.removeprefix("docs/")


def _relative(target: str, page: str) -> str:
    return os.path.relpath(target, PurePosixPath(page).parent)


def _toctrees(path: str, pages: dict[str, str]) -> Iterator[str]:
    """Yield a hidden table of contents for each heading of a page that defines the navigation."""
    nested = pages[path] != "index"
    text = (ROOT / path).read_text()
    plain = links.without_code(text)  # with the positions of the text
    headings = list(re.finditer(r"^## (.*)$", plain, re.MULTILINE))
    for heading, following in itertools.zip_longest(headings, headings[1:]):
        entries: dict[str, str] = {}  # the text of the link, by page
        for found in links.LINK.finditer(plain, heading.end(), following.start() if following else len(plain)):
            start, end = _target(found)
            target = _in_site(plain[start:end], path, pages)
            if "://" not in target and "#" not in target and not target.endswith(tuple(_FILES)):
                title = text[text.rindex("[", 0, start) + 1 : found.start()]
                entries[target.rsplit(".", 1)[0]] = " ".join(title.replace("`", "").split())
        if entries:
            caption = "" if nested else f":caption: {heading[1]}\n"
            names = "\n".join(f"{title} <{target}>" for target, title in entries.items())
            yield f"\n```{{toctree}}\n:hidden:\n{caption}\n{names}\n```\n"


def write(folder: Path, generated: dict[str, str]) -> None:
    """Write all sources of the site into a folder. Unchanged files keep their time, deleted pages disappear.

    Args:
        folder: the source folder of Sphinx; its subfolder ``plugins`` is left alone.
        generated: further sources, by their path in the folder.
    """
    pages = site_pages()
    sources = {f"{name}.md": converted(path, pages) for path, name in pages.items()} | generated
    for name, text in sources.items():
        file = folder / name
        if not file.is_file() or file.read_text() != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
    files = {_file(path) for path in tracked() if path.startswith("docs/") and Path(path).suffix in _FILES}
    for name in files:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / "docs" / name, folder / name)
    for file in folder.rglob("*"):
        name = file.relative_to(folder).as_posix()
        if file.is_file() and name not in sources and name not in files and not name.startswith("plugins/"):
            file.unlink()
