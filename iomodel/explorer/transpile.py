"""JavaScript of the package's own Python, so that the page has the time model itself and not a second one.

The subset has functions, generators, dataclasses, named tuples and comprehensions. Operators and built-in functions
become calls of ``py`` (:file:`static/python.js`), which keep Python's meaning: floor division, equality by value,
arrays element by element. Numbers are doubles; integers are exact below 2^53.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from iomodel.explorer.transpile_expressions import BINARY, ExpressionWriter, safe


class Transpiler(ExpressionWriter):
    r"""A writer of the JavaScript of chosen definitions of some modules, each module in a scope of its own.

    Parameters
    ----------
    modules : mapping of module name to names
        The definitions of each module, after those that they use. One with a further underscore in front is for its
        module alone.

    Examples
    --------
    >>> Transpiler({"iomodel.common.arithmetic": ["floor_sum"]}).text().split("\n")[1]
    'function floor_sum(n, m, a, b) {'
    """

    def __init__(self, modules: Mapping[str, Sequence[str]]) -> None:
        self.modules = {name: [_bare(own) for own in wanted] for name, wanted in modules.items()}
        self.exported = {name: [own for own in wanted if _bare(own) == own] for name, wanted in modules.items()}
        self.classes: set[str] = set()
        self.locals: list[set[str]] = []
        self.trees = {name: ast.parse(source(name)) for name in modules}
        for name, wanted in self.modules.items():
            self.classes |= {d.name for d in self.trees[name].body if isinstance(d, ast.ClassDef) and d.name in wanted}
        self.methods = {
            part.name
            for tree in self.trees.values()
            for node in tree.body
            if isinstance(node, ast.ClassDef)
            for part in node.body
            if isinstance(part, ast.FunctionDef) and not any("property" in ast.unparse(d) for d in part.decorator_list)
        }
        self.classes |= {"Attention", "Window", "InfeasibleError", "InputError"}

    def text(self) -> str:
        """Write every module."""
        return "\n".join(self._module(name, wanted) for name, wanted in self.modules.items())

    def _module(self, name: str, wanted: Sequence[str]) -> str:
        parts = []
        for node in self.trees[name].body:
            if isinstance(node, ast.FunctionDef) and node.name in wanted:
                parts.append(self.function(node))
            elif isinstance(node, ast.ClassDef) and node.name in wanted:
                parts.append(self.klass(node))
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                target = node.targets[0] if isinstance(node, ast.Assign) else node.target
                if isinstance(target, ast.Name) and target.id in wanted:
                    parts.append(f"const {target.id} = {self.expr(node.value)};")
        if len(parts) != len(wanted):
            raise LookupError(f"{name}: {len(parts)} definitions found of {', '.join(wanted)}")
        names = ", ".join(self.exported[name])
        body = "\n".join(parts)
        return f"const {{{names}}} = (() => {{\n{body}\nreturn {{{names}}};\n}})();"

    def klass(self, node: ast.ClassDef) -> str:
        """Write a dataclass or a named tuple; its other bases have no meaning here."""
        fields: list[tuple[str, str | None]] = []
        methods, cached = [], []
        for part in node.body:
            if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
                fields.append((part.target.id, None if part.value is None else self._default(part.value)))
            elif isinstance(part, ast.FunctionDef):
                words = {ast.unparse(decorator) for decorator in part.decorator_list}
                own = part.args.args[1:] if "staticmethod" not in words else part.args.args
                head = f"{'*' * _yields(part)}{part.name}({self.parameters(part, own)})"
                first = part.args.args[0].arg if "staticmethod" not in words else None
                body = self.body(part, first)
                if "property" in words or "cached_property" in words:
                    methods.append(f"get {head} {{{body}}}")
                    if "cached_property" in words:
                        cached.append(f"py.cached({node.name}, {part.name!r});")
                    continue
                methods.append(f"{'static ' if 'classmethod' in words else ''}{head} {{{body}}}")
                place = node.name if "classmethod" in words else f"{node.name}.prototype"
                names = [argument.arg for argument in (*own, *part.args.kwonlyargs)]
                cached.append(f"{place}.{part.name}.params = {names!r};")
        parameters = ", ".join(name if default is None else f"{name} = {default}" for name, default in fields)
        kept = " ".join(f"this.{name} = {name};" for name, _ in fields)
        named = any(ast.unparse(base) == "NamedTuple" for base in node.bases)
        iterate = f"*[Symbol.iterator]() {{ for (const name of {node.name}.fields) yield this[name]; }}" * named
        change = "_replace(words) { return py.replace(this, words); }" * named
        lines = [f"class {node.name} {{", f"constructor({parameters}) {{ {kept} }}", iterate, change, *methods, "}"]
        names = [name for name, _ in fields]
        return "\n".join([*filter(None, lines), f"{node.name}.fields = {names!r};", *cached])

    def _default(self, value: ast.expr) -> str:
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "field":
            factory = next((word.value for word in value.keywords if word.arg == "default_factory"), None)
            return "new Map()" if factory is not None else "null"
        return self.expr(value)

    def function(self, node: ast.FunctionDef) -> str:
        """Write a function with the names of its parameters, by which keywords are passed."""
        head = f"function{'*' * _yields(node)} {node.name}({self.parameters(node, node.args.args)})"
        names = [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
        text = f"{head} {{{self.body(node)}}}\n{node.name}.params = {names!r};"
        for each in node.decorator_list:
            if isinstance(each, ast.Call) and ast.unparse(each.func) == "lru_cache":
                text += f"\n{node.name} = py.memo({node.name}, {ast.unparse(each.keywords[0].value)});"
        return text

    def parameters(self, node: ast.FunctionDef, own: Sequence[ast.arg]) -> str:
        """Write the parameters of a function."""
        arguments = node.args
        defaults: list[ast.expr | None] = [None] * (len(own) - len(arguments.defaults)) + list(arguments.defaults)
        pairs = [*zip(own, defaults, strict=True), *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
        texts = [safe(a.arg) if d is None else f"{safe(a.arg)} = {self.expr(d)}" for a, d in pairs]
        if arguments.vararg is not None:
            texts.append(f"...{safe(arguments.vararg.arg)}")
        return ", ".join(texts)

    def body(self, node: ast.FunctionDef, first: str | None = None) -> str:
        """Write the body of a function, with its variables on top."""
        parameters = {a.arg for a in (*node.args.args, *node.args.kwonlyargs)}
        inner = sorted(_assigned(node.body) - parameters)
        self.locals.append(parameters | set(inner))
        lines = [f"const {first} = this;"] if first else []
        if inner:
            lines.append(f"let {', '.join(map(safe, inner))};")
        lines += [self.statement(part) for part in node.body]
        self.locals.pop()
        return "\n".join(["", *filter(None, lines), ""])

    def block(self, body: Iterable[ast.stmt]) -> str:
        """Write statements in braces."""
        return "{\n" + "\n".join(filter(None, map(self.statement, body))) + "\n}"

    def statement(self, node: ast.stmt) -> str:
        """Write a statement."""
        return self.written(node)

    def _Expr(self, node: ast.Expr) -> str:
        return "" if isinstance(node.value, ast.Constant) else f"{self.expr(node.value)};"

    def _Assert(self, _: ast.Assert) -> str:
        return ""

    def _Pass(self, _: ast.Pass) -> str:
        return ""

    def _ImportFrom(self, _: ast.ImportFrom) -> str:
        return ""  # the page has every definition that runs

    def _Return(self, node: ast.Return) -> str:
        return "return null;" if node.value is None else f"return {self.expr(node.value)};"

    def _Break(self, _: ast.Break) -> str:
        return "break;"

    def _Continue(self, _: ast.Continue) -> str:
        return "continue;"

    def _Raise(self, node: ast.Raise) -> str:
        assert node.exc is not None
        return f"throw {self.expr(node.exc)};"

    def _FunctionDef(self, node: ast.FunctionDef) -> str:
        head = f"function{'*' * _yields(node)} ({self.parameters(node, node.args.args)})"
        names = [argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)]
        return f"{safe(node.name)} = py.named({head} {{{self.body(node)}}}, {names!r});"

    def _If(self, node: ast.If) -> str:
        other = f" else {self.block(node.orelse)}" if node.orelse else ""
        return f"if ({self.test(node.test)}) {self.block(node.body)}{other}"

    def _While(self, node: ast.While) -> str:
        return f"while ({self.test(node.test)}) {self.block(node.body)}"

    def _For(self, node: ast.For) -> str:
        return f"for ({self.target(node.target)} of py.iter({self.expr(node.iter)})) {self.block(node.body)}"

    def _Assign(self, node: ast.Assign) -> str:
        value = self.expr(node.value)
        lines = []
        if len(node.targets) > 1:
            lines.append(f"const $value{node.lineno} = {value};")
            value = f"$value{node.lineno}"
        return "\n".join([*lines, *(self.store(target, value) for target in node.targets)])

    def _AnnAssign(self, node: ast.AnnAssign) -> str:
        return "" if node.value is None else self.store(node.target, self.expr(node.value))

    def _AugAssign(self, node: ast.AugAssign) -> str:
        load = ast.parse(ast.unparse(node.target), mode="eval").body
        return self.store(node.target, f"py.{BINARY[type(node.op)]}({self.expr(load)}, {self.expr(node.value)})")

    def store(self, target: ast.expr, value: str) -> str:
        """Write an assignment."""
        if isinstance(target, ast.Subscript):
            return f"py.put({self.expr(target.value)}, {self.expr(target.slice)}, {value});"
        if isinstance(target, ast.Tuple | ast.List):
            return f"({self.target(target)} = py.iter({value}));".replace("(", ";(", 1)
        return f"{self.target(target)} = {value};"


PRIVATE = frozenset({"_layouts"})
"""Private names that are not for their module alone."""


def _bare(name: str) -> str:
    """Return a name without the mark of a definition that is for its module alone."""
    return name[1:] if name.startswith("_") and name not in PRIVATE else name


def source(module: str) -> str:
    """Read the source of a module."""
    spec = find_spec(module)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).read_text(encoding="utf-8")


def _yields(node: ast.FunctionDef) -> bool:
    return any(isinstance(part, ast.Yield | ast.YieldFrom) for part in _own(node))


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """Iterate over the nodes of a function without those of functions inside."""
    for part in ast.iter_child_nodes(node):
        yield part
        if not isinstance(part, ast.FunctionDef | ast.Lambda):
            yield from _own(part)


def _assigned(body: Sequence[ast.stmt]) -> set[str]:
    """Collect the variables of a function."""
    whole: Any = ast.Module(list(body), [])
    names = set()
    inside = {id(n) for c in _own(whole) if isinstance(c, ast.comprehension) for n in ast.walk(c.target)}
    for part in _own(whole):
        if isinstance(part, ast.FunctionDef):
            names.add(part.name)
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store) and id(part) not in inside:
            names.add(part.id)
    return names
