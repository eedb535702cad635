"""Small programs that save objects with functions and load them again, run by TensorFlow and by Stoker. What they print must be the same.

    python test/python/saved_referee.py > test/python/saved_referee.expected.txt    # the real TensorFlow
    python -m stoker test/python/saved_referee.py                          # Stoker; test_data_referee.py compares
"""
import collections
import os
import sys
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from referee import fails, main, program  # noqa: E402

C = tf.constant
F = tf.float32


def again(module, **options):
    folder = os.path.join(tempfile.mkdtemp(), "saved")
    tf.saved_model.save(module, folder, **options)
    return tf.saved_model.load(folder)


def holder(function, **parts):
    module = tf.Module()
    for name, part in parts.items():
        setattr(module, name, part)
    module.f = function
    return module


def one(function, *args, parts=None, also=()):
    """Results before and after, for the arguments that were traced and for others."""
    module = holder(function, **(parts or {}))
    before = [function(*args)] + [function(*more) for more in also]
    loaded = again(module)
    return before, [loaded.f(*args)] + [loaded.f(*more) for more in also]


class Linear(tf.Module):
    def __init__(self, n, m, name=None):
        super().__init__(name=name)
        self.w = tf.Variable(tf.reshape(tf.range(n * m, dtype=F), [n, m]) / 10, name="w")
        self.b = tf.Variable(tf.ones([m]), name="b", trainable=True)

    @tf.function(input_signature=[tf.TensorSpec([None, 3], F)])
    def __call__(self, x):
        return tf.nn.relu(x @ self.w - self.b)


@program
def adder():
    class Adder(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([], F)])
        def add(self, x):
            return x + x

    loaded = again(Adder())
    return loaded.add(C(3.)), list(loaded.signatures), loaded.signatures["serving_default"](C(4.)), loaded.signatures["serving_default"](x=C(5.))


@program
def open_batch():
    loaded = again(Linear(3, 2))
    return [loaded(tf.ones([n, 3])) for n in (1, 2, 5)], loaded.w, loaded.b


@program
def traced_shapes_only():
    module = tf.Module()
    module.v = tf.Variable(2.)
    module.f = tf.function(lambda x: x * module.v)
    module.f(C(1.))
    module.f(C([1., 2.]))
    loaded = again(module)
    return loaded.f(C(3.)), loaded.f(C([3., 4.])), fails(lambda: loaded.f(C([1., 2., 3.]))), fails(lambda: loaded.f(C(1)))


@program
def never_called():
    module = tf.Module()
    module.f = tf.function(lambda x: x)
    loaded = again(module)
    return fails(lambda: loaded.f(C(1.)))


@program
def python_arguments():
    module = tf.Module()

    def f(x, training=False, factor=2):
        return x * factor if training else x

    module.f = tf.function(f)
    module.f(C(1.), training=True)
    module.f(C(1.))
    module.f(C(1.), True, 5)
    loaded = again(module)
    return (loaded.f(C(3.)), loaded.f(C(3.), training=True), loaded.f(C(3.), True), loaded.f(x=C(3.), training=True, factor=5),
            fails(lambda: loaded.f(C(3.), factor=7)))


@program
def numbers_become_tensors():
    loaded = again(Linear(3, 2))
    return loaded([[1, 2, 3.]]), loaded(np.ones([2, 3], "float32")), fails(lambda: loaded(np.ones([2, 3]))), fails(lambda: loaded(C([1.])))


@program
def structures():
    Pair = collections.namedtuple("Pair", "a b")

    @tf.function
    def f(inputs, more):
        return {"sum": inputs["x"] + inputs["y"], "list": [more[0], more[1] * 2], "pair": Pair(more[0], inputs["x"]), "none": None}

    before, after = one(f, {"x": C(1.), "y": C(2.)}, [C(3.), C(4.)])
    return [dict(sorted(d.items())) for d in before + after]


@program
def nested_modules():
    class Net(tf.Module):
        def __init__(self):
            super().__init__()
            self.layers = [Linear(3, 3), Linear(3, 3)]
            self.named = {"last": Linear(3, 1)}
            self.scale = tf.Variable(2., trainable=False)

        @tf.function(input_signature=[tf.TensorSpec([None, 3], F, name="features")])
        def __call__(self, x):
            for layer in self.layers:
                x = layer(x)
            return {"hidden": x, "scaled": self.named["last"](x) * self.scale}

    net = Net()
    x = tf.reshape(tf.range(6, dtype=F), [2, 3])
    loaded = again(net)
    signature = loaded.signatures["serving_default"]
    made = [dict(sorted(d.items())) for d in (net(x), loaded(x), signature(features=x))]
    return (made, loaded.layers[1](x), loaded.named["last"].w, loaded.scale.trainable, len(loaded.layers),
            sorted(signature.structured_outputs), str(signature.structured_input_signature[1]["features"].shape))


@program
def assigning():
    class Counter(tf.Module):
        def __init__(self):
            super().__init__()
            self.n = tf.Variable(0)

        @tf.function(input_signature=[])
        def count(self):
            self.n.assign_add(1)
            return self.n.read_value()

        @tf.function(input_signature=[tf.TensorSpec([], tf.int32)])
        def set(self, n):
            self.n.assign(n)

        @tf.function(input_signature=[])
        def reset(self):
            self.n.assign(0)

    counter = Counter()
    counter.count()
    loaded = again(counter)
    made = [loaded.count(), loaded.count(), loaded.n]
    made += [int(v) for v in made]
    loaded.set(C(7))
    made.append(int(loaded.count()))
    loaded.reset()
    return [int(m) for m in made[3:]], int(loaded.n), int(counter.n)


@program
def shared_variable():
    module, v = tf.Module(), tf.Variable(1.)
    module.a, module.b = v, [v]
    module.f = tf.function(lambda: v * 2, input_signature=[])
    loaded = again(module)
    loaded.a.assign(5.)
    return loaded.b[0], loaded.f(), loaded.a is loaded.b[0]


@program
def branches():
    @tf.function(input_signature=[tf.TensorSpec([None], F)])
    def f(x):
        if tf.reduce_sum(x) > 0:
            y = x * 2
        else:
            y = x - 1
        return y

    return one(f, C([1., 2.]), also=[(C([-1.]),)])


@program
def loops():
    @tf.function(input_signature=[tf.TensorSpec([], tf.int32), tf.TensorSpec([None], F)])
    def f(n, x):
        total = tf.zeros_like(x)
        for i in tf.range(n):
            if i == 3:
                continue
            total += x * tf.cast(i, F)
        while tf.reduce_max(total) > 20:
            total /= 2
        return total

    return one(f, C(5), C([1., 2.]), also=[(C(9), C([3., 4., 5.]))])


@program
def rows():
    @tf.function(input_signature=[tf.TensorSpec([None, 2], F)])
    def f(x):
        state = tf.zeros([2])
        for row in x:
            state = state * 0.5 + row
        return state

    return one(f, tf.ones([3, 2]), also=[(tf.ones([20, 2]),), (tf.ones([1, 2]),)])


@program
def branch_assigns():
    module = tf.Module()
    module.v = tf.Variable(0.)

    @tf.function(input_signature=[tf.TensorSpec([], F)])
    def f(x):
        if x > 0:
            module.v.assign(x)
        return module.v + 1

    module.f = f
    loaded = again(module)
    return loaded.f(C(-1.)), loaded.f(C(3.)), loaded.f(C(-2.)), loaded.v, module.v


@program
def sizes_of_inputs():
    @tf.function(input_signature=[tf.TensorSpec([None, None], F)])
    def f(x):
        n, m = tf.shape(x)[0], tf.shape(x)[1]
        flat = tf.reshape(x, [n * m])
        ones = tf.ones([m, n])
        places = tf.cast(tf.range(n), F)[:, tf.newaxis]
        return flat, x @ ones, x + places, x[1:, :-1], tf.reshape(x, [-1]), tf.cast(n * 2 + 1, F) * x[0, 0], tf.eye(n)

    return one(f, tf.reshape(tf.range(6, dtype=F), [2, 3]), also=[(tf.ones([4, 2]),)])


@program
def causal_mask():
    @tf.function(input_signature=[tf.TensorSpec([None, None, 4], F)])
    def f(x):
        n = tf.shape(x)[1]
        mask = tf.linalg.band_part(tf.ones([n, n]), -1, 0)
        scores = tf.matmul(x, x, transpose_b=True)
        return tf.nn.softmax(tf.where(mask > 0, scores, -1e9)) @ x

    x = tf.reshape(tf.range(24, dtype=F), [2, 3, 4]) / 24
    return one(f, x, also=[(x[:1, :2],), (tf.tile(x, [1, 4, 1]),)])


@program
def masks_of_numpy():
    @tf.function(input_signature=[tf.TensorSpec([None, 5], F)])
    def f(x):
        return x

    @tf.function(input_signature=[tf.TensorSpec([5, 5], F)])
    def g(x):
        return x * np.tri(5, dtype="float32") + np.eye(5, k=1, dtype="float32")

    module = holder(f)
    module.g = g
    loaded = again(module)
    return loaded.f(tf.ones([2, 5])), loaded.g(tf.ones([5, 5]))


@program
def columns_that_must_be_four():
    mean = C([1., 2., 3., 4.])

    @tf.function(input_signature=[tf.TensorSpec([None, None], F)])
    def f(x):
        return tf.concat([x - mean, x], 1) @ tf.ones([8, 2])

    return one(f, tf.ones([3, 4]), also=[(tf.ones([1, 4]),)]), fails(lambda: one(f, tf.ones([3, 5])))


@program
def two_inputs_of_one_size():
    @tf.function(input_signature=[tf.TensorSpec([None], F), tf.TensorSpec([None], F)])
    def f(x, y):
        return tf.concat([x + y, x], 0)

    return one(f, C([1., 2.]), C([3., 4.]), also=[(C([1.]), C([2.])), (tf.ones([5]), tf.ones([5]))])


@program
def any_rank():
    @tf.function(input_signature=[tf.TensorSpec(None, F)])
    def f(x):
        return x * 2 + 1

    return one(f, C(1.), also=[(C([1., 2.]),), (tf.ones([2, 1, 2]),)])


@program
def constants():
    table = tf.constant(np.arange(12, dtype="float32").reshape(4, 3))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def f(i):
        return tf.gather(table, i), tf.one_hot(i, 4)

    return one(f, C([1, 3]), also=[(C([0]),)])


@program
def convolution():
    w = tf.Variable(tf.ones([3, 3, 1, 2]) / 9)

    @tf.function(input_signature=[tf.TensorSpec([None, None, None, 1], F)])
    def f(x):
        y = tf.nn.conv2d(x, w, 1, "SAME")
        y = tf.nn.max_pool2d(y, 2, 2, "SAME")
        return tf.reduce_mean(y, [1, 2])

    x = tf.reshape(tf.range(64, dtype=F), [1, 8, 8, 1])
    return one(f, x, parts={"w": w}, also=[(x[:, :5, :7],)])


@program
def training_step():
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.w, self.b = tf.Variable([[1.], [2.]]), tf.Variable([0.])

        @tf.function(input_signature=[tf.TensorSpec([None, 2], F), tf.TensorSpec([None, 1], F)])
        def step(self, x, y):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean((x @ self.w + self.b - y) ** 2)
            dw, db = tape.gradient(loss, [self.w, self.b])
            self.w.assign_sub(0.1 * dw)
            self.b.assign_sub(0.1 * db)
            return loss

    x, y = C([[1., 0.], [0., 1.], [1., 1.]]), C([[1.], [0.], [2.]])
    model = Model()
    loaded = again(model)
    return [loaded.step(x, y) for _ in range(3)], [model.step(x, y) for _ in range(3)], loaded.w, loaded.b, loaded.step(x[:1], y[:1])


@program
def trained_further():
    loaded = again(Linear(3, 2))
    x = tf.reshape(tf.range(6, dtype=F), [2, 3])
    losses = []
    for _ in range(3):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((loaded(x) - 1.) ** 2)
        gradients = tape.gradient(loss, [loaded.w, loaded.b])
        for v, g in zip([loaded.w, loaded.b], gradients):
            v.assign_sub(0.01 * g)
        losses.append(loss)
    return losses, loaded.w, loaded.b


@program
def inside_of_another_function():
    loaded = again(Linear(3, 2))

    @tf.function
    def f(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = loaded(x) * 2
        return y, tape.gradient(y, x)

    return f(tf.ones([2, 3])), f(tf.ones([4, 3]))


@program
def saved_twice():
    loaded = again(again(Linear(3, 2)))
    return loaded(tf.ones([2, 3])), list(loaded.signatures), loaded.w


@program
def given_signatures():
    module = tf.Module()
    module.v = tf.Variable(3.)

    @tf.function
    def times(x, y):
        return {"product": x * y * module.v, "sum": x + y}

    module.times = times
    asked = times.get_concrete_function(tf.TensorSpec([None], F), tf.TensorSpec([], F, name="factor"))
    loaded = again(module, signatures={"serving_default": asked, "other": asked})
    made = loaded.signatures["other"](x=C([1., 2.]), factor=C(2.))
    return sorted(loaded.signatures), made["product"], made["sum"], fails(lambda: loaded.signatures["other"](x=C([1.])))


@program
def signature_of_a_list():
    @tf.function(input_signature=[tf.TensorSpec([None], F)])
    def f(x):
        return x, x * 2

    module = holder(f)
    made = again(module, signatures=f).signatures["serving_default"](x=C([1., 2.]))
    return sorted(made), made["output_0"], made["output_1"]


@program
def no_function_as_signature():
    return fails(lambda: again(tf.Module(), signatures={"serving_default": 3})), fails(lambda: again(tf.Module(), signatures=lambda x: x))


@program
def untracked_variable():
    v = tf.Variable(1.)
    module = tf.Module()
    module.f = tf.function(lambda x: x * v, input_signature=[tf.TensorSpec([], F)])
    return fails(lambda: again(module))


@program
def lazy_variables():
    class Lazy(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = None

        @tf.function(input_signature=[tf.TensorSpec([None, 2], F)])
        def __call__(self, x):
            if self.w is None:
                self.w = tf.Variable(tf.ones([2, 2]))
            return x @ self.w

    loaded = again(Lazy())
    return loaded(tf.ones([3, 2])), loaded.w


@program
def stopped_and_custom_gradients():
    @tf.custom_gradient
    def strange(x):
        def grad(dy):
            return dy * 100 * x

        return x * 2, grad

    @tf.function(input_signature=[tf.TensorSpec([None], F)])
    def f(x):
        return strange(x) + tf.stop_gradient(x) * x

    module = holder(f)
    loaded = again(module)
    x = C([1., 3.])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = loaded.f(x)
    return y, tape.gradient(y, x)


@program
def batch_norm_moments():
    @tf.function(input_signature=[tf.TensorSpec([None, 3], F), tf.TensorSpec([], tf.bool)])
    def f(x, training):
        mean, var = tf.nn.moments(x, 0)
        if training:
            y = tf.nn.batch_normalization(x, mean, var, None, None, 1e-3)
        else:
            y = x
        return y

    x = tf.reshape(tf.range(12, dtype=F), [4, 3])
    return one(f, x, C(True), also=[(x[:2], C(False))])


@program
def arrays_in_loops():
    @tf.function(input_signature=[tf.TensorSpec([None, 2], F)])
    def f(x):
        out = tf.TensorArray(F, size=tf.shape(x)[0])
        for i in tf.range(tf.shape(x)[0]):
            out = out.write(i, x[i] * tf.cast(i, F))
        return out.stack()

    return one(f, tf.ones([3, 2]), also=[(tf.ones([12, 2]),)])


@program
def other_types():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.int64), tf.TensorSpec([None], tf.bool), tf.TensorSpec([None], tf.float64)])
    def f(i, b, d):
        return tf.where(b, i, -i), tf.cast(i, tf.float64) * d, tf.cast(b, tf.uint8), tf.cast(d, tf.bfloat16)

    made = one(f, C([1, 2], tf.int64), C([True, False]), C([.5, .25], tf.float64))
    return [[tf.cast(x, F) for x in side[0]] for side in made]


@program
def asset():
    path = os.path.join(tempfile.mkdtemp(), "words.txt")
    with open(path, "w") as file:
        file.write("a\nb\n")
    module = tf.Module()
    module.words = tf.saved_model.Asset(path)
    loaded = again(module)
    name = loaded.words.asset_path.numpy().decode()
    with open(name) as file:
        return os.path.basename(name), file.read()


@program
def looks_like_a_saved_model():
    folder = tempfile.mkdtemp()
    before = tf.saved_model.contains_saved_model(folder)
    tf.saved_model.save(tf.Module(), folder)
    return before, tf.saved_model.contains_saved_model(folder), fails(lambda: tf.saved_model.load(folder + "/nothing"))


@program
def concrete_function_of_a_loaded_one():
    loaded = again(Linear(3, 2))
    concrete = loaded.__call__.get_concrete_function(tf.TensorSpec([None, 3], F))
    return concrete(tf.ones([2, 3])), [str(s.shape) for s in [concrete.structured_outputs]], len(concrete.variables)


if __name__ == "__main__":
    main(sys.argv[1:])
