"""Scope in which Triton's language runs on a builder, for functions decorated with or without `TRITON_INTERPRET`."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock
from types import FunctionType, ModuleType
from typing import Any

from iomodel.triton.block_pointers import patched_words
from iomodel.triton.kernel_arguments import indices
from iomodel.triton.library_functions import library_functions

LOCK = RLock()
"""Holds off a second count: the language is patched for the whole process."""
MISSING = object()


class Patches:
    """Changes of attributes that are undone exactly: an inherited attribute is inherited again."""

    def __init__(self) -> None:
        self.changes: list[tuple[Any, str, Any]] = []

    def set_attr(self, home: Any, name: str, value: Any) -> None:
        """Set an attribute."""
        self.changes.append((home, name, vars(home).get(name, MISSING)))
        setattr(home, name, value)

    def restore(self) -> None:
        """Undo all changes, the last one first."""
        while self.changes:
            home, name, before = self.changes.pop()
            if before is MISSING:
                delattr(home, name)
            else:
                setattr(home, name, before)


@contextmanager
def interpreted(builder: Any, counts: Counter[str]) -> Iterator[Callable[[Any], Any]]:
    """Patch the language and yield a function that makes a function of the language callable; undo on exit."""
    from triton import language as tl
    from triton.language.semantic import TritonSemantic
    from triton.runtime import interpreter
    from triton.runtime.jit import JITFunction

    scope = Patches()
    semantic = TritonSemantic(builder)
    rewritten: dict[Any, Callable[..., Any]] = {}

    def runnable(function: Any) -> Callable[..., Any]:
        if function not in rewritten:
            rewritten[function] = _rewritten(function, semantic, replaced)
        return rewritten[function]

    def called(function: Any, *args: Any, **kwargs: Any) -> Any:
        return runnable(function.fn)(*args, **{key: each for key, each in kwargs.items() if key != "_semantic"})

    with LOCK:
        try:
            scope.set_attr(interpreter, "interpreter_builder", builder)
            scope.set_attr(interpreter, "interpreter_semantic", semantic)
            for kind in (JITFunction, interpreter.InterpretedFunction):
                scope.set_attr(kind, "__call__", called)
            _patch_language(interpreter, tl, builder, scope)
            _patch_block_pointers(tl, builder, semantic, scope)
            for module in (tl, tl.core):
                scope.set_attr(module, "range", indices)
            for module, name, function in [*library_functions(semantic, counts)]:
                scope.set_attr(module, name, function)
            replaced = {
                id(before): getattr(home, name)
                for home, name, before in scope.changes
                if isinstance(home, ModuleType) and home is not interpreter
            }
            yield runnable
        finally:
            scope.restore()


def _patch_language(interpreter: Any, tl: Any, builder: Any, scope: Any) -> None:
    for module in (tl, tl.core):
        interpreter._patch_builtin(module, builder, scope)
        interpreter._patch_lang_core(module, scope)
    interpreter._patch_builtin(tl.math, builder, scope)
    interpreter._patch_builtin(tl.tensor, builder, scope)
    interpreter._patch_lang_tensor(tl.tensor, scope)
    interpreter._patch_builtin(tl.core.tensor_descriptor_base, builder, scope)


def _patch_block_pointers(tl: Any, builder: Any, semantic: Any, scope: Any) -> None:
    words = {"load": tl.load, "store": tl.store, "broadcast_to": tl.broadcast_to, "cast": tl.cast}
    words["to_tensor"] = semantic.to_tensor
    for name, word in patched_words(builder, words).items():
        for module in (tl, tl.core):
            scope.set_attr(module, name, word)


def _rewritten(function: Any, semantic: Any, replaced: dict[int, Any]) -> Callable[..., Any]:
    """Rewrite a function as the interpreter does, with a copy of its globals, so that its module stays as it is."""
    from triton.runtime import interpreter

    names = {
        name: replaced.get(id(value), value)
        for name, value in {**function.__globals__, **inspect.getclosurevars(function).nonlocals}.items()
    }
    names.setdefault("range", indices)
    names |= {"interpreter_semantic": semantic, "_InterpreterComparison": interpreter._InterpreterComparison}
    copied = FunctionType(function.__code__, names, function.__name__, function.__defaults__, function.__closure__)
    copied.__kwdefaults__, copied.__module__ = function.__kwdefaults__, function.__module__
    copied.__annotations__, copied.__qualname__ = function.__annotations__, function.__qualname__
    made: Callable[..., Any] = interpreter.FunctionRewriter(copied).rewrite_ast()
    return made
