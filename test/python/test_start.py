"""What a start brings along: imports that nobody asked for cost every program."""
import shutil
import subprocess
import sys

import pytest

import stoker.tf  # noqa: F401, so that keras finds its backend


def loaded(text):
    """Modules that a new process has after this text."""
    done = subprocess.run([sys.executable, "-c", text + "\nimport sys\nprint(*sys.modules)"], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_tf_alone_is_light():
    have = loaded("import stoker.tf")
    assert "stoker.tf" in have
    assert not have & {"keras", "pandas", "h5py", "scipy", "importlib.metadata", "difflib", "pathlib", "tempfile", "email"}


def test_keras_leaves_its_plots_and_wrappers_for_later():
    pytest.importorskip("keras")
    have = loaded("import stoker; stoker.install()\nimport keras")
    assert "keras.src.layers" in have and not have & {"matplotlib.pyplot", "sklearn", "keras.src.wrappers.sklearn_wrapper"}
    have = loaded("import stoker; stoker.install()\nimport keras, tensorflow as tf\n"
                  "assert tf.keras.wrappers.SKLearnClassifier is keras.wrappers.SKLearnClassifier\n"
                  "from keras.visualization import plot_image_gallery")
    assert "keras.src.wrappers.sklearn_wrapper" in have and "keras.src.visualization.plot_image_gallery" in have


def test_version_of_tensorflow():
    pytest.importorskip("keras")
    done = subprocess.run([sys.executable, "-c", "import stoker; stoker.install()\nimport importlib.metadata as m\n"
                           "print(m.version('tensorflow'), len(m.version('keras')) > 0)"], capture_output=True, text=True)
    assert done.stdout == "2.21.0 True\n", done.stderr


def test_version_of_stoker():
    import stoker

    assert stoker.__version__.count(".") == 2
    done = subprocess.run([sys.executable, "-m", "stoker", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"stoker {stoker.__version__}\n"
    with pytest.raises(AttributeError, match="nosuch"):
        stoker.nosuch


def test_leaves_room_for_other_libraries(tmp_path):
    """Libraries loaded later (OpenMP's, which scikit-learn and others bring along) need room among the variables of threads."""
    cc = shutil.which("cc")
    if not cc:
        pytest.skip("no C compiler to make a library with: apt install gcc")
    source, made = tmp_path / "room.c", tmp_path / "room.so"
    source.write_text('static __thread __attribute__((tls_model("initial-exec"))) volatile char room[384];\nint touch(void) { return room[5]++; }\n')
    subprocess.run([cc, "-shared", "-fPIC", "-o", str(made), str(source)], check=True)
    subprocess.run([sys.executable, "-c", f"import stoker.tf, ctypes; ctypes.CDLL({str(made)!r}).touch()"], check=True)
