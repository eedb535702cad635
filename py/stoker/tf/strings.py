"""tf.strings. Strings are computed with on the host, element by element."""
import re as _re

import numpy as _np

from stoker.tf import _hash
from stoker.tf import errors as _errors
from stoker.tf._base import dims as _dims
from stoker.tf._base import is_symbolic as _is_symbolic
from stoker.tf._base import not_traceable as _not_traceable
from stoker.tf._base import static as _static
from stoker.tf._base import string as _string
from stoker.tf._base import tensor as _tensor
from stoker.tf._specs import as_dtype as _as_dtype


def _is_ragged(x):
    return hasattr(x, "row_splits")


def _bytes(x):
    return x.encode() if isinstance(x, str) else bytes(x)


def _each(input, function, dtype="string"):
    """The same shape with every element replaced; ragged tensors keep their rows."""
    if _is_ragged(input):
        return input.with_flat_values(_each(input.flat_values, function, dtype))
    x = _tensor(input, _string)
    if _is_symbolic(x):
        _not_traceable("it computes with strings")
    flat = _np.ravel(_np.asarray(x.numpy(), object))
    made = [function(s) for s in flat]
    kind = _as_dtype(dtype)
    if kind == _string:
        out = _np.empty(len(made), object)
        out[:] = made
    else:
        out = _np.array(made, kind.as_numpy_dtype)
    return _tensor(out.reshape(_dims(x)), kind)


def lower(input, encoding="", name=None):
    if encoding:
        return _each(input, lambda s: s.decode("utf-8", "replace").lower().encode())
    return _each(input, bytes.lower)


def upper(input, encoding="", name=None):
    if encoding:
        return _each(input, lambda s: s.decode("utf-8", "replace").upper().encode())
    return _each(input, bytes.upper)


def strip(input, name=None):
    return _each(input, bytes.strip)


def length(input, unit="BYTE", name=None):
    if unit == "UTF8_CHAR":
        return _each(input, lambda s: len(s.decode("utf-8", "replace")), "int32")
    return _each(input, len, "int32")


def substr(input, pos, len, unit="BYTE", name=None):
    starts, counts = _np.ravel(_static(pos)), _np.ravel(_static(len))
    turn = iter(range(1 << 62))

    def cut(s):
        n = next(turn)
        start, count = int(starts[n % starts.size]), int(counts[n % counts.size])
        text = s.decode("utf-8", "replace") if unit == "UTF8_CHAR" else s
        size = text.__len__()
        if not -size <= start <= size:
            _errors.invalid(f"pos {start} out of range for string b'{s.decode('utf-8', 'replace')}' at index {n}", "Substr")
        start = start + size if start < 0 else start
        part = text[start:start + count]
        return part.encode() if unit == "UTF8_CHAR" else part

    return _each(input, cut)


def _pattern(text):
    """RE2's syntax is near enough to Python's for what programs use; [:punct:] and kin are spelled out."""
    text = _bytes(text).decode("utf-8", "surrogateescape")
    for name, members in (("punct", r"!-/:-@\[-`{-~"), ("alpha", "A-Za-z"), ("digit", "0-9"), ("space", r"\s"),
                          ("alnum", "A-Za-z0-9"), ("upper", "A-Z"), ("lower", "a-z")):
        text = text.replace(f"[:{name}:]", members)
    text = _re.sub(r"\\p\{P\}|\\pP", r"[!-/:-@\\[-`{-~]", text)
    return _re.compile(text.encode("utf-8", "surrogateescape"))


def regex_replace(input, pattern, rewrite, replace_global=True, name=None):
    found, new = _pattern(pattern), _bytes(rewrite)
    return _each(input, lambda s: found.sub(new, s, 0 if replace_global else 1))


def regex_full_match(input, pattern, name=None):
    found = _pattern(pattern)
    return _each(input, lambda s: found.fullmatch(s) is not None, "bool")


def _rows(rows, dtype=_string):
    """A ragged tensor of rows of bytes (or numbers)."""
    from stoker.tf._ragged import RaggedTensor

    flat = [v for row in rows for v in row]
    values = _np.empty(len(flat), object) if dtype == _string else _np.zeros(len(flat), dtype.as_numpy_dtype)
    values[:] = flat
    return RaggedTensor.from_row_lengths(_tensor(values, dtype), [len(r) for r in rows])


def _split_each(input, function, dtype=_string):
    if _is_ragged(input):
        return input.with_flat_values(_split_each(input.flat_values, function, dtype))
    x = _tensor(input, _string)
    if _is_symbolic(x):
        _not_traceable("it splits strings")
    if not _dims(x):
        row = function(x.numpy())
        return _tensor(_np.array(row, object) if dtype == _string and row else _np.zeros(0, object), _string) \
            if dtype == _string else _tensor(_np.array(row, dtype.as_numpy_dtype), dtype)
    return _rows([function(s) for s in _np.ravel(_np.asarray(x.numpy(), object))], dtype)


def split(input, sep=None, maxsplit=-1, name=None):
    mark = None if sep is None or sep in ("", b"") else _bytes(sep if not hasattr(sep, "numpy") else sep.numpy())
    return _split_each(input, lambda s: s.split(mark, maxsplit))


def bytes_split(input, name=None):
    return _split_each(input, lambda s: [s[n:n + 1] for n in range(len(s))])


def unicode_split(input, input_encoding="UTF-8", errors="replace", replacement_char=65533, name=None):
    return _split_each(input, lambda s: [c.encode() for c in _decoded(s, input_encoding, errors)])


def unicode_decode(input, input_encoding, errors="replace", replacement_char=65533, replace_control_characters=False,
                   name=None):
    return _split_each(input, lambda s: [ord(c) for c in _decoded(s, input_encoding, errors)], _as_dtype("int32"))


def _decoded(s, encoding, errors):
    return s.decode(encoding.lower(), {"replace": "replace", "ignore": "ignore"}.get(errors, "strict"))


def unicode_encode(input, output_encoding, errors="replace", replacement_char=65533, name=None):
    def text(codes):
        return "".join(chr(int(c)) for c in codes).encode(output_encoding.lower(), "replace")

    if _is_ragged(input):
        made = [text(row) for row in input.to_list()]
        out = _np.empty(len(made), object)
        out[:] = made
        return _tensor(out, _string)
    codes = _tensor(input).numpy()
    if codes.ndim == 1:
        return _tensor(text(codes))
    return _tensor(_np.array([text(row) for row in codes], object), _string)


def unicode_transcode(input, input_encoding, output_encoding, errors="replace", replacement_char=65533,
                      replace_control_characters=False, name=None):
    return _each(input, lambda s: _decoded(s, input_encoding, errors).encode(output_encoding.lower()))


def join(inputs, separator="", name=None):
    inputs = list(inputs)
    if any(_is_ragged(x) for x in inputs):
        from stoker.tf._ragged_broadcast import broadcast

        flat, shaped = broadcast([x if _is_ragged(x) else _tensor(x, _string) for x in inputs])
        return shaped(join(flat, separator))
    parts = [_tensor(x, _string) for x in inputs]
    if any(_is_symbolic(p) for p in parts):
        _not_traceable("it joins strings")
    arrays = _np.broadcast_arrays(*[_np.asarray(p.numpy(), object) for p in parts])
    mark = _bytes(separator)
    flat = [mark.join(row) for row in zip(*[a.ravel() for a in arrays])]
    out = _np.empty(len(flat), object)
    out[:] = flat
    return _tensor(out.reshape(arrays[0].shape), _string)


def reduce_join(inputs, axis=None, keepdims=False, separator="", name=None):
    mark = _bytes(separator)
    if _is_ragged(inputs):
        made = [mark.join(row) for row in inputs.to_list()]
        out = _np.empty(len(made), object)
        out[:] = made
        return _tensor(out, _string)
    array = _np.asarray(_tensor(inputs, _string).numpy(), object)
    if axis is None:
        return _tensor(mark.join(array.ravel().tolist()))
    axes = axis if isinstance(axis, (list, tuple)) else [axis]
    for a in sorted((int(_static(x)) % array.ndim for x in axes), reverse=True):
        moved = _np.moveaxis(array, a, -1)
        out = _np.empty(moved.shape[:-1], object)
        for place in _np.ndindex(*moved.shape[:-1]):
            out[place] = mark.join(moved[place].tolist())
        array = _np.expand_dims(out, a) if keepdims else out
    return _tensor(array, _string)


def to_number(input, out_type="float32", name=None):
    kind = _as_dtype(out_type)

    def number(s):
        try:
            return int(s) if kind.is_integer else float(s)
        except ValueError:
            _errors.invalid("StringToNumberOp could not correctly convert string: " + s.decode("utf-8", "replace"),
                            "StringToNumber")

    return _each(input, number, kind)


def as_string(input, precision=-1, scientific=False, shortest=False, width=-1, fill="", name=None):
    if _is_ragged(input):
        return input.with_flat_values(as_string(input.flat_values, precision, scientific, shortest, width, fill))
    x = _tensor(input)
    if _is_symbolic(x):
        _not_traceable("it makes strings of numbers")
    if x.dtype == _string:
        return x

    def text(v):
        if x.dtype.name == "bool":
            made = "true" if v else "false"
        elif x.dtype.is_floating:
            if not _np.isfinite(v):
                made = str(float(v))
            elif shortest:
                made = f"{v:g}" if precision < 0 else f"{v:.{precision}g}"
            else:
                made = f"{v:.{6 if precision < 0 else precision}{'e' if scientific else 'f'}}"
        else:
            made = str(int(v))
        return (made.rjust(width, fill or " ") if width > 0 else made).encode()

    array = _np.asarray(x.numpy())
    out = _np.empty(array.size, object)
    out[:] = [text(v) for v in array.ravel()]
    return _tensor(out.reshape(array.shape), _string)


def to_hash_bucket_fast(input, num_buckets, name=None):
    return _each(input, lambda s: _hash.fingerprint64(s) % num_buckets, "int64")


to_hash_bucket = to_hash_bucket_fast


def to_hash_bucket_strong(input, num_buckets, key, name=None):
    return _each(input, lambda s: _hash.siphash(s, key) % num_buckets, "int64")


def ngrams(data, ngram_width, separator=" ", pad_values=None, padding_width=None, preserve_short_sequences=False,
           name=None):
    widths = [ngram_width] if isinstance(ngram_width, int) else list(ngram_width)
    mark = _bytes(separator)
    left, right = (None, None) if pad_values is None else (
        (pad_values, pad_values) if isinstance(pad_values, (str, bytes)) else pad_values)

    def grams(row):
        made = []
        for width in widths:
            words = list(row)
            if left is not None:
                count = min(width - 1, padding_width if padding_width is not None else width - 1)
                words = [_bytes(left)] * count + words + [_bytes(right)] * count
            found = [mark.join(words[n:n + width]) for n in range(len(words) - width + 1)]
            if not found and preserve_short_sequences and words and width == max(widths):
                found = [mark.join(words)]
            made += found
        return made

    if _is_ragged(data):
        return _rows([grams(row) for row in data.to_list()])
    array = _np.asarray(_tensor(data, _string).numpy(), object)
    if array.ndim == 1:
        return _tensor(_np.array(grams(array.tolist()), object), _string)
    return _rows([grams(row.tolist()) for row in array])


def format(template, inputs, placeholder="{}", summarize=3, name=None):
    inputs = inputs if isinstance(inputs, (list, tuple)) else [inputs]
    if any(_is_symbolic(x) for x in inputs):
        _not_traceable("it formats values into a string")
    parts = template.split(placeholder)
    if len(parts) - 1 != len(inputs):
        raise ValueError(f"{len(parts) - 1} placeholder(s) in template does not match {len(inputs)} tensor(s) provided as "
                         "input")
    text = parts[0]
    for value, part in zip(inputs, parts[1:]):
        value = _tensor(value).numpy()
        text += (f'"{summary(value)}"' if isinstance(value, bytes) else summary(value, summarize)) + part
    return _tensor(text)


def summary(array, summarize=3):
    """Numbers as tf.print and tf.strings.format show them."""
    if isinstance(array, bytes):
        return array.decode("utf-8", "replace")
    array = _np.asarray(array)
    if array.ndim == 0:
        value = array.item()
        if isinstance(value, bytes):
            return value.decode("utf-8", "replace")
        if isinstance(value, float):
            return _float_text(array)
        return str(int(value)) if isinstance(value, bool) else str(value)
    rows = list(array)
    if summarize >= 0 and len(rows) > 2 * summarize:
        shown = [summary(r, summarize) for r in rows[:summarize]] + ["..."] + [summary(r, summarize) for r in rows[-summarize:]]
    else:
        shown = [f'"{r.decode("utf-8", "replace")}"' if isinstance(r, bytes) else summary(r, summarize) for r in rows]
    return "[" + ("\n " if array.ndim > 1 else " ").join(shown) + "]"


def _float_text(value):
    number = float(value)
    if number == int(number) and abs(number) < 1e16:
        return str(int(number))
    return repr(value.dtype.type(value).item() if value.dtype == _np.float64 else float(_np.format_float_positional(
        value, unique=True))) if 1e-4 <= abs(number) < 1e16 else _np.format_float_scientific(value, trim="-")



def __getattr__(name):
    from stoker.tf import _rooms

    return _rooms.find("strings", name)
