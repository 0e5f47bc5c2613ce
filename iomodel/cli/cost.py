"""Commands that count: `cost` in numbers, `formula` in symbols."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from iomodel.cli import values
from iomodel.cli.algorithm_names import list_algorithms
from iomodel.cli.masks import mask as typed_mask
from iomodel.cli.options import ALGORITHM, KIND, OF_LAYER, OF_RECURRENCE, TILE, WORKLOAD, Algorithm, Json
from iomodel.cli.output import emit
from iomodel.cli.signature import with_options
from iomodel.errors import InputError
from iomodel.nests.feature_names import FEATURE_NAMES

TILE_NAMES = [parameter.name for parameter in TILE]
LAYER_FEATURES = [parameter.name for parameter in (*OF_LAYER, *OF_RECURRENCE)]


@with_options(WORKLOAD, TILE, ALGORITHM)
def cost(algorithm: Algorithm, *, json: Json = False, **arguments: Any) -> None:
    """Count the traffic and the operations of an algorithm at given tiles.

    Example:
      iomodel cost flash2 --q-len 8192 --head-dim 128 --block-q 128 --block-kv 64
    """
    from iomodel.counting.cost import cost as count

    sizes, chosen = values.tiles(arguments, TILE_NAMES), values.options(arguments, list_algorithms())
    emit(count(algorithm, values.workload(arguments, algorithm), sizes, **chosen), json)


@with_options(KIND, ALGORITHM)
def formula(
    algorithm: Algorithm,
    *,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX.", rich_help_panel="Output")] = False,
    square: Annotated[
        bool, typer.Option("--square", help="With N queries and N keys, rows of one width.", rich_help_panel="Output")
    ] = False,
    leading: Annotated[
        bool,
        typer.Option(
            "--leading", help="Tiles of least traffic and its leading term in N, d and M.", rich_help_panel="Output"
        ),
    ] = False,
    aligned: Annotated[
        bool, typer.Option("--aligned", help="Write terms one under another.", rich_help_panel="Output")
    ] = False,
    json: Json = False,
    **arguments: Any,
) -> None:
    """Print the exact formulas; the widths of a window and an unspecified number of splits stay symbolic.

    Example:
      iomodel formula flash2 --mask causal --paged
    """
    from iomodel.counting.expressions import expressions
    from iomodel.counting.expressions_text import readable
    from iomodel.counting.optimum import optimum
    from iomodel.counting.stacked_terms import stacked

    if aligned and (json or latex):
        raise InputError(f"aligned: given with {'latex' if latex else 'json'}; allowed: for formulas as text")
    direction = arguments["direction"] or "forward"
    chosen = {
        **values.options(arguments, list_algorithms()),
        **values.features(arguments, (*FEATURE_NAMES, *LAYER_FEATURES)),
    }
    if leading:
        best = optimum(algorithm, typed_mask(arguments), direction, **chosen)
        emit(
            best.latex() if latex else best if json else stacked(str(best)) if aligned else str(best),
            json and not latex,
        )
        return
    formulas = expressions(algorithm, typed_mask(arguments), direction, **chosen)
    formulas = formulas.square() if square else formulas
    if json:
        emit({**formulas.to_dict(), "latex": formulas.latex()} if latex else formulas, as_json=True)
    else:
        text = formulas.latex() if latex else readable(formulas)
        emit(stacked(text) if aligned else text)
