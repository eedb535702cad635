"""Programs on another device than the processor: apart:0, which is always there, and an OpenCL device where one is found."""
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

os.environ["STOKER_APART"] = "1"
import stoker.tf as tf  # noqa: E402
from stoker import _stoker  # noqa: E402

keras = pytest.importorskip("keras")
APART, CPU = "/job:localhost/replica:0/task:0/device:APART:0", "/job:localhost/replica:0/task:0/device:CPU:0"
HAS_OPENCL = any(d["name"] == "opencl:0" for d in _stoker.device_list())
needs_opencl = pytest.mark.skipif(not HAS_OPENCL, reason="no OpenCL device was found (tools/setup build opencl installs PoCL)")
DEVICES = ["apart:0", pytest.param("opencl:0", marks=needs_opencl)]


def run(text, *options, **environment):
    """Another process, whose default device is chosen by options or environment. Gives (stdout, stderr)."""
    own = {k: v for k, v in os.environ.items() if not k.startswith("STOKER_")}
    own.update(STOKER_APART="1", **environment)
    if "STOKER_OPENCL_CACHE" in os.environ:
        own["STOKER_OPENCL_CACHE"] = os.environ["STOKER_OPENCL_CACHE"]
    done = subprocess.run([sys.executable, "-m", "stoker", *options, "-c", textwrap.dedent(text)], env=own,
                          capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.fixture
def switches():
    yield
    tf.config.set_soft_device_placement(True)
    tf.debugging.set_log_device_placement(False)
    tf.config._settings["visible"] = None
    tf.config._settings["logical"].clear()


@pytest.fixture(autouse=True)
def from_the_processor():
    """Each test names the devices it wants: what it does not name is meant to be on the processor, whatever STOKER_DEVICE says."""
    before = _stoker.device_default(None)
    _stoker.device_default("cpu:0")
    yield
    _stoker.device_default(before)


@pytest.mark.parametrize("device", DEVICES)
def test_values_live_where_the_scope_says(device):
    place = CPU[:-5] + device.upper()
    with tf.device(device):
        a, v = tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.Variable([[1.0, 0.0], [0.0, 2.0]])
        b = a @ v + 1.0
        counter = tf.constant(3)
    assert (a.device, v.device, b.device) == (place,) * 3
    assert counter.device == place  # a scope is explicit; the default leaves int32 on the host
    np.testing.assert_array_equal(b.numpy(), [[2, 5], [4, 9]])
    assert (b * 2.0).device == place  # follows its input
    assert tf.constant([1.0]).device == CPU
    down = b.cpu()
    assert down.device == CPU and down.cpu() is down
    np.testing.assert_array_equal(np.asarray(b), down.numpy())
    assert float(b[0, 0]) == 2.0 and b[1].device == place
    assert int(tf.argmax(b[1])) == 1
    v.assign(np.ones((2, 2), "float32"))
    v.assign_add(a)
    np.testing.assert_array_equal(v.numpy(), [[2, 3], [4, 5]])
    assert v.device == place


def test_readers_of_a_variable_keep_what_they_saw():
    with tf.device("apart:0"):
        v = tf.Variable([1.0, 2.0])
    before = v.value()
    v.assign([5.0, 6.0])
    np.testing.assert_array_equal(before.numpy(), [1, 2])
    np.testing.assert_array_equal(v.numpy(), [5, 6])


@pytest.mark.parametrize("device", DEVICES)
def test_tapes_go_across(device):
    def loss_of(w, x):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as tape:
                y = tf.reduce_sum(tf.tanh(x @ w) ** 2)
            g = tape.gradient(y, w)
            s = tf.reduce_sum(g * g)
        return y, g, outer.gradient(s, w)

    w0, x0 = np.random.RandomState(0).randn(2, 4, 4).astype("float32")
    wanted = [r.numpy() for r in loss_of(tf.Variable(w0), tf.constant(x0))]
    with tf.device(device):
        w = tf.Variable(w0)
    got = loss_of(w, tf.constant(x0))  # x is on the host
    assert all("CPU" not in g.device for g in got)
    for g, want in zip(got, wanted):
        np.testing.assert_allclose(g.numpy(), want, rtol=2e-5, atol=1e-5)
    x = tf.constant([1.0, 2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        with tf.device(device):
            there = tf.identity(x)
        y = there * there
        z = y.cpu() * 3.0
    assert "CPU" not in there.device and z.device == CPU
    np.testing.assert_array_equal(tape.gradient(z, x).numpy(), [6, 12])


def test_a_child_of_fork_is_told_that_its_device_stayed_behind():
    with tf.device("apart:0"):
        a, v = tf.ones((2, 2)), tf.Variable([1.0])
    here = a.cpu()
    f = tf.function(lambda x: x + v)
    f(a)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        told = 0
        for use in (lambda: a + 1.0, a.numpy, lambda: f(here), lambda: v.assign([2.0])):
            try:
                use()
            except tf.errors.OpError as error:
                told += "forked" in str(error)
        os.write(write, bytes([told, int((here + 1.0).numpy().sum())]))
        os._exit(0)
    os.close(write)
    assert os.read(read, 2) == bytes([4, 8])
    os.waitpid(child, 0)


@pytest.mark.parametrize("device", DEVICES)
def test_functions_are_made_for_the_device(device):
    place = CPU[:-5] + device.upper()
    with tf.device(device):
        v = tf.Variable([1.0, 2.0])

    @tf.function
    def f(x):
        v.assign_add(x)
        return v * x, tf.reduce_sum(x)

    x = np.array([1.0, 3.0], "float32")
    a, s = f(tf.constant(x))  # where its variable is
    assert a.device == place and v.device == place
    np.testing.assert_array_equal(a.numpy(), [2, 15])
    with tf.device("/CPU:0"):  # the value of the variable goes there and back
        a, s = f(tf.constant(x))
    assert a.device == CPU and v.device == place and float(s) == 4.0
    np.testing.assert_array_equal(v.numpy(), [3, 8])
    with tf.device(device):
        for _ in range(5):
            a, s = f(tf.constant(x))
    np.testing.assert_array_equal(v.numpy(), [8, 23])
    np.testing.assert_array_equal(a.numpy(), [8, 69])
    with tf.GradientTape() as tape, tf.device(device):
        w = tf.Variable(3.0)
        y = tf.function(lambda t: t * w * w)(tf.constant(2.0))
    assert float(tape.gradient(y, w)) == 12.0


MODEL = """
    import numpy as np, keras, tensorflow as tf
    keras.utils.set_random_seed(1)
    rng = np.random.RandomState(0)
    X, Y = rng.randn(150, 8, 8, 1).astype("float32"), rng.randint(0, 4, 150)
    m = keras.Sequential([keras.layers.Input((8, 8, 1)), keras.layers.Conv2D(4, 3, activation="relu"),
                          keras.layers.MaxPooling2D(), keras.layers.BatchNormalization(), keras.layers.Flatten(),
                          keras.layers.Dropout(0.2, seed=3), keras.layers.Dense(4)])
    m.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    h = m.fit(X, Y, epochs=3, batch_size=32, shuffle=False, verbose=0, validation_split=0.2)
    for _ in range(4):
        called = m(X[:8])
    print(m.weights[0].value.device.split(":")[-2], called.device.split(":")[-2], m.stoker_way["train"])
    print(*h.history["loss"], *h.history["val_loss"], *m.evaluate(X, Y, verbose=0))
    print(*np.ravel(m.predict(X[:5], verbose=0)), *np.ravel(called))
"""


@pytest.mark.parametrize("device", DEVICES)
def test_keras_trains_there(device):
    here, there = run(MODEL)[0].split("\n"), run(MODEL, "--device", device)[0].split("\n")
    kind = device.split(":")[0].upper()
    assert here[0] == "CPU CPU whole epochs in the engine"
    assert there[0] == f"{kind} {kind} whole epochs in the engine"
    for a, b in zip(here[1:3], there[1:3]):
        np.testing.assert_allclose([float(x) for x in a.split()], [float(x) for x in b.split()], rtol=2e-3, atol=2e-4)


def test_default_device_by_environment_option_and_config():
    show = "import tensorflow as tf; print(tf.constant([1.]).device, tf.Variable(1.).device, tf.constant(1).device)"
    assert run(show)[0].split() == [CPU] * 3
    assert run(show, STOKER_DEVICE="apart:0")[0].split() == [APART, APART, CPU]
    assert run(show, "--device=apart:0")[0].split() == [APART, APART, CPU]
    assert run("""
        import tensorflow as tf
        tf.config.set_visible_devices(tf.config.list_physical_devices("APART"), "APART")
        print(tf.constant([1.]).device)
        tf.config.set_visible_devices([], "APART")
        print(tf.constant([1.]).device, tf.config.list_logical_devices("APART"))
    """)[0].split("\n")[:2] == [APART, f"{CPU} []"]
    own = dict(os.environ, STOKER_APART="1")
    done = subprocess.run([sys.executable, "-m", "stoker", "--device", "tpu:3", "-c", "1"], env=own, capture_output=True,
                          text=True)
    assert done.returncode != 0 and 'no device "tpu:3"' in done.stderr and "apart:0" in done.stderr


def test_soft_placement(switches):
    missing = """
        import tensorflow as tf
        with tf.device("/apart:0"):
            x = tf.constant([1.0, 2.0])
            {}
    """
    out, err = run(missing.format("y = tf.tanh(x); print(y.device, y.numpy().tolist())"), STOKER_APART_WITHOUT="tanh")
    assert out.startswith(f"{CPU} [0.76") and "tanh" in err.lower() and "cpu:0" in err
    out, err = run(missing.format("""tf.config.set_soft_device_placement(False)
            try:
                tf.tanh(x)
            except tf.errors.InvalidArgumentError as error:
                print(error)"""), STOKER_APART_WITHOUT="tanh")
    assert "Could not satisfy device specification" in out and "Tanh" in out
    tf.config.set_soft_device_placement(False)
    with pytest.raises(tf.errors.InvalidArgumentError, match="unknown device"):
        with tf.device("/GPU:17"):
            pass
    tf.config.set_soft_device_placement(True)
    with tf.device("/GPU:17"):
        assert tf.constant([1.0]).device == CPU


def test_names_of_devices():
    for name in ("/apart:0", "apart:0", "APART", "/device:APART:0", "/job:localhost/replica:0/task:0/device:apart:0",
                 tf.config.list_logical_devices("APART")[0], tf.DeviceSpec(device_type="apart", device_index=0)):
        with tf.device(name):
            assert tf.constant([1.0]).device == APART
            with tf.device("/job:localhost"):
                assert tf.constant([1.0]).device == APART
            with tf.device("cpu:0"):
                assert tf.constant([1.0]).device == CPU
            with tf.device(None):
                assert tf.constant([1.0]).device == CPU
    assert tf.constant([1.0]).device == CPU
    with pytest.raises(ValueError):
        tf.device("no such:place:7")
    assert tf.DeviceSpec.from_string("/job:localhost/device:GPU:1").to_string() == "/job:localhost/device:GPU:1"


def test_config_lists_and_settings(switches):
    physical = tf.config.list_physical_devices("APART")
    assert physical == [tf.config.PhysicalDevice("/physical_device:APART:0", "APART")]
    assert physical[0] in tf.config.get_visible_devices()
    tf.config.experimental.set_memory_growth(physical[0], True)
    assert tf.config.experimental.get_memory_growth(physical[0])
    assert "processor" in str(tf.config.experimental.get_device_details(physical[0])) or "CPU" in str(
        tf.config.experimental.get_device_details(physical[0]))
    with pytest.raises(ValueError):
        tf.config.set_visible_devices([tf.config.PhysicalDevice("/physical_device:GPU:9", "GPU")])
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
    assert [d.name for d in tf.config.list_logical_devices("CPU")] == ["/device:CPU:0", "/device:CPU:1"]
    with tf.device("/CPU:1"):
        assert float(tf.constant(2.0) * 3.0) == 6.0
    tf.config.set_visible_devices([], "APART")
    assert not tf.config.list_logical_devices("APART") and tf.config.list_physical_devices("APART") == physical


def test_memory_info_counts():
    def used():
        return tf.config.experimental.get_memory_info("APART:0")

    with tf.device("apart:0"):
        warm = tf.Variable(np.zeros(16, "float32"))
    before = used()["current"]
    with tf.device("apart:0"):
        v = tf.Variable(np.zeros((256, 1024), "float32"))
    assert 2**20 <= used()["current"] - before < 2**20 + 2**16
    peak = used()["peak"]
    del v
    assert used()["current"] - before < 2**16 and used()["peak"] == peak >= before + 2**20
    tf.config.experimental.reset_memory_stats("APART:0")
    assert used()["peak"] < peak and warm.numpy().sum() == 0


def test_log_of_placement():
    out, err = run("""
        import tensorflow as tf
        tf.debugging.set_log_device_placement(True)
        a = tf.constant([1.0, 2.0]) + 1.0
        with tf.device("apart:0"):
            b = a * 2.0
            tf.function(lambda x: tf.exp(x) + 1.0)(b)
    """)
    assert f"Executing op AddV2 in device {CPU}" in err
    assert f"Executing op Mul in device {APART}" in err
    assert any(line.startswith("apart:0") and "chain" in line for line in err.split("\n"))  # exp and add, joined


def test_gpus_are_gpus_only(switches):
    assert tf.test.gpu_device_name() == "" or tf.test.is_gpu_available()
    assert bool(tf.config.list_physical_devices("GPU")) == tf.test.is_gpu_available()
    assert not tf.test.is_built_with_cuda()
    if not tf.test.is_gpu_available():
        with pytest.raises(tf.errors.InvalidArgumentError, match="gpu:0"):
            tf.constant([1.0]).gpu()


@needs_opencl
def test_an_opencl_processor_stands_in_as_gpu_when_told():
    out, _ = run("""
        import tensorflow as tf
        print(tf.config.list_physical_devices("GPU"), tf.test.is_gpu_available(), tf.test.gpu_device_name())
        x = tf.constant([1.0, 2.0]).gpu()
        with tf.device("/GPU:0"):
            y = x * 3.0
        print(x.device, y.device, y.numpy(), y.cpu().device)
    """, STOKER_GPU="any")
    assert "/physical_device:GPU:0" in out and "True /device:GPU:0" in out
    assert out.count("device:GPU:0") == 4 and "[3. 6.]" in out


def test_one_device_strategy():
    strategy = tf.distribute.OneDeviceStrategy("/apart:0")
    with strategy.scope():
        v = tf.Variable([1.0])
    assert v.device == APART
    assert strategy.run(lambda: tf.constant([1.0]) + 1.0).device == APART
    assert tf.constant([1.0]).device == CPU


def test_data_and_host_functions_meet_the_device():
    with tf.device("apart:0"):
        table, x = tf.constant([10.0, 20.0, 30.0]), tf.constant([1.0, 2.0, 3.0])
        ds = tf.data.Dataset.from_tensor_slices(x).map(lambda t: t * 2.0).batch(2)
        assert [b.numpy().tolist() for b in ds] == [[2, 4], [6]]
        assert tf.gather(table, [2, 0]).numpy().tolist() == [30, 10]
        assert tf.numpy_function(lambda a: a + 1, [x], tf.float32).numpy().tolist() == [2, 3, 4]

        @tf.function
        def f(t):
            return tf.numpy_function(lambda a: a * 2, [t], tf.TensorSpec([3], "float32")) + table

        assert f(x).numpy().tolist() == [12, 24, 36]
        assert tf.concat([x, np.ones(1, "float32")], 0).numpy().tolist() == [1, 2, 3, 1]
        assert memoryview(x).tolist() == [1, 2, 3]
        assert tf.experimental.dlpack.from_dlpack(tf.experimental.dlpack.to_dlpack(x)).numpy().tolist() == [1, 2, 3]


def test_many_small_tensors_do_not_mix():
    """Blocks are freed and made again all the time: what looks like an old one may be a new one."""
    rng = np.random.RandomState(0)
    with tf.device("apart:0"):
        for n in range(60, 100):
            a, b = rng.randn(2, 3, n)
            c = rng.randn(n, n)
            x, y = tf.matmul(tf.constant(a), c), tf.matmul(tf.constant(b), c)
            np.testing.assert_allclose(y.numpy(), b @ c, atol=1e-9)
            np.testing.assert_allclose((x - y).numpy(), (a - b) @ c, atol=1e-9)
