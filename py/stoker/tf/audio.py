"""tf.audio: WAV files of 16-bit samples."""
import struct as _struct

import numpy as _np

from stoker.tf import errors as _errors
from stoker.tf._base import static as _static
from stoker.tf._base import tensor as _tensor

__all__ = ["decode_wav", "encode_wav"]


def _chunks(data):
    if data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        _errors.invalid("Header mismatch: Expected RIFF but found " + data[:4].decode("latin1"), "DecodeWav")
    at = 12
    while at + 8 <= len(data):
        name, size = data[at:at + 4], _struct.unpack_from("<I", data, at + 4)[0]
        yield name, data[at + 8:at + 8 + size]
        at += 8 + size + size % 2


def decode_wav(contents, desired_channels=-1, desired_samples=-1, name=None):
    """(samples [length, channels] from -1 to 1, rate)"""
    rate = channels = samples = None
    for title, body in _chunks(bytes(_static(contents, "decode_wav").item())):
        if title == b"fmt ":
            kind, channels, rate, _, _, bits = _struct.unpack_from("<HHIIHH", body)
            if kind not in (1, 0xFFFE) or bits != 16:
                _errors.invalid(f"Can only read 16-bit WAV files, but received {bits}", "DecodeWav")
        elif title == b"data" and channels:
            samples = _np.frombuffer(body[:len(body) // (2 * channels) * 2 * channels], "<i2").reshape(-1, channels)
    if samples is None:
        _errors.invalid("No data found in the WAV file", "DecodeWav")
    made = samples.astype("float32") / _np.float32(32768)
    if desired_channels != -1:
        made = made[:, [min(c, made.shape[1] - 1) for c in range(desired_channels)]]
    if desired_samples != -1:
        made = made[:desired_samples]
        made = _np.pad(made, ((0, desired_samples - len(made)), (0, 0)))
    return DecodeWav(_tensor(_np.ascontiguousarray(made)), _tensor(rate, "int32"))


def encode_wav(audio, sample_rate, name=None):
    samples = _np.clip(_np.round(_static(audio, "encode_wav") * 32768.0), -32768, 32767).astype("<i2")
    rate, channels = int(_static(sample_rate)), samples.shape[1]
    body = samples.tobytes()
    head = _struct.pack("<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(body), b"WAVE", b"fmt ", 16, 1, channels, rate,
                        rate * channels * 2, channels * 2, 16, b"data", len(body))
    return _tensor(head + body)


from collections import namedtuple as _namedtuple  # noqa: E402

DecodeWav = _namedtuple("DecodeWav", ["audio", "sample_rate"])
