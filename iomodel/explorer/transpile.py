"""JavaScript of the package's own Python, so that the page has the time model itself and not a second one.

The subset has functions, generators, dataclasses, named tuples and comprehensions. Operators and built-in functions
become calls of ``py`` (:file:`static/python.js`), which keep Python's meaning: floor division, equality by value,
arrays element by element. Numbers are doubles; integers are exact below 2^53.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.LShift: "shl", ast.BitOr: "bor", ast.BitAnd: "band", ast.BitXor: "bxor",
}  # fmt: skip
COMPARED = {ast.Eq: "eq", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.In: "in"}
BUILTINS = frozenset(
    {
        "abs", "all", "any", "bool", "dict", "divmod", "enumerate", "float", "frozenset",
        "int", "isinstance", "iter", "len", "list", "map", "max", "min", "next",
        "range", "round", "set", "sorted", "str", "sum", "tuple", "zip", "ceil",
        "floor", "floor_sum_of", "prod", "gcd", "lcm", "larger", "smaller", "pick", "ceil_div", "floor_div",
        "ratio", "anywhere", "getattr", "replace", "pairwise", "product", "Counter", "FrozenDict", "inf",
    }
)  # fmt: skip
"""Names that `py` provides: Python's, and those of :mod:`iomodel.common.elementwise`, which it has for numbers."""
METHODS = frozenset(
    {
        "get", "items", "values", "keys", "setdefault", "update", "append", "add", "join",
        "index", "count", "max", "any", "all", "astype", "tolist", "ravel", "reshape",
        "split", "issuperset", "isdigit", "extend",
    }
)  # fmt: skip
"""Methods of Python's own types and of arrays."""
RESERVED = frozenset(
    {
        "private", "public", "static", "interface", "package", "protected", "implements", "new", "this",
        "in", "function", "default", "delete", "with", "case", "var", "let", "const",
        "switch", "void", "typeof", "class",
    }
)  # fmt: skip


class Transpiler:
    r"""A writer of the JavaScript of chosen definitions of some modules, each module in a scope of its own.

    Parameters
    ----------
    modules : mapping of module name to names
        The definitions of each module, after those that they use. One with a further underscore in front is for its
        module alone.

    Examples
    --------
    >>> Transpiler({"iomodel.common.floor_sum": ["floor_sum"]}).text().split("\n")[1]
    'function floor_sum(n, m, a, b) {'
    """

    def __init__(self, modules: dict[str, Sequence[str]]) -> None:
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
        lines = [f"class {node.name} {{", f"constructor({parameters}) {{ {kept} }}", iterate, *methods, "}"]
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
        return f"{head} {{{self.body(node)}}}\n{node.name}.params = {names!r};"

    def parameters(self, node: ast.FunctionDef, own: Sequence[ast.arg]) -> str:
        """Write the parameters of a function."""
        arguments = node.args
        defaults: list[ast.expr | None] = [None] * (len(own) - len(arguments.defaults)) + list(arguments.defaults)
        pairs = [*zip(own, defaults, strict=True), *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
        texts = [_safe(a.arg) if d is None else f"{_safe(a.arg)} = {self.expr(d)}" for a, d in pairs]
        if arguments.vararg is not None:
            texts.append(f"...{_safe(arguments.vararg.arg)}")
        return ", ".join(texts)

    def body(self, node: ast.FunctionDef, first: str | None = None) -> str:
        """Write the body of a function, with its variables on top."""
        parameters = {a.arg for a in (*node.args.args, *node.args.kwonlyargs)}
        inner = sorted(_assigned(node.body) - parameters)
        self.locals.append(parameters | set(inner))
        lines = [f"const {first} = this;"] if first else []
        if inner:
            lines.append(f"let {', '.join(map(_safe, inner))};")
        lines += [self.statement(part) for part in node.body]
        self.locals.pop()
        return "\n".join(["", *filter(None, lines), ""])

    def block(self, body: Iterable[ast.stmt]) -> str:
        """Write statements in braces."""
        return "{\n" + "\n".join(filter(None, map(self.statement, body))) + "\n}"

    def statement(self, node: ast.stmt) -> str:
        """Write a statement."""
        writer = getattr(self, f"_{type(node).__name__}", None)
        if writer is None:
            raise NotImplementedError(f"{type(node).__name__}: {ast.unparse(node)}")
        text: str = writer(node)
        return text

    def _Expr(self, node: ast.Expr) -> str:
        return "" if isinstance(node.value, ast.Constant) else f"{self.expr(node.value)};"

    def _Assert(self, _: ast.Assert) -> str:
        return ""

    def _Pass(self, _: ast.Pass) -> str:
        return ""

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
        return f"{_safe(node.name)} = py.named({head} {{{self.body(node)}}}, {names!r});"

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

    def target(self, node: ast.expr) -> str:
        """Write a name or a pattern that is assigned to."""
        if isinstance(node, ast.Tuple | ast.List):
            return f"[{', '.join(map(self.target, node.elts))}]"
        if isinstance(node, ast.Starred):
            return f"...{self.target(node.value)}"
        return _safe(node.id) if isinstance(node, ast.Name) else self.expr(node)

    def test(self, node: ast.expr) -> str:
        """Write a condition."""
        return f"py.t({self.expr(node)})"

    def expr(self, node: ast.expr) -> str:
        """Write an expression."""
        writer = getattr(self, f"_{type(node).__name__}", None)
        if writer is None:
            raise NotImplementedError(f"{type(node).__name__}: {ast.unparse(node)}")
        text: str = writer(node)
        return text

    def _Constant(self, node: ast.Constant) -> str:
        if node.value is None or isinstance(node.value, bool):
            return {None: "null", True: "true", False: "false"}[node.value]
        if isinstance(node.value, str):
            return _quoted(node.value)
        return "undefined" if node.value is Ellipsis else repr(node.value)

    def _Name(self, node: ast.Name) -> str:
        known = any(node.id in names for names in self.locals)
        if node.id == "iter" and not known:
            return "py.iterator"
        return f"py.{node.id}" if node.id in BUILTINS and not known else _safe(node.id)

    def _Attribute(self, node: ast.Attribute) -> str:
        if node.attr == "__getitem__":
            return f"py.getter({self.expr(node.value)})"
        if node.attr in self.methods:  # a method that is passed on
            return f"py.bound({self.expr(node.value)}, {_quoted(node.attr)})"
        return f"{self.expr(node.value)}.{node.attr}"

    def _BinOp(self, node: ast.BinOp) -> str:
        return f"py.{BINARY[type(node.op)]}({self.expr(node.left)}, {self.expr(node.right)})"

    def _UnaryOp(self, node: ast.UnaryOp) -> str:
        inner = self.expr(node.operand)
        if isinstance(node.op, ast.Not):
            return f"!py.t({inner})"
        return f"py.{'neg' if isinstance(node.op, ast.USub) else 'invert'}({inner})"

    def _BoolOp(self, node: ast.BoolOp) -> str:
        name = "and" if isinstance(node.op, ast.And) else "or"
        text = self.expr(node.values[-1])
        for value in reversed(node.values[:-1]):
            text = f"py.{name}({self.expr(value)}, () => {text})"
        return text

    def _Compare(self, node: ast.Compare) -> str:
        sides = [node.left, *node.comparators]
        texts = [self._compared(a, op, b) for a, op, b in zip(sides, node.ops, sides[1:], strict=False)]
        text = texts[-1]
        for other in reversed(texts[:-1]):
            text = f"py.and({other}, () => {text})"
        return text

    def _compared(self, left: ast.expr, op: ast.cmpop, right: ast.expr) -> str:
        a, b = self.expr(left), self.expr(right)
        if isinstance(op, ast.Is | ast.IsNot):
            return f"({a} {'==' if isinstance(op, ast.Is) else '!='} {b})"
        if isinstance(op, ast.NotEq):
            return f"py.ne({a}, {b})"
        if isinstance(op, ast.NotIn):
            return f"!py.in({a}, {b})"
        return f"py.{COMPARED[type(op)]}({a}, {b})"

    def _IfExp(self, node: ast.IfExp) -> str:
        return f"({self.test(node.test)} ? {self.expr(node.body)} : {self.expr(node.orelse)})"

    def _NamedExpr(self, node: ast.NamedExpr) -> str:
        return f"({self.target(node.target)} = {self.expr(node.value)})"

    def _Subscript(self, node: ast.Subscript) -> str:
        if isinstance(node.slice, ast.Slice):
            ends = [node.slice.lower, node.slice.upper, node.slice.step]
            parts = ["null" if end is None else self.expr(end) for end in ends]
            return f"py.slice({self.expr(node.value)}, {', '.join(parts)})"
        if isinstance(node.slice, ast.Tuple) and any(isinstance(part, ast.Slice) for part in node.slice.elts):
            return f"py.column({self.expr(node.value)})"
        return f"py.get({self.expr(node.value)}, {self.expr(node.slice)})"

    def _Starred(self, node: ast.Starred) -> str:
        return f"...py.iter({self.expr(node.value)})"

    def _Tuple(self, node: ast.Tuple | ast.List) -> str:
        return f"[{', '.join(map(self.expr, node.elts))}]"

    _List = _Tuple

    def _Set(self, node: ast.Set) -> str:
        return f"new Set([{', '.join(map(self.expr, node.elts))}])"

    def _Dict(self, node: ast.Dict) -> str:
        parts = [
            self.expr(value) if key is None else f"[[{self.expr(key)}, {self.expr(value)}]]"
            for key, value in zip(node.keys, node.values, strict=True)
        ]
        return f"py.merge({', '.join(parts)})"

    def _Lambda(self, node: ast.Lambda) -> str:
        names = {argument.arg for argument in node.args.args}
        self.locals.append(names)
        text = f"(({', '.join(_safe(a.arg) for a in node.args.args)}) => {self.expr(node.body)})"
        self.locals.pop()
        return text

    def _JoinedStr(self, node: ast.JoinedStr) -> str:
        parts = [
            f"py.format({self.expr(part.value)}, {_format(part)})"
            if isinstance(part, ast.FormattedValue)
            else self.expr(part)
            for part in node.values
        ]
        return f"[{', '.join(parts)}].join('')"

    def _ListComp(self, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> str:
        return self._collected(node.generators, [node.elt])

    _GeneratorExp = _ListComp

    def _SetComp(self, node: ast.SetComp) -> str:
        return f"new Set({self._collected(node.generators, [node.elt])})"

    def _DictComp(self, node: ast.DictComp) -> str:
        return f"new Map({self._collected(node.generators, [node.key, node.value])})"

    def _collected(self, generators: Sequence[ast.comprehension], elements: Sequence[ast.expr]) -> str:
        names = {n.id for g in generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        self.locals.append(names)
        head, tail = "", ""
        for each in generators:
            head += f"for (const {self.target(each.target)} of py.iter({self.expr(each.iter)})) {{ "
            head += "".join(f"if (!{self.test(condition)}) continue; " for condition in each.ifs)
            tail += "}"
        texts = [self.expr(element) for element in elements]
        value = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        self.locals.pop()
        return f"(() => {{ const $all = []; {head}$all.push({value}); {tail} return $all; }})()"

    def _Yield(self, node: ast.Yield) -> str:
        return f"(yield {'null' if node.value is None else self.expr(node.value)})"

    def _YieldFrom(self, node: ast.YieldFrom) -> str:
        return f"(yield* py.iter({self.expr(node.value)}))"

    def _Call(self, node: ast.Call) -> str:
        arguments = ", ".join(map(self.expr, node.args))
        words = [word for word in node.keywords if word.arg != "strict"]
        options = ", ".join(self._keyword(word) for word in words)
        function = node.func
        if isinstance(function, ast.Attribute) and not _is_module(function.value):
            inner = self.expr(function.value)
            if function.attr in METHODS:
                parts = [_quoted(function.attr), inner, arguments, f"{{{options}}}" if words else ""]
                return f"py.m({', '.join(filter(None, parts))})"
            if words:
                return f"py.callm({inner}, {_quoted(function.attr)}, [{arguments}], {{{options}}})"
            return f"{inner}.{function.attr}({arguments})"
        name = self.expr(function)
        if words:
            return f"py.call({name}, [{arguments}], {{{options}}})"
        return f"new {name}({arguments})" if name in self.classes or name == "cls" else f"{name}({arguments})"

    def _keyword(self, word: ast.keyword) -> str:
        value = self.expr(word.value)
        return f"...py.object({value})" if word.arg is None else f"{word.arg}: {value}"


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


def number_source(function: ast.FunctionDef) -> str:
    r"""Write a shipped formula, a function of numbers alone, on JavaScript's own operators.

    >>> tree = ast.parse("def f(a, b):\n    t0 = (-(-(a)//(b)))\n    return (t0, Maximum(a, 2))")
    >>> number_source(tree.body[0])
    '(a,b)=>{const t0=(-Math.floor((-a)/b));return [t0,Math.max(a,2)];}'
    """
    names = ",".join(argument.arg for argument in function.args.args)
    lines = []
    for part in function.body:
        if isinstance(part, ast.Assign):
            lines.append(f"const {ast.unparse(part.targets[0])}={_number(part.value)};")
        elif isinstance(part, ast.Return) and part.value is not None:
            lines.append(f"return {_number(part.value)};")
    return f"({names})=>{{{''.join(lines)}}}"


NUMBER_CALLS = {"Maximum": "Math.max", "Minimum": "Math.min", "SumOfFloors": "floorSumNumber", "Ratio": "over"}


def _number(node: ast.expr) -> str:
    if isinstance(node, ast.Tuple):
        return f"[{','.join(map(_number, node.elts))}]"
    if isinstance(node, ast.BinOp):
        left, right = _number(node.left), _number(node.right)
        if isinstance(node.op, ast.FloorDiv):
            return f"Math.floor({left}/{right})"
        if isinstance(node.op, ast.Pow):
            return f"({left}**{right})"
        return f"({left}{ {ast.Add: '+', ast.Sub: '-', ast.Mult: '*'}[type(node.op)] }{right})"
    if isinstance(node, ast.UnaryOp):
        return f"(-{_number(node.operand)})"
    if isinstance(node, ast.Call):
        return f"{NUMBER_CALLS[ast.unparse(node.func)]}({','.join(map(_number, node.args))})"
    if isinstance(node, ast.Name | ast.Constant):
        return ast.unparse(node)
    raise NotImplementedError(ast.unparse(node))


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("np", "math")


def _format(part: ast.FormattedValue) -> str:
    return "null" if part.format_spec is None else _quoted(ast.unparse(part.format_spec)[2:-1])


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def _safe(name: str) -> str:
    return f"{name}$" if name in RESERVED else name


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
