"""Stand-ins for what public tutorials download: random arrays, texts, tables, folders of images, of the shapes that the real ones have.

tools/tutorials puts them in the place of keras.datasets, keras.utils.get_file, tensorflow_datasets, the weights of keras.applications, pandas.read_csv of
an address and the data sets that scikit-learn fetches. What is not listed here fails at once, as without a network.
"""
import os
import sys
import types

import numpy as np

WORDS = """the of and a to in he have it that for they with as not on she at by this we you do but from or which one would all will there say who
make when can more if no man out other so what time up go about than into could state only new year some take come these know see use get like then
first any work now may such give over think most even find day also after way many must look before great back through long where much should well
people down own just because good each those feel seem how high too place little world very still nation hand old life tell write become here show
house both between need mean call develop under last right move thing general school never same another begin while number part turn real leave""".split()
FLOAT, CLASS = "float", "class"
TABLES = {  # columns: a kind, a list of words to draw from, or (low, high) of whole numbers; the sign between them
    "train.csv": dict(survived=(0, 2), sex=["male", "female"], age=FLOAT, n_siblings_spouses=(0, 4), parch=(0, 3), fare=FLOAT,
                      **{"class": ["First", "Second", "Third"]}, deck=["A", "B", "unknown"], embark_town=["Cherbourg", "Southampton"], alone=["y", "n"]),
    "heart.csv": dict(age=(29, 77), sex=(0, 2), cp=(0, 5), trestbps=(94, 200), chol=(126, 564), fbs=(0, 2), restecg=(0, 3), thalach=(71, 202),
                      exang=(0, 2), oldpeak=FLOAT, slope=(1, 4), ca=(0, 4), thal=["fixed", "normal", "reversible"], target=(0, 2)),
    "abalone_train.csv": {f"c{i}": FLOAT for i in range(8)},
    "auto-mpg.data": dict(mpg=(9, 46), cylinders=(3, 9), displacement=FLOAT, horsepower=(46, 230), weight=(1613, 5140), acceleration=FLOAT,
                          year=(70, 83), origin=(1, 4)),
    "iris_training.csv": dict(a=FLOAT, b=FLOAT, c=FLOAT, d=FLOAT, species=(0, 3)),
    "petfinder-mini.csv": dict(Type=["Cat", "Dog"], Age=(0, 90), Breed1=["Tabby", "Mixed"], Gender=["Male", "Female"], Color1=["Black", "White"],
                               Color2=["Brown", "White"], MaturitySize=["Small", "Large"], FurLength=["Short", "Long"], Vaccinated=["Yes", "No"],
                               Sterilized=["Yes", "No"], Health=["Healthy", "Sick"], Fee=(0, 300), Description=WORDS, PhotoAmt=(0, 9), AdoptionSpeed=(0, 5)),
    "creditcard.csv": dict(Time=FLOAT, **{f"V{i}": FLOAT for i in range(1, 29)}, Amount=FLOAT, Class=(0, 2)),
    "insurance.csv": dict(age=(18, 65), sex=["male", "female"], bmi=FLOAT, children=(0, 5), smoker=["yes", "no"], region=["north", "south"], charges=FLOAT),
    "jena_climate_2009_2016.csv": dict({"Date Time": ["01.01.2009 00:10:00", "01.01.2009 00:20:00"], "p (mbar)": FLOAT, "T (degC)": FLOAT, "Tpot (K)": FLOAT,
                                        "Tdew (degC)": FLOAT, "rh (%)": FLOAT, "VPmax (mbar)": FLOAT, "VPact (mbar)": FLOAT, "VPdef (mbar)": FLOAT,
                                        "sh (g/kg)": FLOAT, "H2OC (mmol/mol)": FLOAT, "rho (g/m**3)": FLOAT, "wv (m/s)": FLOAT, "max. wv (m/s)": FLOAT,
                                        "wd (deg)": FLOAT}),
    "HIGGS.csv": {f"c{i}": FLOAT for i in range(29)},
    "Sunspots.csv": dict(i=(0, 9), Date=["1749-01-31"], v=FLOAT),
    "daily-min-temperatures.csv": dict(Date=["1981-01-01"], Temp=FLOAT),
    "ratings.csv": dict(userId=(1, 600), movieId=(1, 900), rating=FLOAT, timestamp=(1, 9999)),
}
TABLES.update({"eval.csv": TABLES["train.csv"], "abalone_test.csv": TABLES["abalone_train.csv"], "iris_test.csv": TABLES["iris_training.csv"],
               "sunspots.csv": TABLES["Sunspots.csv"]})
FOLDERS = {  # what an archive holds: (folder, classes, files of a class, form); several of them when there are parts
    "flower_photos": [("flower_photos", ["daisy", "dandelion", "roses", "sunflowers", "tulips"], 20, "jpg")],
    "cats_and_dogs": [(f"cats_and_dogs_filtered/{p}", ["cats", "dogs"], 40, "jpg") for p in ("train", "validation")],
    "aclImdb": [(f"aclImdb/{p}", c, 60, "txt") for p, c in (("train", ["neg", "pos", "unsup"]), ("test", ["neg", "pos"]))],
    "stack_overflow": [(p, ["csharp", "java", "javascript", "python"], 40, "txt") for p in ("train", "test")],
    "mini_speech_commands": [("mini_speech_commands", ["down", "go", "left", "no", "right", "stop", "up", "yes"], 20, "wav")],
    "horse-or-human": [("", ["horses", "humans"], 40, "jpg")],
    "rps": [("rps", ["paper", "rock", "scissors"], 30, "jpg")],
}
IMAGES = dict(mnist=((28, 28, 1), 10), fashion_mnist=((28, 28, 1), 10), cifar10=((32, 32, 3), 10), cifar100=((32, 32, 3), 100), cats_vs_dogs=((180, 200, 3), 2),
              rock_paper_scissors=((300, 300, 3), 3), stl10=((96, 96, 3), 10), horses_or_humans=((300, 300, 3), 2), tf_flowers=((200, 220, 3), 5),
              oxford_flowers102=((200, 220, 3), 102), stanford_dogs=((200, 220, 3), 120), omniglot=((105, 105, 3), 1623),
              kmnist=((28, 28, 1), 10), emnist=((28, 28, 1), 62), svhn_cropped=((32, 32, 3), 10))


# ---- arrays of keras.datasets ------------------------------------------------------------------------------

def random_images(rows, shape, classes, label_shape):
    def load_data(*_, **__):
        draw = np.random.default_rng(1)

        def part(n):
            n = min(n, rows) if rows else n
            return (draw.integers(0, 256, (n, *shape), dtype=np.uint8),
                    draw.integers(0, classes, (n, *label_shape)).astype("uint8"))
        return part(60000 if len(shape) == 2 else 50000), part(10000)
    return load_data


def random_texts(rows, classes):
    def load_data(*_, num_words=None, maxlen=None, **__):
        draw = np.random.default_rng(1)

        def part():
            n = min(25000, rows) if rows else 25000
            top = min(num_words or 20000, 20000)
            x = np.empty(n, object)
            for i in range(n):
                x[i] = [1] + draw.integers(4, top, draw.integers(10, maxlen or 300)).tolist()
            return x, draw.integers(0, classes, n)
        return part(), part()
    return load_data


def random_table(columns):
    def load_data(*_, **__):
        draw = np.random.default_rng(1)
        return tuple((draw.normal(size=(n, columns)), draw.uniform(5, 50, n)) for n in (404, 102))
    return load_data


def keras_datasets(rows):
    import keras

    sets = dict(mnist=random_images(rows, (28, 28), 10, ()), fashion_mnist=random_images(rows, (28, 28), 10, ()),
                cifar10=random_images(rows, (32, 32, 3), 10, (1,)), cifar100=random_images(rows, (32, 32, 3), 100, (1,)),
                imdb=random_texts(rows, 2), reuters=random_texts(rows, 46), boston_housing=random_table(13),
                california_housing=random_table(8))
    words = {f"word{i}": i for i in range(1, 20000)}
    for name, load_data in sets.items():
        for package in (keras, sys.modules.get("keras._tf_keras.keras")):
            module = getattr(getattr(package, "datasets", None), name, None)
            if module:
                module.load_data = load_data
                if name in ("imdb", "reuters"):
                    module.get_word_index = lambda *_, **__: dict(words)


# ---- files --------------------------------------------------------------------------------------------------

def sentence(draw, n):
    return " ".join(draw.choice(WORDS, n)).capitalize() + "."


def table_text(name, rows):
    draw = np.random.default_rng(2)

    def column(kind):
        if kind == FLOAT:
            return [f"{v:.4f}" for v in draw.uniform(0.5, 30, rows)]
        return [str(v) for v in (draw.choice(kind, rows) if isinstance(kind, list) else draw.integers(*kind, rows))]
    columns = TABLES[name]
    lines = zip(*(column(kind) for kind in columns.values()))
    if name == "auto-mpg.data":
        return "\n".join(" ".join(line) + '\t"a car"' for line in lines)
    head = [",".join(columns)] if not name.startswith(("abalone", "HIGGS")) else []
    return "\n".join(head + [",".join(line) for line in lines]) + "\n"


def write_file(path, name, draw):
    """True where there is a stand-in for a file of this name."""
    from PIL import Image

    end = name.rsplit(".", 1)[-1].lower()
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if end in ("jpg", "jpeg", "png"):
        Image.fromarray(draw.integers(0, 256, (160, 200, 3), dtype=np.uint8)).save(path, "PNG" if end == "png" else "JPEG")
    elif end == "wav":
        from scipy.io import wavfile
        wavfile.write(path, 16000, draw.integers(-9000, 9000, 16000).astype(np.int16))
    elif end in ("txt", "en", "fr"):
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(sentence(draw, draw.integers(4, 15)) + "\n" for _ in range(2000 if "class" not in path else 3))
    elif name in TABLES:
        with open(path, "w", encoding="utf-8") as file:
            file.write(table_text(name, 2000))
    else:
        return False
    return True


def get_file(fname=None, origin=None, untar=False, extract=False, cache_dir=None, cache_subdir="datasets", **_):
    if not origin:
        raise ValueError('Please specify the "origin" argument (URL of the file to download).')
    base = os.path.basename(origin.split("?")[0])
    fname = os.path.basename(str(fname or base))
    home = os.path.abspath(os.path.join(str(cache_dir or "keras"), str(cache_subdir)))
    draw = np.random.default_rng(3)
    path = os.path.join(home, fname)
    for key, parts in FOLDERS.items():
        if key in base or key in fname:
            root = path if extract and not untar else home
            for folder, classes, count, end in parts:
                for label in classes:
                    for i in range(count):
                        write_file(os.path.join(root, folder, label, f"class{i}.{end}"), f"{i}.{end}", draw)
            return path if extract else os.path.join(home, fname.split(".")[0])
    for name in (base, fname, base.removesuffix(".zip"), base.removesuffix(".gz")):
        if write_file(os.path.join(home, name), name, draw):
            if extract:  # Keras unpacks into a folder of the archive's name
                write_file(os.path.join(home, fname.replace(".zip", "_extracted"), name), name, draw)
                return os.path.join(home, fname.replace(".zip", "_extracted"))
            os.replace(os.path.join(home, name), path)
            return path
    raise OSError(f"tutorials run without a network: {origin}")


def files():
    import keras

    for package in (keras, sys.modules.get("keras._tf_keras.keras")):
        if package:
            package.utils.get_file = get_file
    try:
        import pandas
    except ImportError:
        return
    read_csv = pandas.read_csv

    def from_anywhere(path, *args, **kwargs):
        if isinstance(path, str) and path.startswith("http"):
            path = get_file(origin=path)
        return read_csv(path, *args, **kwargs)
    pandas.read_csv = from_anywhere


# ---- weights, scikit-learn, tensorflow_datasets ------------------------------------------------------------

def applications():
    """Models with weights of ImageNet become models with random ones."""
    import functools
    import inspect

    import keras

    def without_weights(build):
        @functools.wraps(build)
        def built(*args, **kwargs):
            bound = inspect.signature(build).bind_partial(*args, **kwargs)
            bound.apply_defaults()
            bound.arguments["weights"] = None if bound.arguments.get("weights") == "imagenet" else bound.arguments.get("weights")
            return build(*bound.args, **bound.kwargs)
        return built
    seen = {}
    for package in (keras, sys.modules.get("keras._tf_keras.keras")):
        spaces = [package.applications] + [m for m in vars(package.applications).values() if isinstance(m, types.ModuleType)] if package else []
        for space in spaces:
            for name, build in list(vars(space).items()):
                if inspect.isfunction(build) and "weights" in inspect.signature(build).parameters:
                    seen.setdefault(name, without_weights(build))
                    setattr(space, name, seen[name])
    import keras.src.applications.imagenet_utils as utils
    utils.CLASS_INDEX = {str(i): [f"n{i:08}", f"thing_{i}"] for i in range(1000)}


def scikit():
    try:
        import sklearn.datasets as sets
    except ImportError:
        return

    def housing(return_X_y=False, **_):
        draw = np.random.default_rng(1)
        x, y = draw.normal(size=(4000, 8)), draw.uniform(0.1, 5, 4000)
        names = ["MedInc", "HouseAge", "AveRooms", "AveBedrms", "Population", "AveOccup", "Latitude", "Longitude"]
        return (x, y) if return_X_y else sets._base.Bunch(data=x, target=y, feature_names=names)
    sets.fetch_california_housing = housing


def tfds(rows):
    module = types.ModuleType("tensorflow_datasets")

    def examples(name, split):
        import tensorflow as tf

        draw = np.random.default_rng(len(split))
        if name in IMAGES:
            shape, classes = IMAGES[name]
            n = min(rows or 2048, 2048 if shape[0] < 40 else 128)
            return tf.data.Dataset.from_tensor_slices(dict(image=draw.integers(0, 256, (n, *shape), dtype=np.uint8), label=draw.integers(0, classes, n)))
        if name.startswith(("imdb_reviews", "glue")):
            n = min(rows or 500, 500)
            return tf.data.Dataset.from_tensor_slices(dict(text=[sentence(draw, 40) for _ in range(n)], label=draw.integers(0, 2, n)))
        raise OSError(f"tutorials run without a network: {name}")

    def part(name, split, supervised, batch_size):
        found = examples(name, split.split("[")[0])
        if supervised:
            found = found.map(lambda e: (e.get("image", e.get("text")), e["label"]))
        if batch_size == -1:  # all of it, as tensors
            return next(iter(found.batch(1 << 20)))
        return found.batch(batch_size) if batch_size else found

    def load(name, split=None, as_supervised=False, batch_size=None, with_info=False, **_):
        name = name.split(":")[0]

        def of(s):
            if isinstance(s, (list, tuple)):
                return type(s)(of(e) for e in s)
            if isinstance(s, dict):
                return {k: of(v) for k, v in s.items()}
            return part(name, str(s), as_supervised, batch_size)
        found = of(split if split is not None else dict(train="train", test="test"))
        if not with_info:
            return found
        shape, classes = IMAGES.get(name, (None, 2))
        label = types.SimpleNamespace(num_classes=classes, names=[f"class{i}" for i in range(classes)], int2str=lambda i: f"class{i}")
        counts = {s: types.SimpleNamespace(num_examples=min(rows or 2048, 2048)) for s in ("train", "test", "validation")}
        return found, types.SimpleNamespace(features=dict(label=label, image=types.SimpleNamespace(shape=shape)), splits=counts, name=name)
    module.load = load
    module.__version__ = "4.9.0"
    module.disable_progress_bar = lambda: None
    module.as_numpy = lambda d: (d.as_numpy_iterator() if hasattr(d, "as_numpy_iterator") else d)
    sys.modules["tensorflow_datasets"] = module


def install(rows):
    keras_datasets(rows)
    files()
    applications()
    scikit()
    tfds(rows)
