"""More small programs of tf.function and AutoGraph (expressions, gradients, keys of traces), run by TensorFlow and by Stoker. What they print must be the same.

    python test/python/function_referee.py > test/python/function_referee.expected.txt    # the real TensorFlow
    python -m stoker test/python/function_referee.py                             # Stoker; test_data_referee.py compares
"""
import functools
import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from referee import main, program  # noqa: E402

C = tf.constant


@program
def and_or_not():
    @tf.function
    def f(a, b):
        if a > 0 and b > 0:
            r = 1
        elif a > 0 or b > 0:
            r = 2
        elif not (a < 0 and b < 0):
            r = 3
        else:
            r = 4
        return r
    return [f(C(x), C(y)) for x, y in ((1, 1), (1, -1), (0, 0), (-1, -1))]


@program
def chained_compare():
    @tf.function
    def f(x):
        if 0 < x < 10:
            return x
        return -1
    return (f(C(5)), f(C(50)))


@program
def in_op():
    @tf.function
    def f(x, l):
        if x in l:
            return 1
        return 0
    return (f(3, [1, 2, 3]), f(5, [1, 2, 3]))


@program
def is_none():
    @tf.function
    def f(x, y=None):
        if y is None:
            return x
        if y > 0:
            return x + y
        return x - y
    return (f(C(1)), f(C(1), C(2)), f(C(1), C(-2)))


@program
def zip_enumerate():
    @tf.function
    def f(x, y):
        s = 0
        for i, (a, b) in enumerate(zip(x, y)):
            s += i * a + b
        return s
    try:
        return (f(C([1, 2, 3]), C([4, 5, 6])), f([1, 2], [3, 4]))
    except Exception as e:
        return type(e).__name__


@program
def enumerate_tensor():
    @tf.function
    def f(x):
        s = 0
        for i, a in enumerate(x):
            s += i * a
        return s
    return f(C([1, 2, 3]))


@program
def range_tensor():
    @tf.function
    def f(n):
        s = 0
        for i in range(n):
            s += i
        for i in range(1, n, 2):
            s += 100 * i
        return s
    return (f(C(5)), f(5))


@program
def len_tensor():
    @tf.function
    def f(x):
        return len(x) * 2
    return f(C([1, 2, 3]))


@program
def any_all_py():
    @tf.function
    def f(x):
        return (all([True, x.shape[0] == 3]), any([False]))
    return f(C([1, 2, 3]))


@program
def max_min_py():
    @tf.function
    def f(x):
        return (max(3, 5) + x, min(1, 2) + x, abs(x), int(3) + x, float(2) + tf.cast(x, tf.float32))
    return f(C(-1))


@program
def ternary_nested():
    @tf.function
    def f(x):
        return 1 if x > 0 else 0 if x == 0 else -1
    return (f(C(1)), f(C(0)), f(C(-1)))


@program
def walrus():
    @tf.function
    def f(x):
        if (y := (x * 2)) > 5:
            return y
        return x
    return (f(C(3)), f(C(1)))


@program
def comprehension():
    @tf.function
    def f(x):
        return (tf.stack([v * 2 for v in [x, x + 1]]), {k: x * k for k in range(2)}, sum([x, x]))
    return f(C(3))


@program
def comp_over_tensor():
    @tf.function
    def f(x):
        return [v + 1 for v in tf.unstack(x)]
    return f(C([1, 2]))


@program
def starargs():
    @tf.function
    def f(*a, **k):
        s = 0
        for v in a:
            s += v
        for n in sorted(k):
            s += k[n] * 10
        return s
    return f(C(1), C(2), x=C(3), y=C(4))


@program
def global_effects():
    seen = []

    @tf.function
    def f(x):
        seen.append('t')
        if x > 0:
            seen.append('a')
        else:
            seen.append('b')
        return x
    f(C(1))
    f(C(2))
    f(C(-1))
    return seen


@program
def while_grad():
    @tf.function
    def f(x):
        with tf.GradientTape() as t:
            t.watch(x)
            y = x
            while y < 100.0:
                y = y * x
        return (y, t.gradient(y, x))
    return f(C(3.0))


@program
def for_grad():
    x = tf.Variable([1.0, 2.0, 3.0])

    @tf.function
    def f():
        with tf.GradientTape() as t:
            s = 0.0
            for v in x:
                if v > 1.5:
                    s += v * v
                else:
                    s += v
        return (s, t.gradient(s, x))
    return f()


@program
def grad_break():
    @tf.function
    def f(x):
        with tf.GradientTape() as t:
            t.watch(x)
            s = C(0.0)
            for i in tf.range(10):
                if s > 5.0:
                    break
                s += x * tf.cast(i, tf.float32)
        return (s, t.gradient(s, x))
    return f(C(1.0))


@program
def while_multi():
    @tf.function
    def collatz(n):
        s = 0
        while n != 1:
            if n % 2 == 0:
                n = n // 2
            else:
                n = 3 * n + 1
            s += 1
        return s
    return collatz(C(27))


@program
def early_returns():
    @tf.function
    def f(x):
        if x < 0:
            return 'neg' if False else C(-1)
        if x == 0:
            return C(0)
        if x > 100:
            if x > 1000:
                return C(3)
            return C(2)
        return C(1)
    return [f(C(v)) for v in (-1, 0, 5, 500, 5000)]


@program
def loop_in_branch():
    @tf.function
    def f(x):
        if x > 0:
            for i in tf.range(x):
                x += i
        else:
            while x < 0:
                x += 3
        return x
    return (f(C(4)), f(C(-4)))


@program
def aug_subscript():
    @tf.function
    def f(x):
        l = [x, x]
        for i in range(2):
            l[i] += i
        return l
    return f(C(1))


@program
def del_stmt():
    @tf.function
    def f(x):
        t = x * 2
        del t
        if x > 0:
            x = x + 1
        return x
    return f(C(1))


@program
def global_var():
    global GV
    GV = 3

    @tf.function
    def f(x):
        global GV
        GV = GV + 1
        return x + GV
    return (f(C(1)), GV)


@program
def do_not_convert():
    @tf.autograph.experimental.do_not_convert
    def g(x):
        return x + 1 if isinstance(x, tf.Tensor) else 0

    @tf.function
    def f(x):
        return g(x)
    return f(C(1))


@program
def autograph_false():
    @tf.function(autograph=False)
    def f(x):
        return tf.cond(x > 0, lambda: x, lambda: -x)

    @tf.function(autograph=False)
    def g(x):
        if x > 0:
            return x
        return -x
    try:
        e = g(C(1))
    except Exception as err:
        e = type(err).__name__
    return (f(C(-2)), e)


@program
def to_code():
    def f(x):
        if x > 0:
            return x
        return -x
    c = tf.autograph.to_code(f)
    return (isinstance(c, str), 'def ' in c)


@program
def to_graph():
    def f(x):
        if x > 0:
            return x
        return -x
    return tf.autograph.to_graph(f)(C(-3))


@program
def partial_():
    def f(a, x):
        if x > 0:
            return x + a
        return x - a
    return (tf.function(functools.partial(f, 10))(C(1)), tf.function(functools.partial(f, 10))(C(-1)))


@program
def callable_obj():
    class K:
        def __call__(s, x):
            if x > 0:
                return x * 3
            return x
    return (tf.function(K())(C(2)), tf.function(K())(C(-2)))


@program
def strings_if():
    @tf.function
    def f(x):
        if x > 0:
            return tf.constant('pos')
        return tf.constant('neg')
    return (f(C(1)), f(C(-1)))


@program
def str_compare():
    @tf.function
    def f(s):
        if s == 'a':
            return 1
        return 2
    return (f(C('a')), f(C('b')))


@program
def variable_loop():
    v = tf.Variable(1)

    @tf.function
    def f(n):
        for _ in tf.range(n):
            if v > 20:
                break
            v.assign(v * 2)
        return v.read_value()
    return (f(C(3)), f(C(10)), v)


@program
def var_cond_side():
    v = tf.Variable(0.0)

    @tf.function
    def f(x):
        if x > 0:
            v.assign_add(1.0)
        else:
            v.assign_sub(10.0)
    f(C(1))
    f(C(-1))
    return v


@program
def loop_var_after():
    @tf.function
    def f(n):
        i = -1
        for i in tf.range(n):
            pass
        return i
    return (f(C(4)), f(C(0)))


@program
def iterate_2d():
    @tf.function
    def f(x):
        s = tf.zeros([2])
        for r in x:
            s += r
        return s
    return f(C([[1.0, 2.0], [3.0, 4.0]]))


@program
def iterate_dict_py():
    @tf.function
    def f(d):
        s = 0
        for k, v in d.items():
            if v > 1:
                s += v
        return s
    return f({'a': C(1), 'b': C(2), 'c': C(3)})


@program
def max_iterations():
    @tf.function
    def f(x):
        i = C(0)
        while i < 100:
            tf.autograph.experimental.set_loop_options(maximum_iterations=5)
            i += 1
        return i
    return f(C(0))


@program
def multi_trace_types():
    n = [0]

    @tf.function
    def f(x):
        n[0] += 1
        return x
    f(1)
    f(1)
    f(2)
    f(C(1))
    f(C(2))
    f(C([1]))
    f(C([2]))
    f(np.float32(1))
    return n[0]


@program
def input_signature():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def f(x):
        s = 0
        for v in x:
            s += v
        return s
    try:
        f(C([[1]]))
        e = ''
    except (TypeError, ValueError) as err:
        e = type(err).__name__
    return (f(C([1, 2])), f(C([1, 2, 3])), e)


@program
def reduce_retracing():
    @tf.function(reduce_retracing=True)
    def f(x):
        return tf.reduce_sum(x)
    return (f(C([1, 2])), f(C([1, 2, 3])))


@program
def py_random_control():
    @tf.function
    def f(x, flag):
        if flag:
            return x + 1
        else:
            return x - 1
    return (f(C(1), True), f(C(1), False), f(C(1), C(True)))


@program
def if_shape():
    @tf.function
    def f(x):
        if tf.shape(x)[0] > 2:
            return x[0]
        return x[-1]
    return (f(C([1, 2, 3])), f(C([1, 2])))


@program
def bool_tensor_cond():
    @tf.function
    def f(x):
        if tf.reduce_any(x):
            return 1
        return 0
    return (f(C([True, False])), f(C([False])))


@program
def int_tensor_cond():
    @tf.function
    def f(x):
        if x:
            return 1
        return 0
    try:
        return (f(C(2)), f(C(0)))
    except Exception as e:
        return type(e).__name__


@program
def stack_while_ta_grad():
    @tf.function
    def f(x):
        with tf.GradientTape() as t:
            t.watch(x)
            ta = tf.TensorArray(tf.float32, size=3)
            for i in tf.range(3):
                ta = ta.write(i, x * tf.cast(i, tf.float32))
            y = tf.reduce_sum(ta.stack() ** 2)
        return (y, t.gradient(y, x))
    return f(C(2.0))


@program
def py_func_in_loop():
    @tf.function
    def f(n):
        s = 0.0
        for i in tf.range(n):
            s += tf.numpy_function(lambda a: np.float32(a * 2), [i], tf.float32)
        return s
    return f(C(4))


@program
def raise_in_function():
    @tf.function
    def f(x):
        if x.shape.rank != 1:
            raise ValueError('rank one please')
        return x
    try:
        f(C(1))
    except ValueError as e:
        return 'rank one please' in str(e)


@program
def raise_in_branch():
    @tf.function
    def f(x):
        if x > 0:
            raise ValueError('no')
        return x
    try:
        return f(C(-1))
    except Exception as e:
        return type(e).__name__


@program
def match_stmt():
    @tf.function
    def f(x, mode):
        match mode:
            case 'a':
                y = x + 1
            case _:
                y = x - 1
        if y > 0:
            return y
        return -y
    return (f(C(1), 'a'), f(C(1), 'b'))


@program
def fstring_assert():
    @tf.function
    def f(x):
        name = f'{x.dtype.name}'
        tf.debugging.assert_equal(name, 'int32')
        return x
    return f(C(1))


if __name__ == "__main__":
    main(sys.argv[1:])
