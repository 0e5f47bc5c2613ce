"""YAML as plain data: no tags, no anchors, no YAML 1.1 implicit types."""

from __future__ import annotations

import re
from typing import Any

import yaml

from iomodel.errors import SpecError, shown

DEEPEST = 16
"""Deepest accepted nesting [levels]."""
MOST = 10_000
"""Most accepted keys and values."""
_CORE = "tag:yaml.org,2002:"


class _BannedError(ValueError):
    """A YAML feature that spec files may not use."""


class _Strict(yaml.composer.Composer, yaml.constructor.SafeConstructor, yaml.resolver.Resolver):
    """A loader of YAML 1.2 scalars and mappings with unique string keys, without anchors, aliases or tags."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    depth = nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[attr-defined]
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _BannedError(f"line {line}: anchors and aliases (&, *) are not allowed; write values out")
        if getattr(event, "tag", None):
            raise _BannedError(f"line {line}: tags (!) are not allowed, given {shown(event.tag)}")
        if self.depth >= DEEPEST:
            raise _BannedError(f"line {line}: nested deeper than {DEEPEST} levels")
        if self.nodes >= MOST:
            raise _BannedError(f"line {line}: more than {MOST} keys and values")
        self.depth, self.nodes = self.depth + 1, self.nodes + 1
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if key.tag != _CORE + "str":
                content = shown(key.value) if isinstance(key, yaml.ScalarNode) else "a collection"
                raise _BannedError(f"line {line}: keys must be strings, given {content}; put it in quotes")
            if key.value in seen:
                raise _BannedError(f"line {line}: key {shown(key.value)} is given twice")
            seen.add(key.value)
        return super().construct_mapping(node, deep)

    def whole(self, node: yaml.ScalarNode) -> int:
        """Convert an integer of limited length."""
        if len(node.value) > 40:
            line = node.start_mark.line + 1
            raise _BannedError(f"line {line}: a number of {len(node.value)} digits is not allowed; at most 40")
        return int(node.value)


for _name, _pattern, _first in (
    ("null", "~|null|", ["~", "n", ""]),
    ("bool", "true|false", ["t", "f"]),
    ("int", "[-+]?[0-9]+", list("-+0123456789")),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.inf|\.nan", list("-+.0123456789")),
):
    _Strict.add_implicit_resolver(_CORE + _name, re.compile(rf"(?:{_pattern})\Z", re.ASCII), _first)
_Strict.add_constructor(_CORE + "int", _Strict.whole)  # type: ignore[type-var]


class _Loader(_Strict, yaml.SafeLoader):
    """A loader with the scanner of PyYAML, the source of the errors about a user's file."""


SHIPPED: Any = _Loader
"""A loader of shipped files: with the scanner of libyaml if PyYAML has it, which is faster."""
if yaml.__with_libyaml__:
    from yaml._yaml import CParser

    class _Compiled(_Strict, CParser):
        def __init__(self, stream: str) -> None:
            CParser.__init__(self, stream)
            yaml.composer.Composer.__init__(self)
            yaml.constructor.SafeConstructor.__init__(self)
            yaml.resolver.Resolver.__init__(self)

    SHIPPED = _Compiled


class _Dumper(yaml.SafeDumper):
    """A dumper that quotes every string YAML 1.1 or 1.2 would convert, and writes no anchors."""

    def ignore_aliases(self, _data: object) -> bool:
        """Write every value out."""
        return True


_Dumper.yaml_implicit_resolvers = {
    first: _Loader.yaml_implicit_resolvers.get(first, []) + yaml.SafeDumper.yaml_implicit_resolvers.get(first, [])
    for first in {**_Loader.yaml_implicit_resolvers, **yaml.SafeDumper.yaml_implicit_resolvers}
}


def dump(data: dict[str, Any]) -> str:
    """Format plain data as YAML that `parse` reads back unchanged.

    >>> print(dump({"value": 1e9, "note": "1e9"}))
    value: 1000000000.0
    note: '1e9'
    """
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)


def parse(data: bytes, where: str, loader: Any = _Loader) -> dict[str, Any]:
    """Parse the mapping in a file; SpecError names the file, the line and the fault.

    >>> parse(b"value: 1e9", "my.yaml")
    {'value': 1000000000.0}
    """
    try:
        content = loader(data.decode("utf-8-sig")).get_single_data()
    except UnicodeDecodeError as error:
        raise SpecError(f"{where}: not a UTF-8 text file (byte {error.start})") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}: " if mark else ""
        text = ", ".join(filter(None, (error.context, error.problem)))
        raise SpecError(f"{where}: {line}{_one_line(text)}") from None
    except yaml.YAMLError as error:
        raise SpecError(f"{where}: {_one_line(error)}") from None
    except (ValueError, OverflowError, RecursionError) as error:
        raise SpecError(f"{where}: {_one_line(error)}") from None
    if not isinstance(content, dict):
        raise SpecError(f"{where}: the file must be a mapping of keys to values, given {shown(content)}")
    return content


def _one_line(message: object) -> str:
    return shown(" ".join(str(message).split()), 300)[1:-1]
