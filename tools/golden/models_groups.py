"""Golden models for layers that share a parallel region: random stacks at batches that are cut evenly, unevenly and not at all,
with a short last batch. Images are just large enough that the work is cut at all."""

import keras
import numpy as np
from keras import layers as L
from keras import losses, optimizers

from model import case

BATCHES = (1, 2, 3, 7, 8, 33)


def image_layers(r):
    """Four layers on images, one of them a norm over the batch behind a convolution or a pooling."""
    norms = (lambda: L.BatchNormalization(momentum=0.5), lambda: L.GroupNormalization(2), L.LayerNormalization)
    others = (lambda: L.Conv2D(8, 3, padding="same", activation="relu"), lambda: L.DepthwiseConv2D(3, padding="same"),
              lambda: L.MaxPooling2D(2), lambda: L.AveragePooling2D(3, strides=1, padding="same"),
              lambda: L.Activation("gelu"), lambda: L.Conv2D(6, 1), lambda: L.UpSampling2D(2),
              lambda: L.Conv2DTranspose(4, 3, padding="same"))
    picked = [others[i] for i in r.permutation(len(others))[:2]]
    last = norms[r.integers(1, len(norms))]
    return [picked[0](), norms[0](), picked[1](), last()]


def add_case(batch, kind):
    def build(r):
        short = (batch + 1) // 2
        rows = 2 * batch + (short if short < batch else 0)
        side = 16 if batch <= 3 else 12 if batch <= 8 else 6
        shape = (side, side, 3) if kind == "images" else (2, side // 2, side // 2, 3)
        if kind == "images":
            inner = [L.Conv2D(8, 3, padding="same", use_bias=False)] + image_layers(r)
        else:
            inner = [L.TimeDistributed(L.Conv2D(8, 3, padding="same", use_bias=False)), L.BatchNormalization(momentum=0.5),
                     L.TimeDistributed(L.MaxPooling2D(2)), L.TimeDistributed(L.Conv2D(6, 3, padding="same")),
                     L.GroupNormalization(2)]
        m = keras.Sequential([L.Input(shape)] + inner + [L.Flatten(), L.Dense(2)])
        x = r.normal(0, 1, (rows,) + shape).astype(np.float32)
        y = r.normal(0, 1, (rows, 2)).astype(np.float32)
        return dict(model=m, x=x, y=y, loss=losses.MeanSquaredError(), optimizer=optimizers.SGD(0.01), batch=batch,
                    batches=-(-rows // batch), steps=-(-rows // batch), covers=["groups"])
    build.__name__ = f"group_{kind}_batch_{batch}"
    case(build)


for n in BATCHES:
    add_case(n, "images")
for n in (2, 3, 7):
    add_case(n, "frames")
