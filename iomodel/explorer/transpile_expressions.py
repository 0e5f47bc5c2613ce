"""JavaScript of Python's expressions, as calls of ``py`` that keep Python's meaning."""

from __future__ import annotations

import ast
from collections.abc import Sequence

BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv", ast.Mod: "mod",
    ast.Pow: "pow", ast.LShift: "shl", ast.RShift: "shr", ast.BitOr: "bor", ast.BitAnd: "band", ast.BitXor: "bxor",
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
"""Names that `py` provides: Python's, and those of :mod:`iomodel.common.arithmetic`, which it has for numbers."""
METHODS = frozenset(
    {
        "get", "items", "values", "keys", "setdefault", "update", "append", "add", "join",
        "index", "count", "max", "any", "all", "astype", "tolist", "ravel", "reshape",
        "split", "issuperset", "isdigit", "extend", "bit_length",
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


class ExpressionWriter:
    """A writer of expressions; the names of local variables, methods and classes decide how some are written."""

    locals: list[set[str]]
    methods: set[str]
    classes: set[str]

    def target(self, node: ast.expr) -> str:
        """Write a name or a pattern that is assigned to."""
        if isinstance(node, ast.Tuple | ast.List):
            return f"[{', '.join(map(self.target, node.elts))}]"
        if isinstance(node, ast.Starred):
            return f"...{self.target(node.value)}"
        return safe(node.id) if isinstance(node, ast.Name) else self.expr(node)

    def test(self, node: ast.expr) -> str:
        """Write a condition."""
        return f"py.t({self.expr(node)})"

    def expr(self, node: ast.expr) -> str:
        """Write an expression."""
        return self.written(node)

    def written(self, node: ast.AST) -> str:
        """Write a node by the method of its type."""
        writer = getattr(self, f"_{type(node).__name__}", None)
        if writer is None:
            raise NotImplementedError(f"{type(node).__name__}: {ast.unparse(node)}")
        text: str = writer(node)
        return text

    def _Constant(self, node: ast.Constant) -> str:
        if node.value is None or isinstance(node.value, bool):
            return {None: "null", True: "true", False: "false"}[node.value]
        if isinstance(node.value, str):
            return quoted(node.value)
        return "undefined" if node.value is Ellipsis else repr(node.value)

    def _Name(self, node: ast.Name) -> str:
        known = any(node.id in names for names in self.locals)
        if node.id == "iter" and not known:
            return "py.iterator"
        return f"py.{node.id}" if node.id in BUILTINS and not known else safe(node.id)

    def _Attribute(self, node: ast.Attribute) -> str:
        if node.attr == "__getitem__":
            return f"py.getter({self.expr(node.value)})"
        if node.attr in self.methods:  # a method that is passed on
            return f"py.bound({self.expr(node.value)}, {quoted(node.attr)})"
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
        text = f"(({', '.join(safe(a.arg) for a in node.args.args)}) => {self.expr(node.body)})"
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
                parts = [quoted(function.attr), inner, arguments, f"{{{options}}}" if words else ""]
                return f"py.m({', '.join(filter(None, parts))})"
            if words:
                return f"py.callm({inner}, {quoted(function.attr)}, [{arguments}], {{{options}}})"
            return f"{inner}.{function.attr}({arguments})"
        name = self.expr(function)
        if words:
            return f"py.call({name}, [{arguments}], {{{options}}})"
        return f"new {name}({arguments})" if name in self.classes or name == "cls" else f"{name}({arguments})"

    def _keyword(self, word: ast.keyword) -> str:
        value = self.expr(word.value)
        return f"...py.object({value})" if word.arg is None else f"{word.arg}: {value}"


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("np", "math")


def _format(part: ast.FormattedValue) -> str:
    return "null" if part.format_spec is None else quoted(ast.unparse(part.format_spec)[2:-1])


def quoted(text: str) -> str:
    """Write a text as a literal of JavaScript."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def safe(name: str) -> str:
    """Return a name that is no reserved word of JavaScript."""
    return f"{name}$" if name in RESERVED else name
