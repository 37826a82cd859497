# Copyright (c) openipu.pod contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parsing of pod.yml and machines.csv with the line of every value, for error messages."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import typing as t
from pathlib import Path

try:
    import yaml

    HAS_YAML = True
    # libyaml's parser where PyYAML was built with it: ten times the speed.
    _PARSER: t.Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
except ImportError:
    HAS_YAML = False

from ..text_syntax import Position, Problem, explain
from .forms import number_error
from .mistakes import Mistakes, PodError, similar, unknown

# Maximum number of values and keys. 64 racks with a list of all cables and a partition for each IPU have 195 000.
_MAX_NODES = 500_000
_INVALID = object()  # in the place of a value that YAML cannot convert, a recorded mistake
_INT = "tag:yaml.org,2002:int"
NO_MAPPING = "is not a mapping: start the file with 'plugin: openipu.pod.pod'"  # of pod.yml; variables have no plugin
IDENTIFIERS = ("id", "name")  # first keys of the items of lists
_OPEN_QUOTE = "is not CSV: a value in quotes is not closed in its line: add or remove a quotation mark"
_UNNAMED = "the header has a column without a name: name it, or remove the last comma of each line"
_OTHER_DELIMITERS = {";": "semicolons", "\t": "tabs"}


class Line(int):
    """Number of a line, with the column of the text in it. Both count from 1."""

    column: int | None

    def __new__(cls, line: int, column: int | None = None) -> Line:
        """Create a number from line and column."""
        number = super().__new__(cls, line)
        number.column = column
        return number


def _line(mark: t.Any) -> Line:
    """Return the line of a mark of PyYAML, which counts from 0."""
    return Line(mark.line + 1, mark.column + 1)


class Block(dict[str, t.Any]):
    """Mapping with its file, its line and the line of every key."""

    def __init__(self, file: str, line: int) -> None:
        """Create an empty mapping."""
        super().__init__()
        self.file = file
        self.line = line
        self.lines: dict[str, int] = {}
        self.tagged = False  # whether it has a tag, a recorded mistake
        self.invalid: set[str] = set()  # keys whose values have mistakes
        self.unusable: set[str] = set()  # keys with several values or with an invalid one, a recorded mistake

    def put(self, key: str, value: t.Any, line: int) -> None:
        """Set a key and its line."""
        self[key] = value
        self.lines[key] = line

    def error(self, message: str, key: str | None = None, line: int | None = None) -> PodError:
        """Return the error for a line, for a key, or for the whole mapping."""
        return PodError(self.file, line or self.lines.get(key or "", self.line), message)


class Items(list[t.Any]):
    """List with the line of every item."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[int] = []
        self.tagged = False


def read_yaml(path: str, mistakes: Mistakes | None = None) -> Block:
    """Return the mapping of a YAML file, with lines. Raises PodError.

    Keys that are used twice and invalid values are recorded in ``mistakes``, or raised without it.
    """
    with _composed(path, Mistakes() if mistakes is None else mistakes) as (tree, root):
        tree.check_tag(root)
        top = tree.block(root)
    if mistakes is None:
        tree.mistakes.check()
    return top


def check_syntax_and_size(path: str) -> None:
    """Raise PodError for a file that is not YAML, or whose nested aliases expand to a huge one. Convert no values."""
    with _composed(path, Mistakes()):
        pass


@contextlib.contextmanager
def _composed(path: str, mistakes: Mistakes) -> t.Iterator[tuple[_Tree, t.Any]]:
    """Yield the converter of a YAML file and its mapping as a node. Raises PodError."""
    if not HAS_YAML:
        raise PodError(path, None, "cannot be read without the Python library PyYAML: install PyYAML")
    text = _text(path)
    try:
        with _parser(text) as loader:
            root = loader.get_single_node()
            if not isinstance(root, yaml.MappingNode):
                raise PodError(path, 1, NO_MAPPING)
            tree = _Tree(path, loader, mistakes)
            tree.check_size(root)
            yield tree, root
    except yaml.MarkedYAMLError as error:
        raise _syntax_error(path, text, error) from None
    except yaml.reader.ReaderError as error:
        message = "the character U+%04X is not allowed in YAML: remove it, or save the file as UTF-8 text"
        place = Line(*Position.first(text, chr(error.character)))
        raise PodError(path, place, message % error.character) from None
    except yaml.YAMLError as error:
        raise PodError(path, None, "is not YAML: %s" % error) from None
    except RecursionError:
        raise PodError(path, None, "is nested too deeply: remove levels") from None


@contextlib.contextmanager
def _parser(text: str) -> t.Iterator[t.Any]:
    """Yield the parser of a text."""
    loader = _PARSER(text)
    try:
        yield loader
    finally:
        loader.dispose()


def _syntax_error(path: str, text: str, error: t.Any) -> PodError:
    """Return the mistake behind an error of PyYAML, with the place where it begins."""
    problem = Problem.of(error)
    if problem is None:
        return PodError(path, None, "is not YAML: %s" % error.problem)
    if problem.text == "but found another document":
        message = "starts a second YAML document: remove this line, or write the document to another file"
        return PodError(path, Line(*problem.place), message)
    place, message = explain(text, problem, _quoted_before(text, problem.place.line - 1), _fails_at)
    return PodError(path, Line(*place), message)


def _fails_at(text: str) -> Position | None:
    """Return where PyYAML cannot continue in a text, None if its syntax is valid."""
    try:
        with _parser(text) as loader:
            loader.get_single_node()
    except (yaml.YAMLError, RecursionError) as error:
        return (mark := getattr(error, "problem_mark", None)) and Position.of(mark)
    return None


def _quoted_before(text: str, line: int) -> Position | None:
    """Return the begin of a text in quotes that spans several lines and ends in a line, which counts from 0."""
    found = None
    with _parser(text) as loader, contextlib.suppress(yaml.YAMLError):
        while loader.check_token():
            token = loader.get_token()
            if token.start_mark.line > line:
                break
            if isinstance(token, yaml.ScalarToken) and token.style in ("'", '"'):
                spans = token.start_mark.line < token.end_mark.line == line
                found = Position.of(token.start_mark) if spans else found
    return found


class _Tree:
    """Converter of YAML nodes to values with lines."""

    def __init__(self, path: str, loader: t.Any, mistakes: Mistakes) -> None:
        self.path = path
        self.loader = loader
        self.mistakes = mistakes
        self.blocks: dict[int, Block] = {}  # an aliased mapping is converted once, because merging changes its node
        self.tagged: set[int] = set()  # nodes whose tag is a recorded mistake, once for all aliases
        self.sizes: dict[int, int] = {}  # number of nodes in each mapping and list

    def check_size(self, node: t.Any) -> int:
        """Return the number of nodes, with those of an aliased node each time. Raises PodError if it is too large.

        Otherwise nested aliases make a small file use all memory.
        """
        if not isinstance(node, yaml.CollectionNode):
            return 1
        if id(node) not in self.sizes:
            pairs = isinstance(node, yaml.MappingNode)
            size = 1 + sum(map(self.check_size, itertools.chain.from_iterable(node.value) if pairs else node.value))
            if size > _MAX_NODES:
                message = "holds more than %d values and keys, those of aliases included: remove nested aliases"
                raise PodError(self.path, _line(node.start_mark), message % _MAX_NODES)
            self.sizes[id(node)] = size
        return self.sizes[id(node)]

    def check_tag(self, node: t.Any) -> None:
        """Record the tag of a mapping or list that YAML cannot convert. Its content is read without the tag."""
        kind, own = ("mapping", "map") if isinstance(node, yaml.MappingNode) else ("list", "seq")
        if node.tag == "tag:yaml.org,2002:%s" % own or id(node) in self.tagged:
            return
        self.tagged.add(id(node))
        message = "invalid %s: could not determine a constructor for the tag '%s'. Remove the tag" % (kind, node.tag)
        self.mistakes.add(PodError(self.path, _line(node.start_mark), message))

    def block(self, node: t.Any) -> Block:
        if id(node) not in self.blocks:
            self.blocks[id(node)] = self._read(node)
        return self.blocks[id(node)]

    def _read(self, node: t.Any) -> Block:
        # Merged keys ('<<') come first; keys of the mapping itself override them.
        merges = [value for key, value in node.value if key.tag == "tag:yaml.org,2002:merge"]
        for value in merges:
            self._check_merged(value)
        own = len(node.value) - len(merges)
        self.loader.flatten_mapping(node)
        merged = len(node.value) - own
        result = Block(self.path, _line(node.start_mark))
        seen: set[str] = set()
        for position, (key_node, value_node) in enumerate(node.value):
            line = _line(key_node.start_mark)
            key = str(self._scalar(key_node) if isinstance(key_node, yaml.ScalarNode) else self.value(key_node))
            if position >= merged:
                if key in seen:
                    in_list = key in IDENTIFIERS and not node.flow_style and node.start_mark.column
                    message = "the key '%s' is used twice in one mapping: remove one of them%s"
                    other = ", or write '- ' before it to begin another item of a list" if in_list else ""
                    self.mistakes.add(PodError(self.path, line, message % (key, other)))
                    result.unusable.add(key)
                seen.add(key)
            value = self.value(value_node)
            if value is _INVALID:
                result.unusable.add(key)
                value = None
            result.put(key, value, line)
        return result

    def _check_merged(self, node: t.Any) -> None:
        """Check the tags of a merged mapping, or of a list of them: merging drops their nodes."""
        if isinstance(node, yaml.CollectionNode):
            self.check_tag(node)
        if isinstance(node, yaml.SequenceNode):
            for item in node.value:
                self._check_merged(item)

    def value(self, node: t.Any) -> t.Any:
        if isinstance(node, yaml.CollectionNode):
            self.check_tag(node)
        if isinstance(node, yaml.MappingNode):
            block = self.block(node)
            block.tagged = id(node) in self.tagged
            return block
        if isinstance(node, yaml.SequenceNode):
            result = Items()
            result.tagged = id(node) in self.tagged
            for item in node.value:
                result.append(self.value(item))
                result.lines.append(_line(item.start_mark))
            return _INVALID if any(item is _INVALID for item in result) else result
        try:
            return self._scalar(node)
        except PodError as error:
            self.mistakes.add(error)
            return _INVALID

    def _scalar(self, node: t.Any) -> t.Any:
        """Return a single value. Raises PodError when YAML cannot convert it."""
        # YAML 1.1 reads a MAC of digits only as a number in base 60.
        if node.tag == _INT and ":" in node.value:
            return node.value
        if message := number_error(node.value, node.tag == _INT, quoted=bool(node.style)):
            raise PodError(self.path, _line(node.start_mark), message)
        try:
            return self.loader.construct_object(node)
        except ValueError as error:
            raise PodError(self.path, _line(node.start_mark), "invalid value '%s': %s" % (node.value, error)) from None
        except yaml.constructor.ConstructorError as error:
            message = "invalid value '%s': %s. Remove the tag" % (node.value, error.problem)
            raise PodError(self.path, _line(node.start_mark), message) from None
        except (AttributeError, LookupError):  # PyYAML does not verify values with an explicit tag
            message = "invalid value '%s': it does not match the tag '%s'. Remove the tag" % (node.value, node.tag)
            raise PodError(self.path, _line(node.start_mark), message) from None


class Table:
    """Rows of a CSV file, and whether all of them are read."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.rows: list[Block] = []
        self.complete = True


def read_csv(path: str, columns: t.Collection[str], required: t.Iterable[str], mistakes: Mistakes) -> Table:
    """Return a CSV file with a header, without empty cells and empty lines.

    Unknown columns, rows of another length and required columns without any value are recorded in ``mistakes``. Raises
    PodError for the file as a whole.
    """
    table = Table(path)
    header: list[str] | None = None
    header_line = end = 0
    reader = csv.reader(io.StringIO(_text(path), newline=""), strict=True)
    try:
        for cells in reader:
            line, end = end + 1, reader.line_num
            if end > line:
                raise PodError(path, line, _OPEN_QUOTE)
            cells = [cell.strip() for cell in cells]
            if not any(cells) or cells[0].startswith("#"):
                continue
            if header is None:
                header, header_line = _header(path, line, cells, columns, required, mistakes), line
                continue
            if len(cells) != len(header):
                cause = "the line has %d values and the header %d: separate them with commas, leave unknown ones empty"
                mistakes.add(PodError(path, line, cause % (len(cells), len(header))))
                table.complete = False
                continue
            row = Block(path, line)
            for column, cell in zip(header, cells, strict=True):
                if cell and column:
                    row.put(column, cell, line)
            table.rows.append(row)
    except csv.Error as error:
        message = _OPEN_QUOTE if reader.line_num > end + 1 or "end of data" in str(error) else "is not CSV: %s" % error
        raise PodError(path, end + 1, message) from None
    if header is None:
        raise PodError(path, None, "the file is empty: start it with the header line '%s'" % ",".join(required))
    for column in required:
        if len(table.rows) > 1 and not any(column in row for row in table.rows):
            message = "the column '%s' is empty in %d lines: fill it in" % (column, len(table.rows))
            mistakes.add(PodError(path, header_line, message))
            for row in table.rows:
                row.put(column, None, row.line)
                row.unusable.add(column)
    return table


def _header(
    path: str, line: int, cells: list[str], columns: t.Collection[str], required: t.Iterable[str], mistakes: Mistakes
) -> list[str]:
    """Return the name of each column, empty for an unknown one. Raises PodError for columns that are missing or twice.

    An unknown column is recorded, and read as the missing column that its message suggests.
    """
    names = [cell.lower() for cell in cells]
    for delimiter, label in _OTHER_DELIMITERS.items():
        if len(names) == 1 and delimiter in names[0]:
            raise PodError(path, line, "the columns are separated by %s: separate them with commas" % label)
    if not any(name in columns for name in names):
        message = "the header line is missing: start the file with the names of its %d columns. It needs %s"
        raise PodError(path, line, message % (len(names), ", ".join(required)))
    header = []
    for name in names:
        if name in columns:
            header.append(name)
            continue
        mistakes.add(PodError(path, line, unknown("column", name, columns) if name else _UNNAMED))
        near = similar(name, columns)
        header.append(near if near and near not in names and near not in header else "")
    table = Mistakes()
    for name in dict.fromkeys(filter(None, header)):
        if header.count(name) > 1:
            table.add(PodError(path, line, "the column '%s' is used twice: remove one of them" % name))
    for name in required:
        if name not in header:
            table.add(PodError(path, line, "the header has no column '%s': add it" % name))
    table.check()
    return header


def _text(path: str) -> str:
    """Return the text of a file. Raises PodError."""
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise PodError(path, line, "is not UTF-8 text: save it as UTF-8") from None
    except FileNotFoundError:
        option = "" if path.endswith((".yml", ".yaml")) else " (option 'machines' in pod.yml)"
        message = "the file does not exist: create it, or set another path%s" % option
        raise PodError(path, None, message) from None
    except OSError as error:
        raise PodError(path, None, "cannot be read: %s" % (error.strerror or error)) from None


def relative_to(path: str, name: str) -> str:
    """Return the path of a file named in another file, relative to the folder of that file."""
    return str(Path(path).parent / name)
