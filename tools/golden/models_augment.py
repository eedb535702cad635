"""Golden models for layers that change images at random, with factors that leave nothing to chance: what they do to an image has to be
what Keras does. What is drawn is looked at in test/layers/test_random_layers.c."""

import keras
from keras import layers as L

from model import case
from models_layers import floats, trained


def pictures(r, channels=3):
    return floats(r, 6, 7, channels, low=0, high=255)


def changed(r, *layers, x=None, low=0, high=255):
    """Each layer alone on the same images."""
    i = L.Input((6, 7, 3))
    flat = [L.Flatten()(L.Rescaling(1 / (high - low))(layer(i))) for layer in layers]
    x = floats(r, 6, 7, 3, low=low, high=high) if x is None else x
    return trained(keras.Model(i, L.Dense(2)(L.Concatenate()(flat) if len(flat) > 1 else flat[0])), x, floats(r, 2),
                   optimizer=keras.optimizers.SGD(0.001), covers=[type(layer).__name__ for layer in layers])


@case
def augment_colours(r):
    return changed(r, L.RandomSaturation((0.7, 0.7)), L.RandomSaturation((0.2, 0.2)), L.RandomColorDegeneration((0.4, 0.4)),
                   L.RandomColorDegeneration((-0.3, -0.3)), L.RandomGrayscale(1.0), L.RandomGrayscale(0.0), L.RandomHue((1.0, 1.0)))


@case
def augment_colours_unit(r):
    return changed(r, L.RandomSaturation((0.6, 0.6), value_range=(0, 1)), L.RandomHue((0.0, 0.0), value_range=(0, 1)),
                   L.RandomColorDegeneration((0.5, 0.5), value_range=(0, 1)), L.RandomInvert((1.0, 1.0), value_range=(0, 1)),
                   L.RandomPosterization((3, 3), value_range=(0, 1)), L.AutoContrast(value_range=(0, 1)),
                   L.Equalization(value_range=(0, 1), bins=32), L.Solarization(value_range=(0, 1)), low=0, high=1)


@case
def augment_light(r):
    return changed(r, L.RandomInvert((1.0, 1.0)), L.RandomInvert((0.0, 0.0)), L.RandomPosterization((2, 2)),
                   L.RandomPosterization((7, 7)), L.RandomSharpness((0.9, 0.9)), L.RandomSharpness((0.1, 0.1)), L.Solarization(),
                   L.AutoContrast(), L.Equalization())


@case
def augment_blur(r):
    return changed(r, L.RandomGaussianBlur((1.0, 1.0), 3, (0.8, 0.8)), L.RandomGaussianBlur((1.0, 1.0), (5, 3), (1.0, 1.0)),
                   L.RandomGaussianBlur((0.0, 0.0), 5, (1.0, 1.0)))


@case
def augment_places(r):
    return changed(r, L.RandomShear(0.0, 0.0), L.RandomPerspective((1.0, 1.0), scale=0.0), L.RandomPerspective((0.0, 0.0)),
                   L.RandomErasing((1.0, 1.0), scale=(1.0, 1.0), fill_value=7.0),
                   L.RandomErasing((1.0, 1.0), scale=(1.0, 1.0), fill_value=[3.0, 300.0, 9.0]), L.RandomErasing((0.0, 0.0)),
                   L.RandomElasticTransform((0.0, 0.0)))


@case
def augment_crop(r):
    i = L.Input((6, 7, 3))
    a = L.GlobalAveragePooling2D()(L.Rescaling(1 / 255)(L.RandomCrop(9, 8)(i)))
    b = L.GlobalAveragePooling2D()(L.Rescaling(1 / 255)(L.RandomCrop(6, 4)(i)))
    c = L.GlobalAveragePooling2D()(L.Rescaling(1 / 255)(L.RandomCrop(4, 7)(i)))
    return trained(keras.Model(i, L.Dense(2)(L.Concatenate()([a, b, c]))), pictures(r), floats(r, 2), covers=["RandomCrop"])


@case
def augment_jitter(r):
    return changed(r, L.RandomColorJitter(brightness_factor=(0.2, 0.2), contrast_factor=(0.0, 0.0), saturation_factor=(0.6, 0.6)),
                   L.RandomColorJitter(hue_factor=(0.0, 0.0)))
