"""One golden model: a Keras model with its data, trained for ten steps, written as one .npz.

Members of a file (weights are named as Keras names them, without the name of the model itself):

    json              uint8    model.to_json()
    meta              uint8    JSON, see below
    x0 x1 ..                   inputs, `batches` x `batch` rows, the last batch may be short; step i takes batch i % batches
    y0 y1 ..                   targets, one per output (absent when meta.train is false)
    sw0 sw1 ..                 sample weights, when meta.sample_weight is true
    w0/<weight>                weights at the start
    out0 out1 ..               model(first batch, training=False) at the start
    train_out0 ..              model(first batch, training=True) at the start, where it is not the same
    grad/<weight>              gradient of the first batch's loss, regularisers and weights included
    losses            float64  loss of each of the ten train_on_batch steps
    w10/<weight>               weights after them
    metrics           float64  evaluate() over all rows afterwards, in the order of meta.metric_names

meta: name, tolerance, batch, batches, steps, train, weights [{name, trainable}] in the order of model.weights,
losses [config per output], loss_weights, optimizer config, metrics [config per output], metric_names,
class_weight, sample_weight, loss_scale (of half types), covers [what the case is there for].

Every float32 case is computed a second time in float64 from the same weights. Where the two differ by more than a third of
the tolerance the numbers say more about rounding than about the mathematics, and the case is refused. Cases of half types are
compared with float32 in the same way, and other numbers are drawn until the half type's own rounding is small.
Differences are relative to the largest number of an array, those of a gradient to a hundredth of the largest of all
gradients if that is more.
"""

import json
import os

os.environ.setdefault("KERAS_BACKEND", "tensorflow")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

CASES = {}
TOLERANCE, TOLERANCE_HALF = 1e-4, 1e-2
models_half = {"off": False}  # models of half types are built in float32 while it is on


def case(build):
    """Registers a function of a random generator that returns a dict: model, x, y, loss, optimizer, metrics, .."""
    assert build.__name__ not in CASES, build.__name__
    CASES[build.__name__] = build
    return build


def loss_config(loss):
    """Keras leaves numbers of some losses out of their configuration (Huber's delta)."""
    config = keras.saving.serialize_keras_object(loss)
    if "delta" in getattr(loss, "_fn_kwargs", {}):
        config["config"]["delta"] = loss._fn_kwargs["delta"]
    return config


def listed(value):
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


class Run:
    """A case built under one float type."""

    def __init__(self, name, floatx, attempt=0):
        keras.backend.clear_session()
        keras.config.set_floatx(floatx)
        keras.config.set_dtype_policy(floatx)
        keras.utils.set_random_seed(len(name) + sum(map(ord, name)) + 1000 * attempt)
        self.name = name
        self.spec = CASES[name](np.random.default_rng(sum(map(ord, name)) + 1000 * attempt))
        self.model = self.spec["model"]
        keras.config.set_dtype_policy(floatx)
        self.half = self.spec.get("half", False)
        self.batch, self.batches = self.spec.get("batch", 4), self.spec.get("batches", 5)
        self.x, self.y = listed(self.spec["x"]), listed(self.spec.get("y"))
        self.sw = listed(self.spec.get("sample_weight"))
        rows = len(self.x[0])  # the last batch may be short
        assert self.batch * (self.batches - 1) < rows <= self.batch * self.batches, name
        assert all(len(a) == rows for a in self.x + self.y + self.sw), name
        self.keys = [self.key(w) for w in self.model.weights]
        assert len(set(self.keys)) == len(self.keys), self.keys

    def key(self, weight):
        own = self.model.name + "/"
        return weight.path[len(own):] if weight.path.startswith(own) else weight.path

    def randomise(self, r):
        """Starts that are all 0 or 1 would hide a swapped or forgotten vector."""
        for w in self.model.weights:
            leaf, value = w.path.split("/")[-1], w.numpy()
            if leaf in ("bias", "beta", "moving_mean"):
                w.assign(value + r.normal(0, 0.2, w.shape))
            elif leaf in ("gamma", "moving_variance"):
                w.assign(np.abs(value + r.uniform(-0.3, 0.3, w.shape)))

    def rows(self, arrays, step):
        start = (step % self.batches) * self.batch
        return [a[start:start + self.batch] for a in arrays]

    def one(self, values):
        """Models with one input or output take and give it bare."""
        return values[0] if len(values) == 1 else values

    def arrays(self, values):
        return [tf.cast(v, tf.float64 if v.dtype == tf.float64 else tf.float32).numpy()
                for v in listed(values)]

    def weights(self):
        return {k: w.numpy() for k, w in zip(self.keys, self.model.weights)}

    def restore(self, values):
        for k, w in zip(self.keys, self.model.weights):
            w.assign(values[k])
        for layer in self.model._flatten_layers():  # states are no weights
            for state in keras.tree.flatten(getattr(layer, "states", None) or []):
                state.assign(np.zeros(state.shape))

    def compile(self):
        wanted = self.spec.get("metrics")
        if keras.config.floatx() == "float64":  # TensorFlow has no top k of float64
            wanted = [m for m in wanted or [] if "TopK" not in type(m).__name__] or None
        self.model.compile(
            optimizer=self.spec["optimizer"], loss=self.spec["loss"], run_eagerly=True,
            metrics=wanted, loss_weights=self.spec.get("loss_weights"))
        # Gradients of embeddings come as rows, some of them twice, which Adam on TensorFlow squares one by one. On the
        # other backends of Keras, and here, a row's gradient is summed first.
        apply = self.model.optimizer.apply
        self.model.optimizer.apply = lambda grads, variables=None: apply(
            [tf.convert_to_tensor(g) for g in grads], variables)

    def step_weights(self, step):
        if self.sw:
            return self.one(self.rows(self.sw, step))
        table = self.spec.get("class_weight")
        if not table:
            return None
        from keras.src.trainers.data_adapters import data_adapter_utils
        y = self.rows(self.y, step)[0]
        return data_adapter_utils.class_weight_to_sample_weights(tf.constant(y), table)

    def gradients(self):
        x, y = self.one(self.rows(self.x, 0)), self.one(self.rows(self.y, 0))
        trainable = self.model.trainable_weights
        with tf.GradientTape() as tape:
            out = self.model(x, training=True)
            loss = self.model.compute_loss(x=x, y=y, y_pred=out, training=True,
                                           sample_weight=self.step_weights(0))
        grads = tape.gradient(loss, [w.value for w in trainable])
        named = {id(w): k for k, w in zip(self.keys, self.model.weights)}
        return {named[id(w)]: tf.convert_to_tensor(g).numpy() if g is not None else np.zeros(w.shape)
                for w, g in zip(trainable, grads)}

    def train(self, steps):
        losses = []
        for step in range(steps):
            self.model.reset_metrics()
            weights = self.step_weights(step)
            result = self.model.train_on_batch(
                self.one(self.rows(self.x, step)), self.one(self.rows(self.y, step)),
                sample_weight=None if weights is None else weights, return_dict=True)
            losses.append(float(result["loss"]))
        return np.array(losses, np.float64)

    def evaluate(self):
        self.model.reset_metrics()
        result = self.model.evaluate(self.one(self.x), self.one(self.y), batch_size=self.batch, verbose=0,
                                     sample_weight=self.one(self.sw) if self.sw else None, return_dict=True)
        return list(result), [np.asarray(v, np.float64) for v in result.values()]

    def compute(self, start=None):
        """All results by member name."""
        if start:
            self.restore(start)
        start = self.weights()
        first = self.one(self.rows(self.x, 0))
        members = {f"w0/{k}": v for k, v in start.items()}
        plain = self.arrays(self.model(first, training=False))
        members.update({f"out{i}": v for i, v in enumerate(plain)})
        if not self.spec.get("train", True):
            return members
        trained = self.arrays(self.model(first, training=True))
        self.restore(start)
        if any(not np.array_equal(a, b) for a, b in zip(plain, trained)):
            members.update({f"train_out{i}": v for i, v in enumerate(trained)})
        self.compile()
        members.update({f"grad/{k}": v for k, v in self.gradients().items()})
        self.restore(start)
        members["losses"] = self.train(self.spec.get("steps", 10))
        members.update({f"w10/{k}": v for k, v in self.weights().items()})
        self.metric_names, values = self.evaluate()
        assert all(v.ndim == 0 for v in values), self.name
        members["metrics"] = np.array(values, np.float64)
        return members

    def meta(self):
        spec, serialize = self.spec, keras.saving.serialize_keras_object
        train = spec.get("train", True)
        meta = dict(
            name=self.name, tolerance=TOLERANCE_HALF if self.half else TOLERANCE, batch=self.batch,
            batches=self.batches, steps=spec.get("steps", 10), train=train,
            weights=[dict(name=k, trainable=bool(w.trainable))
                     for k, w in zip(self.keys, self.model.weights)],
            covers=spec.get("covers", []))
        if train:
            per_output = spec.get("metrics") or []
            if per_output and not isinstance(per_output[0], list):
                per_output = [per_output]
            optimizer = self.model.optimizer
            inner = getattr(optimizer, "inner_optimizer", optimizer)
            meta.update(
                losses=[loss_config(v) for v in listed(spec["loss"])], loss_weights=spec.get("loss_weights"),
                optimizer=keras.optimizers.serialize(inner), metric_names=self.metric_names,
                metrics=[[serialize(m) for m in group] for group in per_output],
                class_weight={str(k): v for k, v in (spec.get("class_weight") or {}).items()},
                sample_weight=bool(self.sw),
                loss_scale=float(optimizer.initial_scale) if inner is not optimizer else None)
        return meta


def compare(name, got, exact, limit):
    """Relative to the largest number of each array; gradients that ought to be 0 to that of all gradients."""
    steepest = max([float(np.max(np.abs(v))) for k, v in exact.items() if k.startswith("grad/")], default=0)
    for key, want in exact.items():
        if np.shape(got[key]) != np.shape(want):
            assert key == "metrics"
            continue
        scale = max(1e-6, float(np.max(np.abs(want)))) if np.size(want) else 1
        if key.startswith("grad/"):
            scale = max(scale, 0.01 * steepest)
        worst = float(np.max(np.abs(got[key] - want))) / scale if np.size(want) else 0
        assert np.isfinite(worst), f"{name}: {key} is not finite"
        assert worst <= limit, f"{name}: {key} differs by {worst:.1e} between float32 and float64"


def text(value):
    return np.frombuffer(value.encode(), np.uint8)


def start(name, attempt):
    run = Run(name, "float32", attempt)
    run.randomise(np.random.default_rng(7))
    members = run.compute()
    for key, value in members.items():
        assert np.all(np.isfinite(value)), f"{name}: {key} is not finite"
    return run, members


def start_half(name):
    """Other numbers until what Keras computes in the half type is near to what it computes in float32."""
    for attempt in range(40):
        run, members = start(name, attempt)
        if run.spec.get("skips"):  # float32 has no loss scale that could overflow
            return run, members
        models_half["off"] = True
        try:
            exact = Run(name, "float32", attempt)
            compare(name, members, exact.compute({k[3:]: v for k, v in members.items() if k.startswith("w0/")}),
                    0.8 * TOLERANCE_HALF)
            return run, members
        except AssertionError as reason:
            last = reason
        finally:
            models_half["off"] = False
    raise last


def make(name):
    """The members of one file."""
    run, members = start(name, 0)
    if run.half:
        run, members = start_half(name)
    else:
        exact = Run(name, "float64")
        compare(name, members, exact.compute({k[3:]: v for k, v in members.items() if k.startswith("w0/")}),
                TOLERANCE / 3)
    keras.config.set_floatx("float32")
    members.update({f"x{i}": a for i, a in enumerate(run.x)})
    members.update({f"y{i}": a for i, a in enumerate(run.y)})
    members.update({f"sw{i}": a for i, a in enumerate(run.sw)})
    members = {k: v.astype(np.float32) if v.dtype == np.float64 and k not in ("losses", "metrics") else v
               for k, v in members.items()}
    return {"json": text(run.model.to_json()), "meta": text(json.dumps(run.meta())), **members}
