"""Reading of JSON files as plain data."""

from __future__ import annotations

import json
from typing import Any

from iomodel.errors import SpecError, shown


def parse_json(content: bytes, where: str) -> dict[str, Any]:
    """Parse the mapping in a JSON file; SpecError names the file and the fault.

    >>> parse_json(b'{"hidden_size": 4096}', "config.json")
    {'hidden_size': 4096}
    """

    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for key, value in pairs:
            if key in merged and merged[key] != value:
                raise SpecError(f"{where}: key {shown(key)} is given twice, as {shown(merged[key])} and {shown(value)}")
            merged[key] = value
        return merged

    try:
        parsed = json.loads(content.decode("utf-8-sig"), object_pairs_hook=mapping)
    except SpecError:
        raise
    except UnicodeDecodeError as error:
        raise SpecError(f"{where}: not a UTF-8 text file (byte {error.start})") from None
    except json.JSONDecodeError as error:
        raise SpecError(f"{where}: line {error.lineno}: not valid JSON ({error.msg})") from None
    except (ValueError, RecursionError) as error:  # an integer with thousands of digits, or deeply nested brackets
        raise SpecError(f"{where}: {shown(str(error), 200)[1:-1]}") from None
    if not isinstance(parsed, dict):
        raise SpecError(f"{where}: the file must be a mapping of keys to values, given {shown(parsed)}")
    return parsed
