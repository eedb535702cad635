"""tf.io.gfile: files of the machine, by TensorFlow's names."""
import glob as _glob
import io as _io
import os as _os
import shutil as _shutil

from stoker.tf import errors as _errors


def _path(path):
    if hasattr(path, "numpy"):
        path = path.numpy()
    path = _os.fspath(path)
    path = path.decode() if isinstance(path, bytes) else path
    return path.removeprefix("file://")


def _raise(code, message):
    raise _errors.by_code[code](None, None, message, code)


def _translated(error, path):
    """An OSError as TensorFlow's class."""
    code = {FileNotFoundError: 5, FileExistsError: 6, PermissionError: 7, NotADirectoryError: 9, IsADirectoryError: 9}.get(
        type(error), 2)
    return _errors.by_code[code](None, None, f"{path}; {error.strerror}", code)


class GFile:
    """A file. It is opened when it is first used, as in TensorFlow."""

    def __init__(self, name, mode="r", encoding="utf-8"):
        if mode not in ("r", "w", "a", "r+", "w+", "a+", "rb", "wb", "ab", "rb+", "r+b", "wb+", "w+b", "ab+", "a+b"):
            _errors.invalid(f"mode {mode!r} is not one of 'r', 'w', 'a' with 'b' or '+'")
        self._name, self._mode, self._encoding, self._file_ = name, mode, encoding, None

    name = property(lambda self: self._name)
    mode = property(lambda self: self._mode)

    @property
    def _file(self):
        if self._file_ is None:
            path = _path(self._name)
            try:
                if "b" in self._mode:
                    self._file_ = open(path, self._mode)
                else:
                    self._file_ = open(path, self._mode, encoding=self._encoding, newline="")
            except OSError as error:
                raise _translated(error, path) from None
        return self._file_

    def _checked(self, what, *args):
        try:
            return getattr(self._file, what)(*args)
        except _io.UnsupportedOperation:
            _raise(7, f"File isn't open for {'writing' if what == 'write' else 'reading'}")

    def read(self, n=-1):
        return self._checked("read", n)

    def readline(self):
        return self._checked("readline")

    def readlines(self):
        return self._checked("readlines")

    def write(self, file_content):
        return self._checked("write", file_content)

    def writelines(self, lines):
        for line in lines:
            self.write(line)

    def seek(self, offset=None, whence=0, position=None):
        self._file.seek(offset if position is None else position, whence)

    def tell(self):
        return self._file.tell()

    def seekable(self):
        return True

    def readable(self):
        return "r" in self._mode or "+" in self._mode

    def writable(self):
        return self._mode[0] != "r" or "+" in self._mode

    def size(self):
        return stat(self._name).length

    def flush(self):
        if self._file_ is not None:
            self._file_.flush()

    def close(self):
        if self._file_ is not None:
            self._file_.close()
            self._file_ = None
        elif self._mode[0] == "w":  # an empty file is a file
            self._file  # noqa: B018
            self.close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def __iter__(self):
        return iter(self._file)

    def __next__(self):
        return next(self._file)

    next = __next__


FastGFile = Open = GFile


def exists(path):
    return _os.path.exists(_path(path))


def isdir(path):
    return _os.path.isdir(_path(path))


def glob(pattern):
    patterns = [pattern] if isinstance(pattern, (str, bytes)) or hasattr(pattern, "__fspath__") else pattern
    return sorted({found for one in patterns for found in _glob.glob(_path(one))})


def listdir(path):
    try:
        return _os.listdir(_path(path))
    except FileNotFoundError:
        _raise(5, f"Could not find directory {_path(path)}")
    except OSError as error:
        raise _translated(error, path) from None


def makedirs(path):
    try:
        _os.makedirs(_path(path), exist_ok=True)
    except OSError as error:
        raise _translated(error, path) from None


def mkdir(path):
    try:
        _os.mkdir(_path(path))
    except OSError as error:
        raise _translated(error, path) from None


def remove(path):
    try:
        _os.remove(_path(path))
    except OSError as error:
        raise _translated(error, path) from None


def rmtree(path):
    try:
        _shutil.rmtree(_path(path))
    except OSError as error:
        raise _translated(error, path) from None


def copy(src, dst, overwrite=False):
    if exists(dst) and not overwrite:
        _raise(6, f"file already exists: {_path(dst)}")
    try:
        _shutil.copyfile(_path(src), _path(dst))
    except OSError as error:
        raise _translated(error, src) from None


def rename(src, dst, overwrite=False):
    if exists(dst) and not overwrite:
        _raise(6, f"file already exists: {_path(dst)}")
    try:
        _os.replace(_path(src), _path(dst))
    except OSError as error:
        raise _translated(error, src) from None


class FileStatistics:
    def __init__(self, found):
        self.length, self.mtime_nsec, self.mode = found.st_size, found.st_mtime_ns, found.st_mode
        self.is_directory = _os.path.stat.S_ISDIR(found.st_mode)


def stat(path):
    try:
        return FileStatistics(_os.stat(_path(path)))
    except OSError as error:
        raise _translated(error, path) from None


def walk(top, topdown=True, onerror=None):
    def inner(folder):
        entries = sorted(_os.listdir(folder))
        folders = [e for e in entries if _os.path.isdir(_os.path.join(folder, e))]
        here = (folder, folders, [e for e in entries if e not in folders])
        if topdown:
            yield here
        for one in folders:
            yield from inner(_os.path.join(folder, one))
        if not topdown:
            yield here

    if isdir(top):
        yield from inner(_path(top))


def join(path, *paths):
    return _os.path.join(path, *paths)


def get_registered_schemes():
    return ["", "file"]
