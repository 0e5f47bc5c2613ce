"""Speculative decoding: drafts, their acceptance, and the tokens of a step."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated

from pydantic import Field

from iomodel.common.validation import Count, Model
from iomodel.errors import InputError
from iomodel.models.decoder_layer import SideLayer
from iomodel.models.registry import ModelSpec
from iomodel.models.registry import model as find_model
from iomodel.planning.step.layout import Layout

MOST = 64
"""Most draft tokens of a step."""
FREE = "ngram"
"""Drafts that are looked up in the prompt, at no cost on the device."""
OWN = "mtp"
"""Drafts of one more layer of the model itself."""


class Speculation(Model):
    """Tokens that are drafted ahead and verified by the model in one step.

    Each draft token is accepted with the same probability if all before it are. With k draft tokens of acceptance a, a
    step yields (1 - a^(k + 1)) / (1 - a) tokens on average (Y. Leviathan, M. Kalman and Y. Matias, *Fast inference from
    transformers via speculative decoding*, ICML 2023, equation 1).

    Parameters
    ----------
    tokens : int
        Draft tokens of a step [-].
    acceptance : float
        Probability that a draft token is accepted, given that all before it are [-].
    draft : str
        Source of the drafts: ``mtp``, ``ngram``, or the name of a smaller model. ``mtp`` is one more layer of the
        model, after a projection of a hidden state and an embedding, with the model's output layer (DeepSeek-AI,
        *DeepSeek-V3 technical report*, arXiv:2412.19437, section 2.2); ``ngram`` has no cost.

    Raises
    ------
    InputError
        A number is out of range.

    Examples
    --------
    >>> Speculation(tokens=3, acceptance=0.8).tokens_per_step
    2.952
    """

    tokens: Annotated[Count, Field(le=MOST)]
    acceptance: Annotated[float, Field(strict=True, ge=0, le=1)]
    draft: str = OWN

    @property
    def tokens_per_step(self) -> float:
        """Expected tokens of a step: the accepted drafts, and one of the model [-]."""
        return sum(self.acceptance**place for place in range(self.tokens + 1))

    def model_of(self, target: ModelSpec) -> ModelSpec | None:
        """Return the model that computes the drafts; None for drafts without a cost.

        Raises
        ------
        UnknownNameError, InputError
            The draft model is unknown, or has another vocabulary.
        """
        if self.draft == FREE:
            return None
        if self.draft == OWN:
            return _next_token_module(target)
        draft = find_model(self.draft)
        if draft.vocab_size != target.vocab_size:
            raise InputError(
                f"speculation.draft: {self.draft} has {draft.vocab_size:,} tokens; allowed: a model with the "
                f"vocabulary of {target.label}, {target.vocab_size:,} tokens"
            )
        return draft


@lru_cache(maxsize=64)
def _next_token_module(target: ModelSpec) -> ModelSpec:
    """Build the module that predicts a further token: a projection, and a layer like the last one of the model."""
    width = target.hidden_size
    projection = SideLayer(name="projection of state and embedding", in_features=2 * width, out_features=width)
    fields = {name: getattr(target, name) for name in type(target).model_fields}
    changed = {"layers": target.layers[-1:], "further_layers": (), "side": (projection,), "other_weights": 0}
    return ModelSpec(**{**fields, **changed})


def draft_layout(draft: ModelSpec, layout: Layout) -> Layout:
    """Divide a draft among the ranks of a group if its heads allow it, else run it on every rank."""
    shared = layout.model_copy(update={"pipeline_parallel": 1})
    for tried in (shared, Layout(tensor_parallel=layout.tensor_parallel)):
        try:
            tried.check(draft)
        except InputError:
            continue
        return tried
    return Layout()
