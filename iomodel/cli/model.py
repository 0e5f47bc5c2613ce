"""Command that shows the shapes of models."""

from __future__ import annotations

from typing import Annotated

import typer

from iomodel.cli.lists import family_of
from iomodel.cli.numbers import integer
from iomodel.cli.options import KV_DTYPES, Json
from iomodel.cli.output import emit
from iomodel.common.validation import as_integer
from iomodel.common.yaml_files import spec_names
from iomodel.models.model_tables import CONTEXT

Name = Annotated[
    str | None,
    typer.Argument(
        help="A model, its YAML file, a Hugging Face config.json, or the first word of a name; all models by default.",
        autocompletion=lambda: spec_names("models"),
    ),
]
Context = Annotated[
    str | None,
    typer.Option(
        "--context",
        help=f"Context of the displayed KV cache in tokens ({CONTEXT}).",
        metavar="INTEGER",
        show_default=False,
    ),
]
KvDtype = Annotated[
    str | None,
    typer.Option(
        "--kv-dtype",
        help="Type of the cache (bf16), such as fp8.",
        metavar="NAME",
        autocompletion=lambda: list(KV_DTYPES),
        show_default=False,
    ),
]


def model(name: Name = None, context: Context = None, kv_dtype: KvDtype = None, json: Json = False) -> None:
    """Show the layers, parameters and KV cache of a language model, or list models: all, or those of a family.

    Example:
      iomodel model llama-3-8b --context 131072 --kv-dtype fp8
    """
    from iomodel.models.model_tables import every_model, model_table, overview, summary
    from iomodel.models.registry import model as find

    tokens = CONTEXT if context is None else as_integer("context", integer("context", context), least=0)
    names = None if name is None else family_of(name, spec_names("models"))
    if name is not None and not names:
        spec = find(name)
        shown = model_table(spec, tokens, kv_dtype)
        emit({**spec.to_dict(), "figures": summary(spec, tokens, kv_dtype)} if json else shown, json)
    elif json:
        emit(
            {key: {"title": spec.title, **summary(spec, tokens, kv_dtype)} for key, spec in every_model(names).items()},
            True,
        )
    else:
        emit(overview(tokens, kv_dtype, names))
