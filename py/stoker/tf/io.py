"""tf.io: files, records, pictures, tables."""
import os as _os

import numpy as _np

from stoker import _stoker
from stoker.tf import _gfile as gfile  # noqa: F401
from stoker.tf import errors as _errors
from stoker.tf._base import dims as _dims
from stoker.tf._base import is_symbolic as _is_symbolic
from stoker.tf._base import not_traceable as _not_traceable
from stoker.tf._base import static as _static
from stoker.tf._base import string as _string
from stoker.tf._base import tensor as _tensor
from stoker.tf._parsing import (FixedLenFeature, FixedLenSequenceFeature, RaggedFeature, SparseFeature,  # noqa: F401
                                VarLenFeature, parse_example, parse_sequence_example, parse_single_example,
                                parse_single_sequence_example)
from stoker.tf._specs import DType as _DType
from stoker.tf._tensor_proto import (deserialize_many_sparse, parse_tensor, serialize_many_sparse,  # noqa: F401
                                     serialize_sparse, serialize_tensor)

_hosts = {}


def host(key, make, inputs, results):
    """A HostFn on tensors: at once, or as a step of the function of tf.data that is being recorded."""
    if any(_is_symbolic(x) for x in inputs):
        from stoker.tf.data import _function

        recorder = _function.recorder()
        if recorder is None:
            _not_traceable(f"{key[0]} works on strings")
        return recorder.host(key, lambda: _kept(key, make), inputs, results)
    return _kept(key, make)(*inputs)


def _kept(key, make):
    made = _hosts.get(key)
    if made is None:
        if len(_hosts) > 256:
            _hosts.clear()
        made = _hosts[key] = make()
    return made


# Files.

def read_file(filename, name=None):
    x = _tensor(filename.__fspath__() if hasattr(filename, "__fspath__") else filename, _string)
    return host(("ReadFile",), _stoker.host_read_file, [x], [(_string, [])])[0]


def write_file(filename, contents, name=None):
    path, data = gfile._path(filename), _tensor(contents, _string)
    if _is_symbolic(data):
        _not_traceable("write_file")
    data = data.numpy()
    _os.makedirs(_os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def matching_files(pattern, name=None):
    found = set()
    for one in _np.ravel(_np.asarray(_tensor(pattern, _string).numpy(), object)):
        found.update(gfile.glob(one.decode()))
    return _tensor(_np.array(sorted(f.encode() for f in found), object), _string) if found else _tensor(
        _np.empty(0, object), _string)


# Bytes.

def decode_raw(input_bytes, out_type, little_endian=True, fixed_length=None, name=None):
    x, kind = _tensor(input_bytes, _string), _DType(out_type)
    if fixed_length is not None or (not little_endian and kind.size > 1):
        return _decode_plainly(x, kind, little_endian, fixed_length)
    if not _dims(x):
        return host(("DecodeRaw", kind.name), lambda: _stoker.host_decode_raw(kind), [x], [(kind, [None])])[0]
    return _decode_plainly(x, kind, True, None)


def _decode_plainly(x, kind, little_endian, fixed_length):
    if _is_symbolic(x):
        _not_traceable("decode_raw of several strings")
    flat = _np.ravel(_np.asarray(x.numpy(), object))
    if fixed_length is not None:
        length = int(_static(fixed_length))
        flat = [s[:length].ljust(length, b"\0") for s in flat]
    sizes = {len(s) for s in flat}
    if len(sizes) > 1:
        _errors.invalid(f"DecodeRaw requires input strings to all be the same size, but they have sizes {sorted(sizes)}",
                        "DecodeRaw")
    order = _np.dtype(kind.as_numpy_dtype).newbyteorder("<" if little_endian else ">")
    if sizes and max(sizes) % order.itemsize:
        _errors.invalid(f"Input to DecodeRaw has length {max(sizes)} that is not a multiple of {order.itemsize}, the size of "
                        f"{kind.name}", "DecodeRaw")
    rows = [_np.frombuffer(s, order).astype(kind.as_numpy_dtype) for s in flat]
    made = _np.stack(rows) if rows else _np.zeros((0, 0), kind.as_numpy_dtype)
    return _tensor(made.reshape(_dims(x) + [-1]), kind)


def decode_base64(input, name=None):
    import base64

    from stoker.tf.strings import _each

    return _each(input, lambda s: base64.urlsafe_b64decode(s + b"=" * (-len(s) % 4)))


def encode_base64(input, pad=False, name=None):
    import base64

    from stoker.tf.strings import _each

    return _each(input, lambda s: base64.urlsafe_b64encode(s) if pad else base64.urlsafe_b64encode(s).rstrip(b"="))


# Pictures. Formats as bits: JPEG 2, PNG 4, GIF 8, BMP 16.

def _picture(op, contents, channels, dtype, formats, accurate=False, recover=False):
    channels = int(channels or 0)
    if channels not in (0, 1, 3, 4):
        raise ValueError(f"channels must be 0, 1, 3 or 4, got {channels}")
    kind, x = _DType(dtype), _tensor(contents, _string)
    key = (op, channels, kind.name, formats, accurate, recover)

    def make():
        return _stoker.host_decode_image(op, channels, kind, formats, accurate, recover)

    return host(key, make, [x], [(kind, [None, None, channels or None])])[0]


def decode_jpeg(contents, channels=0, ratio=1, fancy_upscaling=True, try_recover_truncated=False, acceptable_fraction=1,
                dct_method="", name=None):
    if ratio != 1:
        raise NotImplementedError("decode_jpeg: ratio; decode at full size and resize")
    return _picture("DecodeJpeg", contents, channels, "uint8", 2 | 4 | 8, dct_method == "INTEGER_ACCURATE",
                    bool(try_recover_truncated))


def decode_png(contents, channels=0, dtype="uint8", name=None):
    return _picture("DecodePng", contents, channels, dtype, 2 | 4 | 8)


def decode_bmp(contents, channels=0, name=None):
    return _picture("DecodeBmp", contents, channels, "uint8", 16)


def decode_gif(contents, name=None):
    raise NotImplementedError("decode_gif: moving pictures are not decoded; decode_image(expand_animations=False) gives the "
                              "first frame")


def decode_image(contents, channels=None, dtype="uint8", name=None, expand_animations=True):
    kind = _DType(dtype)
    stored = kind if kind.name in ("uint8", "uint16") else _DType("uint8")
    formats = 2 | 4 | 16 | (0 if expand_animations else 8)
    made = _picture("DecodeImage", contents, channels, stored, formats)
    if kind == stored:
        return made
    from stoker.tf.image import convert_image_dtype

    return convert_image_dtype(made, kind)


def decode_and_crop_jpeg(contents, crop_window, channels=0, ratio=1, fancy_upscaling=True, try_recover_truncated=False,
                         acceptable_fraction=1, dct_method="", name=None):
    image = decode_jpeg(contents, channels, ratio, dct_method=dct_method)
    top, left, height, width = (int(v) for v in _static(crop_window).ravel())
    return image[top:top + height, left:left + width]


def is_jpeg(contents, name=None):
    data = _tensor(contents, _string).numpy()
    return _tensor(data[:3] == b"\xff\xd8\xff")


def extract_jpeg_shape(contents, output_type="int32", name=None):
    x = _tensor(contents, _string)
    if _is_symbolic(x):
        _not_traceable("extract_jpeg_shape")
    return _tensor(list(_stoker.picture_size(x.numpy())), output_type)


def _encoded(op, kind, image, *how):
    x = _tensor(image)
    if _is_symbolic(x):
        _not_traceable(f"{op} gives a string")
    shape = _dims(x)
    if len(shape) == 3:
        return _tensor(_stoker.encode_picture(kind, x, *how), _string)
    if len(shape) < 3:
        _errors.invalid(f"image must be at least rank 3, got {shape}", op)
    flat = _np.empty(int(_np.prod(shape[:-3])), object)
    for n, one in enumerate(x.numpy().reshape([-1] + shape[-3:])):
        flat[n] = _stoker.encode_picture(kind, _tensor(one), *how)
    return _tensor(flat.reshape(shape[:-3]), _string)


def encode_jpeg(image, format="", quality=95, progressive=False, optimize_size=False, chroma_downsampling=True,
                density_unit="in", x_density=300, y_density=300, xmp_metadata="", name=None):
    return _encoded("EncodeJpeg", "jpeg", image, int(quality), not chroma_downsampling)


def encode_png(image, compression=-1, name=None):
    return _encoded("EncodePng", "png", image, int(compression), False)


def adjust_jpeg_quality_bytes(image, quality):
    return decode_jpeg(encode_jpeg(image, quality=quality))


# Tables.

def decode_csv(records, record_defaults, field_delim=",", use_quote_delim=True, na_value="", select_cols=None, name=None):
    x = _tensor(records, _string)
    numbers = list(range(len(record_defaults))) if select_cols is None else [int(c) for c in select_cols]
    if len(numbers) != len(record_defaults):
        raise ValueError("Length of select_cols and record_defaults do not match.")
    columns = []
    for number, default in zip(numbers, record_defaults):
        if isinstance(default, _DType):
            columns.append((number, default, True, 0.0))
            continue
        value = _tensor(default)
        flat = _np.ravel(_np.asarray(value.numpy()))
        if flat.size > 1:
            raise ValueError("Each record default should be at most a scalar.")
        fallback = 0.0 if not flat.size else flat[0].decode() if value.dtype == _string else float(flat[0])
        columns.append((number, value.dtype, not flat.size, fallback))
    key = ("DecodeCSV", tuple((n, d.name, r, f) for n, d, r, f in columns), field_delim, bool(use_quote_delim), na_value)

    def make():
        return _stoker.host_decode_csv(columns, field_delim, bool(use_quote_delim), na_value)

    return host(key, make, [x], [(d, _dims(x)) for _, d, _, _ in columns])


# Records.

class TFRecordCompressionType:
    NONE, ZLIB, GZIP = 0, 1, 2


class TFRecordOptions:
    """How a file of records is packed."""

    _NAMES = {0: "", 1: "ZLIB", 2: "GZIP", None: "", "": "", "ZLIB": "ZLIB", "GZIP": "GZIP"}

    def __init__(self, compression_type=None, flush_mode=None, input_buffer_size=None, output_buffer_size=None,
                 window_bits=None, compression_level=None, compression_method=None, mem_level=None,
                 compression_strategy=None):
        if isinstance(compression_type, TFRecordOptions):
            compression_type = compression_type.compression_type
        if compression_type not in self._NAMES:
            raise ValueError(f'Not a valid compression_type: "{compression_type}"')
        self.compression_type = self._NAMES[compression_type]
        self.compression_level = compression_level

    @classmethod
    def get_compression_type_string(cls, options):
        return cls._NAMES[options.compression_type if isinstance(options, TFRecordOptions) else options]


class TFRecordWriter(_stoker.RecordWriter):
    """Writes records. The file has its name when the writer is closed."""

    def __new__(cls, path, options=None):
        name = options.compression_type if isinstance(options, TFRecordOptions) else TFRecordOptions(options).compression_type
        path = _os.fspath(path) if hasattr(path, "__fspath__") else path
        path = path.decode() if isinstance(path, bytes) else str(path)
        return _stoker.RecordWriter.__new__(cls, path, {"": 1, "GZIP": 2, "ZLIB": 3}[name])

    def write(self, record):
        if hasattr(record, "numpy"):
            record = record.numpy()
        if isinstance(record, str):
            record = record.encode()
        _stoker.RecordWriter.write(self, record)

    def flush(self):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()
        return False


TFRecordWriter.__module__ = "tensorflow.python.lib.io.tf_record"


def __getattr__(name):
    from stoker.tf import _rooms

    return _rooms.find("io", name)


def __dir__():
    from stoker.tf import _rooms

    return sorted(set(_rooms.names("io")) | set(globals()))
