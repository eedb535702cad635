"""Small programs of tf.function and AutoGraph, run by TensorFlow and by Stoker. What they print must be the same.

    python test/python/autograph_referee.py > test/python/autograph_referee.expected.txt    # the real TensorFlow
    python -m stoker test/python/autograph_referee.py                             # Stoker; test_data_referee.py compares
"""
import collections
import contextlib
import functools
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from referee import main, program  # noqa: E402

C = tf.constant


@program
def break_while():
    @tf.function
    def f(n):
        i = C(0)
        s = C(0)
        while True:
            i += 1
            if i > n:
                break
            if i % 2 == 0:
                continue
            s += i
        return (i, s)
    return (f(C(7)), f(C(0)))


@program
def for_break_else():
    @tf.function
    def f(x, lim):
        s = 0.0
        for v in x:
            if v > lim:
                break
            s += v
        else:
            s = -1.0
        return s
    return (f(C([1.0, 2.0, 3.0]), C(2.0)),)


@program
def for_else_py():
    @tf.function
    def f(x):
        for i in range(3):
            if i == 5:
                break
        else:
            return x + 1
        return x
    return f(C(1))


@program
def return_in_loop():
    @tf.function
    def f(x, t):
        for i in tf.range(tf.shape(x)[0]):
            if x[i] == t:
                return i
        return -1
    return (f(C([3, 5, 7]), C(7)), f(C([3, 5, 7]), C(1)))


@program
def return_in_while():
    @tf.function
    def f(n):
        i = 0
        while i < n:
            if i * i > 10:
                return i
            i += 1
        return n
    return (f(C(9)), f(C(2)), f(9))


@program
def nested_loops():
    @tf.function
    def f(n):
        s = 0
        for i in tf.range(n):
            for j in tf.range(n):
                if j > i:
                    break
                if (i + j) % 2:
                    continue
                s += i * 10 + j
        return s
    return f(C(5))


@program
def nested_def():
    @tf.function
    def f(x):
        def g(y):
            if y > 0:
                return y * 2
            return y - 1
        return g(x) + g(-x)
    return (f(C(3)), f(C(-4)))


@program
def nonlocal_():
    @tf.function
    def f(x):
        t = 0

        def add(v):
            nonlocal t
            t = t + v
        for i in range(3):
            add(x)
        return t
    return f(C(2))


@program
def nonlocal_in_branch():
    @tf.function
    def f(x):
        t = C(0)

        def add(v):
            nonlocal t
            if v > 0:
                t = t + v
        add(x)
        add(-x)
        add(x * 2)
        return t
    return f(C(2))


@program
def dataset_loop():
    @tf.function
    def f(ds):
        s = C(0, tf.int64)
        n = 0
        for x in ds:
            s += x
            n += 1
        return (s, n)
    return f(tf.data.Dataset.range(5))


@program
def dataset_break():
    @tf.function
    def f(ds):
        s = C(0, tf.int64)
        for x in ds:
            if x > 3:
                break
            if x == 1:
                continue
            s += x
        return s
    return f(tf.data.Dataset.range(100))


@program
def dataset_enumerate():
    @tf.function
    def f(ds):
        s = C(0, tf.int64)
        for i, (a, b) in ds.enumerate():
            s += i * a + b
        return s
    d = tf.data.Dataset.range(4)
    return f(tf.data.Dataset.zip((d, d)))


@program
def dataset_closure():
    ds = tf.data.Dataset.from_tensor_slices(dict(a=[1.0, 2.0, 3.0, 4.0], b=[1, 2, 3, 4])).batch(2)
    v = tf.Variable(0.0)

    @tf.function
    def f():
        for e in ds:
            v.assign_add(tf.reduce_sum(e['a']) * tf.cast(e['b'][0], tf.float32))
        return v.read_value()
    return (f(), f())


@program
def dataset_return():
    @tf.function
    def f(ds):
        for x in ds:
            if x > 2:
                return x
        return C(-1, tf.int64)
    return (f(tf.data.Dataset.range(9)), f(tf.data.Dataset.range(2)))


@program
def dataset_iterator():
    @tf.function
    def f(it):
        s = C(0, tf.int64)
        for _ in tf.range(3):
            s += next(it)
        return s
    it = iter(tf.data.Dataset.range(10))
    return (f(it), f(it))


@program
def dataset_iterator_optional():
    @tf.function
    def f(it):
        s = C(0, tf.int64)
        o = it.get_next_as_optional()
        while o.has_value():
            s += o.get_value()
            o = it.get_next_as_optional()
        return s
    return f(iter(tf.data.Dataset.range(5)))


@program
def dataset_reduce():
    @tf.function
    def f(ds):
        return ds.reduce(C(0, tf.int64), lambda a, b: a + b if b > 1 else a)
    return f(tf.data.Dataset.range(5))


@program
def dataset_map_if():
    ds = tf.data.Dataset.range(6).map(lambda x: x * 2 if x % 2 == 0 else -x)

    def g(x):
        if x > 3:
            y = x * 10
        else:
            y = x
        return y
    return (list(ds.as_numpy_iterator()), list(tf.data.Dataset.range(6).map(g).as_numpy_iterator()))


@program
def dataset_filter():
    def keep(x):
        if x > 2:
            return True
        return x == 0
    return list(tf.data.Dataset.range(6).filter(keep).as_numpy_iterator())


@program
def assert_ok():
    @tf.function
    def f(x):
        assert x > 0, 'must be positive'
        return x + 1
    r = f(C(1))
    try:
        f(C(-1))
        e = 'none'
    except tf.errors.InvalidArgumentError as err:
        e = 'InvalidArgument ' + str('must be positive' in str(err))
    return (r, e)


@program
def tf_assert():
    @tf.function
    def f(x):
        tf.debugging.assert_greater(x, 0, message='bad x')
        tf.Assert(tf.reduce_all(x < 10), [x])
        return x
    out = []
    for v in ([1, 2], [0, 1], [11, 2]):
        try:
            out.append(f(C(v)))
        except tf.errors.InvalidArgumentError as err:
            out.append('bad x' in str(err))
    return out


@program
def lambda_cond():
    f = tf.function(lambda x: x * 2 if x > 0 else x - 1)
    return (f(C(3)), f(C(-3)))


@program
def lambda_list():
    fs = [lambda x: x + 1, lambda x: x * 2]

    @tf.function
    def f(x):
        for g in fs:
            x = g(x)
        return x
    return f(C(3))


@program
def closure_values():
    k = 3

    def mk(n):
        @tf.function
        def f(x):
            if x > n:
                return x - n * k
            return x + n * k
        return f
    return (mk(1)(C(5)), mk(10)(C(5)))


@program
def decorators():
    def twice(f):

        @functools.wraps(f)
        def g(*a, **k):
            return f(*a, **k) * 2
        return g

    @tf.function
    @twice
    def f(x):
        if x > 0:
            return x
        else:
            return -x
    return (f(C(-4)), f(C(2)))


@program
def class_methods():
    class A:
        def __init__(s):
            s.k = tf.Variable(2)

        @tf.function
        def call(s, x):
            if x > 0:
                s.k.assign_add(x)
            return s.helper(x)

        def helper(s, x):
            while x < 10:
                x += s.k
            return x

        @staticmethod
        @tf.function
        def st(x):
            return x + 1

        @classmethod
        def cm(cls, x):
            @tf.function
            def g(y):
                if y > 1:
                    return y
                return y + 100
            return g(x)
    a = A()
    return (a.call(C(1)), a.call(C(-1)), A.st(C(1)), A.cm(C(1)), a.k)


@program
def super_call():
    class A:
        def f(s, x):
            return x + 1

    class B(A):
        @tf.function
        def f(s, x):
            if x > 0:
                y = super().f(x)
            else:
                y = x
            return y
    return (B().f(C(1)), B().f(C(-1)))


@program
def generator_():
    def gen(x):
        for i in range(3):
            yield (x * i)

    @tf.function
    def f(x):
        s = 0
        for v in gen(x):
            s += v
        return s
    return f(C(2))


@program
def try_finally():
    log = []

    @tf.function
    def f(x):
        try:
            if x > 0:
                x = x + 1
        finally:
            log.append('f')
        return x
    return (f(C(1)), f(C(-1)), log)


@program
def try_except():
    @tf.function
    def f(x):
        try:
            y = {}['k']
        except KeyError:
            y = x + 1
        return y
    return f(C(1))


@program
def with_stmt():
    @contextlib.contextmanager
    def cm():
        yield 5

    @tf.function
    def f(x):
        with cm() as c:
            if x > 0:
                r = x + c
            else:
                r = x - c
        return r
    return (f(C(1)), f(C(-1)))


@program
def list_append_py():
    @tf.function
    def f(x):
        o = []
        for i in range(3):
            o.append(x * i)
        return tf.stack(o)
    return f(C(2))


@program
def list_append_tensor():
    @tf.function
    def f(n):
        o = []
        for i in tf.range(n):
            o.append(i)
        return o
    try:
        return f(C(3))
    except Exception as e:
        return type(e).__name__


@program
def tensorarray():
    @tf.function
    def f(n):
        ta = tf.TensorArray(tf.int32, size=0, dynamic_size=True)
        for i in tf.range(n):
            if i % 2 == 0:
                ta = ta.write(ta.size(), i * i)
        return ta.stack()
    return (f(C(6)), f(C(3)))


@program
def dict_state():
    @tf.function
    def f(x):
        d = {'a': x, 'b': x * 2}
        for i in tf.range(3):
            d['a'] = d['a'] + 1
            if i > 0:
                d['b'] = d['b'] * 2
        return d
    return f(C(1))


@program
def attr_state():
    class S:
        pass

    @tf.function
    def f(x):
        s = S()
        s.v = x
        s.n = C(0)
        while s.v < 20:
            s.v = s.v * 2
            s.n += 1
        return (s.v, s.n)
    return f(C(3))


@program
def tuple_state():
    @tf.function
    def f(n):
        a, b = (C(0), C(1))
        for _ in tf.range(n):
            a, b = (b, a + b)
        return (a, b)
    return f(C(10))


@program
def namedtuple_state():
    P = collections.namedtuple('P', 'x y')

    @tf.function
    def f(n):
        p = P(C(0), C(1.0))
        for i in tf.range(n):
            p = P(p.x + i, p.y * 2.0)
        return (p.x, p.y)
    return f(C(4))


@program
def shape_inv():
    @tf.function
    def f(n):
        x = tf.zeros([0], tf.int32)
        for i in tf.range(n):
            tf.autograph.experimental.set_loop_options(shape_invariants=[(x, tf.TensorShape([None]))])
            x = tf.concat([x, [i]], 0)
        return x
    return f(C(4))


@program
def shape_change_error():
    @tf.function
    def f(n):
        x = tf.zeros([1], tf.int32)
        for i in tf.range(n):
            x = tf.concat([x, [i]], 0)
        return x
    try:
        return f(C(3))
    except Exception as e:
        return type(e).__name__


@program
def dtype_change_error():
    @tf.function
    def f(n):
        x = C(0)
        for i in tf.range(n):
            x = C(1.0)
        return x
    try:
        return f(C(3))
    except Exception as e:
        return type(e).__name__


@program
def undefined_branch():
    @tf.function
    def f(x):
        if x > 0:
            y = 1
        return y
    try:
        return f(C(3))
    except Exception as e:
        return type(e).__name__


@program
def undefined_loop():
    @tf.function
    def f(n):
        for i in tf.range(n):
            y = i
        return y
    try:
        return f(C(3))
    except Exception as e:
        return type(e).__name__


@program
def none_branch():
    @tf.function
    def f(x):
        if x > 0:
            return x
    try:
        return f(C(3))
    except Exception as e:
        return type(e).__name__


@program
def struct_mismatch():
    @tf.function
    def f(x):
        if x > 0:
            r = (x, x)
        else:
            r = x
        return r
    try:
        return f(C(3))
    except Exception as e:
        return type(e).__name__


@program
def dtype_mismatch():
    @tf.function
    def f(x):
        if x > 0:
            r = C(1)
        else:
            r = C(1.0)
        return r
    try:
        return f(C(3))
    except Exception as e:
        return type(e).__name__


@program
def recursion():
    @tf.function
    def f(n):
        if n > 0:
            return f(n - 1)
        return 1
    try:
        return f(C(3))
    except Exception as e:
        return type(e).__name__


@program
def recursion_py():
    def fact(n):
        return 1 if n <= 1 else n * fact(n - 1)

    @tf.function
    def f(x):
        return x * fact(5)
    return f(C(2))


if __name__ == "__main__":
    main(sys.argv[1:])
