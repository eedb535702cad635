"""The zoo: models of many kinds, small enough to be measured, built with Keras alone so that every side gets the same one.

A row of ZOO is (name, builder, batch). A builder takes the keras module and gives a model and what its data looks like:
(model, inputs, classes). Each entry of inputs is a shape, or (shape, n) for whole numbers below n; classes is a number of
classes (sparse labels), or None when the target is what the model gives (mean square error)."""

ROWS = 16  # batches of data


def _classifier(keras, inputs, x, classes):
    x = keras.layers.Dense(classes, activation="softmax", name="classes")(x)
    return keras.Model(inputs, x)


def mlp_tall(keras):
    L = keras.layers
    model = keras.Sequential([keras.Input((784,)), L.Dense(512, activation="relu"), L.Dropout(0.2),
                              L.Dense(512, activation="relu"), L.Dropout(0.2), L.Dense(10, activation="softmax")])
    return model, [(784,)], 10


def mlp_wide(keras):
    L = keras.layers
    model = keras.Sequential([keras.Input((256,)), L.Dense(1024, activation="gelu"), L.Dense(1024, activation="gelu"),
                              L.Dense(256)])
    return model, [(256,)], None


def mlp_small(keras):
    L = keras.layers
    model = keras.Sequential([keras.Input((784,)), L.Dense(128, activation="relu"), L.Dense(10, activation="softmax")])
    return model, [(784,)], 10


def lstm(keras):
    L = keras.layers
    i = keras.Input((80, 24))
    return _classifier(keras, i, L.LSTM(64)(i), 6), [(80, 24)], 6


def lstm_stack(keras):
    L = keras.layers
    i = keras.Input((40, 16))
    x = L.LSTM(128, return_sequences=True)(i)
    return _classifier(keras, i, L.LSTM(128)(x), 8), [(40, 16)], 8


def gru_both_ways(keras):
    L = keras.layers
    i = keras.Input((60, 12))
    x = L.Bidirectional(L.GRU(40, return_sequences=True))(i)
    x = L.Bidirectional(L.GRU(40))(x)
    return _classifier(keras, i, x, 5), [(60, 12)], 5


def _attend(keras, x, heads, width, inner):
    L = keras.layers
    y = L.LayerNormalization()(x)
    y = L.MultiHeadAttention(heads, width // heads)(y, y)
    x = L.Add()([x, y])
    y = L.LayerNormalization()(x)
    y = L.Dense(inner, activation="gelu")(y)
    return L.Add()([x, L.Dense(width)(y)])


def transformer(keras):
    L = keras.layers
    i = keras.Input((64, 16))
    x = L.Dense(64)(i)
    for _ in range(2):
        x = _attend(keras, x, 4, 64, 128)
    return _classifier(keras, i, L.GlobalAveragePooling1D()(x), 7), [(64, 16)], 7


def transformer_text(keras):
    L = keras.layers
    i = keras.Input((128,), dtype="int32")
    x = L.Embedding(8000, 128)(i)
    for _ in range(3):
        x = _attend(keras, x, 4, 128, 256)
    return _classifier(keras, i, L.GlobalAveragePooling1D()(x), 4), [((128,), 8000)], 4


def _residual(keras, x, channels, stride):
    L = keras.layers
    y = L.Conv2D(channels, 3, strides=stride, padding="same", use_bias=False)(x)
    y = L.ReLU()(L.BatchNormalization()(y))
    y = L.BatchNormalization()(L.Conv2D(channels, 3, padding="same", use_bias=False)(y))
    if stride > 1 or x.shape[-1] != channels:
        x = L.BatchNormalization()(L.Conv2D(channels, 1, strides=stride, use_bias=False)(x))
    return L.ReLU()(L.Add()([x, y]))


def resnet_small(keras):
    L = keras.layers
    i = keras.Input((32, 32, 3))
    x = L.ReLU()(L.BatchNormalization()(L.Conv2D(16, 3, padding="same", use_bias=False)(i)))
    for channels, stride in ((16, 1), (16, 1), (32, 2), (32, 1), (64, 2), (64, 1)):
        x = _residual(keras, x, channels, stride)
    return _classifier(keras, i, L.GlobalAveragePooling2D()(x), 10), [(32, 32, 3)], 10


def depthwise(keras):
    L = keras.layers
    i = keras.Input((64, 64, 3))
    x = L.Conv2D(24, 3, strides=2, padding="same", activation="relu")(i)
    for channels, stride in ((48, 1), (96, 2), (96, 1), (192, 2)):
        x = L.DepthwiseConv2D(3, strides=stride, padding="same", activation="relu")(x)
        x = L.Conv2D(channels, 1, activation="relu")(x)
    return _classifier(keras, i, L.GlobalAveragePooling2D()(x), 12), [(64, 64, 3)], 12


def text_conv(keras):
    L = keras.layers
    i = keras.Input((120,), dtype="int32")
    x = L.Embedding(20000, 64)(i)
    x = L.Conv1D(96, 5, activation="relu")(x)
    return _classifier(keras, i, L.GlobalMaxPooling1D()(x), 3), [((120,), 20000)], 3


def bag_of_words(keras):
    L = keras.layers
    i = keras.Input((64,), dtype="int32")
    x = L.GlobalAveragePooling1D()(L.Embedding(30000, 48)(i))
    return _classifier(keras, i, L.Dense(32, activation="relu")(x), 2), [((64,), 30000)], 2


def autoencoder(keras):
    L = keras.layers
    model = keras.Sequential([keras.Input((784,)), L.Dense(512, activation="relu"), L.Dense(64, activation="relu"),
                              L.Dense(512, activation="relu"), L.Dense(784, activation="sigmoid")])
    return model, [(784,)], None


def autoencoder_pictures(keras):
    L = keras.layers
    model = keras.Sequential([
        keras.Input((32, 32, 3)), L.Conv2D(24, 3, strides=2, padding="same", activation="relu"),
        L.Conv2D(48, 3, strides=2, padding="same", activation="relu"),
        L.Conv2DTranspose(24, 3, strides=2, padding="same", activation="relu"),
        L.Conv2DTranspose(16, 3, strides=2, padding="same", activation="relu"),
        L.Conv2D(3, 3, padding="same", activation="sigmoid")])
    return model, [(32, 32, 3)], None


def unet(keras):
    L = keras.layers

    def two(x, channels):
        x = L.Conv2D(channels, 3, padding="same", activation="relu")(x)
        return L.Conv2D(channels, 3, padding="same", activation="relu")(x)

    i = keras.Input((64, 64, 3))
    a = two(i, 16)
    b = two(L.MaxPooling2D()(a), 32)
    c = two(L.MaxPooling2D()(b), 64)
    x = L.Concatenate()([L.Conv2DTranspose(32, 2, strides=2)(c), b])
    x = L.Concatenate()([L.Conv2DTranspose(16, 2, strides=2)(two(x, 32)), a])
    return keras.Model(i, L.Conv2D(3, 1)(two(x, 16))), [(64, 64, 3)], None


def mnist_cnn(keras):
    L = keras.layers
    model = keras.Sequential([
        keras.Input((28, 28, 1)), L.Conv2D(32, 3, activation="relu"), L.MaxPooling2D(),
        L.Conv2D(64, 3, activation="relu"), L.MaxPooling2D(), L.Flatten(), L.Dropout(0.5),
        L.Dense(10, activation="softmax")])
    return model, [(28, 28, 1)], 10


def tabular(keras):
    L = keras.layers
    i = keras.Input((54,))
    x = L.BatchNormalization()(i)
    for units in (128, 64, 32):
        x = L.ReLU()(L.BatchNormalization()(L.Dense(units, use_bias=False)(x)))
    return _classifier(keras, i, x, 7), [(54,)], 7


def tabular_mixed(keras):
    L = keras.layers
    numbers, kinds = keras.Input((20,)), keras.Input((6,), dtype="int32")
    x = L.Concatenate()([numbers, L.Flatten()(L.Embedding(1000, 8)(kinds))])
    for _ in range(2):
        x = L.Dropout(0.1)(L.Dense(128, activation="silu")(x))
    return _classifier(keras, [numbers, kinds], x, 2), [(20,), ((6,), 1000)], 2


def conv3d(keras):
    L = keras.layers
    model = keras.Sequential([
        keras.Input((16, 24, 24, 1)), L.Conv3D(16, 3, activation="relu"), L.MaxPooling3D(),
        L.Conv3D(32, 3, activation="relu"), L.GlobalAveragePooling3D(), L.Dense(4, activation="softmax")])
    return model, [(16, 24, 24, 1)], 4


def vgg(keras):
    L = keras.layers
    i = x = keras.Input((64, 64, 3))
    for channels, times in ((32, 2), (64, 2), (128, 2), (256, 2)):
        for _ in range(times):
            x = L.Conv2D(channels, 3, padding="same", activation="relu")(x)
        x = L.MaxPooling2D()(x)
    x = L.Dense(256, activation="relu")(L.Flatten()(x))
    return _classifier(keras, i, x, 10), [(64, 64, 3)], 10


def wave_net(keras):
    L = keras.layers
    i = keras.Input((256, 8))
    x = L.Conv1D(32, 2, padding="causal")(i)
    for d in (1, 2, 4, 8, 16):
        y = L.Conv1D(32, 2, padding="causal", dilation_rate=d, activation="tanh")(x)
        x = L.Add()([x, L.Conv1D(32, 1)(y)])
    return keras.Model(i, L.Conv1D(8, 1)(x)), [(256, 8)], None


def mixer(keras):
    L = keras.layers
    i = keras.Input((32, 32, 3))
    x = L.Reshape((64, 96))(L.Conv2D(96, 4, strides=4)(i))
    for _ in range(3):
        y = L.Permute((2, 1))(L.LayerNormalization()(x))
        y = L.Dense(64)(L.Dense(128, activation="gelu")(y))
        x = L.Add()([x, L.Permute((2, 1))(y)])
        y = L.Dense(192, activation="gelu")(L.LayerNormalization()(x))
        x = L.Add()([x, L.Dense(96)(y)])
    return _classifier(keras, i, L.GlobalAveragePooling1D()(x), 10), [(32, 32, 3)], 10


def mobilenet_v2(keras):
    return (keras.applications.MobileNetV2(input_shape=(96, 96, 3), weights=None, classes=10, alpha=0.5),
            [(96, 96, 3)], 10)


def resnet50(keras):
    return keras.applications.ResNet50(input_shape=(64, 64, 3), weights=None, classes=10), [(64, 64, 3)], 10


ZOO = [
    ("mlp_small", mlp_small, 32), ("mlp_tall", mlp_tall, 128), ("mlp_wide", mlp_wide, 256),
    ("autoencoder", autoencoder, 128), ("tabular", tabular, 256), ("tabular_mixed", tabular_mixed, 256),
    ("lstm", lstm, 32), ("lstm_stack", lstm_stack, 32), ("gru_both_ways", gru_both_ways, 32),
    ("transformer", transformer, 32), ("transformer_text", transformer_text, 16), ("mixer", mixer, 32),
    ("text_conv", text_conv, 32), ("bag_of_words", bag_of_words, 64), ("wave_net", wave_net, 16),
    ("mnist_cnn", mnist_cnn, 128), ("resnet_small", resnet_small, 32), ("depthwise", depthwise, 32),
    ("unet", unet, 8), ("autoencoder_pictures", autoencoder_pictures, 32), ("conv3d", conv3d, 8),
    ("vgg", vgg, 16), ("mobilenet_v2", mobilenet_v2, 16), ("resnet50", resnet50, 8),
]


def arrays(numpy, inputs, classes, model, rows):
    """The data of a model: the same numbers on every side."""
    random = numpy.random.default_rng(7)
    x = []
    for one in inputs:
        if isinstance(one[0], tuple):
            x.append(random.integers(0, one[1], (rows, *one[0])).astype("int32"))
        else:
            x.append(random.standard_normal((rows, *one), dtype="float32"))
    if classes is None:
        y = random.random((rows, *model.output_shape[1:]), dtype="float32")
    else:
        y = random.integers(0, classes, rows).astype("int32")
    return x, y
