"""The rewriter by itself, with a stand-in engine whose symbolic values refuse to be asked for their truth."""
import types

import numpy as np
import pytest

from stoker import _autograph, _autograph_ops


class Symbol:
    """A value that is known to the test and unknown to Python."""

    def __init__(self, value, dtype=None):
        self.value = np.asarray(value, dtype)
        self.dtype, self.shape = self.value.dtype, self.value.shape

    def __bool__(self):
        raise TypeError("a symbolic value was asked for its truth")

    def __iter__(self):
        raise TypeError("a symbolic value was iterated")


def _binary(operation):
    def method(self, other):
        other = other.value if isinstance(other, Symbol) else other
        return Symbol(operation(self.value, other))

    return method


for _title, _operation in {"add": np.add, "sub": np.subtract, "mul": np.multiply, "lt": np.less, "gt": np.greater,
                           "le": np.less_equal, "ge": np.greater_equal, "mod": np.mod, "eq": np.equal}.items():
    setattr(Symbol, f"__{_title}__", _binary(_operation))
Symbol.__radd__, Symbol.__rmul__ = Symbol.__add__, Symbol.__mul__
Symbol.__neg__ = lambda self: Symbol(-self.value)


class Fake(types.SimpleNamespace):
    """Runs both branches (as tracing does) and takes the right one."""

    @staticmethod
    def is_symbolic(x):
        return isinstance(x, Symbol)

    is_tensor = is_symbolic

    @staticmethod
    def constant(x, dtype):
        return Symbol(x, dtype)

    @staticmethod
    def zeros_like(x):
        return Symbol(np.zeros_like(x.value if isinstance(x, Symbol) else x))

    def cond(self, pred, then, orelse, align):
        a, b = then(), orelse()
        x, y, finish = align(a, b)
        return finish(x if bool(pred.value) else y)

    def while_loop(self, test, body, values):
        self.loops += 1
        while bool(test(values).value):
            values = body(values)
        return values

    def loop_kind(self, items):
        return "tensor" if isinstance(items, Symbol) else None

    def places(self, items):
        return None

    def first_item(self, items):
        return Symbol(items.value[0])

    def spec_after(self, run, inputs=()):
        return run(*inputs)

    def for_loop(self, items, test, body, values):
        self.loops += 1
        for item in items.value:
            if test is not None:
                going = test(values)
                if not bool(going.value if isinstance(going, Symbol) else going):
                    break
            values = body(Symbol(item), values)
        return values

    @staticmethod
    def logical_not(x):
        return Symbol(~x.value)

    @staticmethod
    def logical_and(x, y):
        return Symbol(x.value & (y.value if isinstance(y, Symbol) else y))

    @staticmethod
    def logical_or(x, y):
        return Symbol(x.value | (y.value if isinstance(y, Symbol) else y))

    @staticmethod
    def maximum(x, y):
        y = y.value if isinstance(y, Symbol) else y
        return Symbol(np.maximum(x.value if isinstance(x, Symbol) else x, y))


@pytest.fixture(autouse=True)
def engine(monkeypatch):
    fake = Fake(loops=0)
    monkeypatch.setattr(_autograph_ops, "engine", fake)
    monkeypatch.setattr(_autograph, "is_users", lambda f: f.__module__ == __name__)
    return fake


def same(function, *cases):
    """The rewritten function gives on symbols what the function gives on numbers, and the same on numbers."""
    twin = _autograph.convert(function)
    assert twin is not function
    for case in cases:
        expected = function(*case)
        assert twin(*case) == expected
        got = twin(*[Symbol(v) for v in case])
        assert (got.value if isinstance(got, Symbol) else got) == pytest.approx(expected)


def test_if_else():
    def f(x):
        if x > 0:
            y = x * 2
        else:
            y = -x
        return y + 1

    same(f, (3,), (-4,), (0,))


def test_return_in_branches():
    def f(x):
        if x > 10:
            return x
        if x > 5:
            return x * 2
        elif x > 2:
            x = x + 1
        return -x

    same(f, (11,), (6,), (3,), (1,))


def test_if_without_else_updates():
    def f(x, y):
        if x > y:
            x = y
        return x

    same(f, (3, 2), (2, 3))


def test_while_with_break_and_continue(engine):
    def f(n):
        i, total = n * 0, n * 0
        while i < n:
            i = i + 1
            if i % 2 == 0:
                continue
            if i > 7:
                break
            total = total + i
        return total

    same(f, (4,), (20,), (0,))
    assert engine.loops == 3


def test_for_over_tensor_with_break():
    def f(xs):
        s = 0
        for q in xs:
            if q > 3:
                break
            s += q
        return s

    twin = _autograph.convert(f)
    assert twin(range(10)) == 6
    assert twin(Symbol(np.arange(10))).value == 6


def test_return_inside_loop():
    def f(xs, y):
        for x in xs:
            if x > y:
                return x
        return -y

    twin = _autograph.convert(f)
    assert twin([1, 5, 9], 4) == 5
    assert twin(Symbol(np.array([1, 5, 9])), Symbol(4)).value == 5
    assert twin(Symbol(np.array([1, 2, 3])), Symbol(4)).value == -4


def test_python_loop_with_symbolic_break():
    def f(x):
        n = x * 0
        for k in range(5):
            if x < k:
                break
            n = n + 1
        return n

    same(f, (2,), (9,), (-1,))


def test_temporaries_of_a_branch_are_no_outputs():
    def f(x):
        y = x
        if x > 0:
            t = x * 3
            y = t + 1
        if x < 0:
            t = "text of a branch"
            y = x - 1
        return y

    same(f, (2,), (-2,))


def test_undefined_in_one_branch():
    def f(x):
        if x > 0:
            y = 1.0
        return y

    with pytest.raises(ValueError, match="'y' must also be initialized in the else branch"):
        _autograph.convert(f)(Symbol(1))
    with pytest.raises(UnboundLocalError):
        _autograph.convert(f)(-1) + 1


def test_missing_return():
    def f(x):
        if x > 0:
            return x

    with pytest.raises(ValueError, match="must also be returned"):
        _autograph.convert(f)(Symbol(1))
    assert _autograph.convert(f)(-1) is None


def test_shape_change_in_loop():
    def f(x):
        y = x
        while x > 0:
            y = Symbol([1, 2])
            x = x - 1
        return y

    with pytest.raises(ValueError, match=r"'y' has shape \(\) before the loop, but shape \(2,\) after one iteration"):
        _autograph.convert(f)(Symbol(1))


def test_expressions():
    def f(x, y):
        a = x if x > y and not y > 3 else y
        b = 1 if x < 0 or y < 0 else 2
        c = 10 if 0 < x < 5 else 20
        return a + b + c

    same(f, (3, 2), (2, 3), (-1, 4), (7, -2))


def test_closures_stay_live_and_nonlocal_works():
    scale, count = 2, 0

    def f(x):
        nonlocal count
        if x > 0:
            count += 1
        return x * scale

    twin = _autograph.convert(f)
    assert twin(3) == 6 and count == 1
    scale = 5
    assert twin(3) == 15 and count == 2


def test_nested_functions_and_lambdas():
    def f(x):
        def inner(z):
            if z > 0:
                return z
            return -z

        twice = lambda q: q * 2 if q > 1 else q  # noqa: E731
        return inner(x) + twice(x)

    same(f, (3,), (-3,))


def helper(x):
    if x > 0:
        return x
    return x * 10


def test_called_functions_are_converted():
    def f(x):
        return helper(x) + max(x, 1)

    same(f, (3,), (-3,))


class Base:
    def scale(self, x):
        return x * 2


class Model(Base):
    def __init__(self):
        self.seen = 0

    def __call__(self, x, *, gain=3):
        if x > 0:
            self.seen = self.seen + 1
            x = super().scale(x)
        return x * gain


def test_methods_super_attributes_and_defaults():
    def f(model, x):
        return model(x)

    twin, model = _autograph.convert(f), Model()
    assert twin(model, 2) == 12 and model.seen == 1
    assert twin(model, Symbol(-2)).value == -6
    assert model.seen.value == 1


def test_for_target_and_else():
    def f(xs):
        for x in xs:
            pass
        else:
            x = x + 1
        return x

    assert _autograph.convert(f)([1, 2]) == 3
    assert _autograph.convert(f)(Symbol(np.array([1, 2]))).value == 3


def test_try_with_and_comprehensions():
    import contextlib

    def f(x):
        with contextlib.nullcontext(3) as k:
            try:
                values = [v * k for v in range(3) if v]
                if x > 0:
                    return sum(values)
            finally:
                k = 0
        return k

    assert f(1) == _autograph.convert(f)(1) == 9
    assert f(-1) == _autograph.convert(f)(-1) == 0


def test_generators_stay_as_they_are():
    def f(n):
        for i in range(n):
            yield i

    with pytest.warns(UserWarning, match="generator"):
        assert _autograph.convert(f) is f


def test_errors_name_the_users_line():
    def f(x):
        if x > 0:
            y = x + undefined_name  # noqa: F821
        return y

    try:
        _autograph.convert(f)(1)
    except NameError as error:
        told = _autograph.explain(error)
    assert str(told).startswith("in user code:\n\n    File \"" + __file__)
    assert "in f  *\n        y = x + undefined_name" in str(told)
    assert isinstance(told, NameError)


def test_lambda_in_a_file():
    twin = _autograph.convert(lambda x: x if x > 0 else -x)
    assert twin(Symbol(-3)).value == 3
