"""pytest plugin for Keras' own tests: its markers, a time limit per test, one line per result.

The wheel ships the tests but not their conftest. What that file does for us is little: two markers, and
TensorFlow before anything else. Results go to a file as they happen, so that a crash of the interpreter loses
nothing: the line "start" without an outcome names the test that did it.
"""
import json
import os
import signal

import pytest

# KERAS_TEST_ENGINE=stoker puts our finder in front; anything else is the real thing.
if os.environ.get("KERAS_TEST_ENGINE") == "stoker":
    from stoker import _hook

    _hook.install()

_LIMIT = int(os.environ.get("KERAS_TEST_LIMIT", "120"))
_out = open(os.environ["KERAS_TEST_RESULTS"], "a", buffering=1)
_root = os.environ["KERAS_TEST_ROOT"]
_done = set()
if os.path.exists(os.environ["KERAS_TEST_RESULTS"]):
    for _line in open(os.environ["KERAS_TEST_RESULTS"]):
        _done.add(json.loads(_line)[1])


class TestTooLong(BaseException):
    pass


def _name(nodeid):
    path, _, rest = nodeid.partition("::")
    path = os.path.abspath(os.path.join(str(_config.rootpath), path))
    return os.path.relpath(path, _root) + "::" + rest


def _write(outcome, nodeid, why=""):
    _out.write(json.dumps([outcome, _name(nodeid), why[-400:]]) + "\n")


def pytest_configure(config):
    global _config
    _config = config
    config.addinivalue_line("markers", "requires_trainable_backend: the backend can train")
    config.addinivalue_line("markers", "multi_device: more than one device is needed")


def pytest_collectreport(report):
    if report.failed:
        _write("broken", report.nodeid + "::(import)", str(report.longrepr))


def pytest_collection_modifyitems(config, items):
    for item in items:
        if "multi_device" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="one device here"))
    items[:] = [item for item in items if _name(item.nodeid) not in _done]


def _too_long(signum, frame):
    raise TestTooLong(f"longer than {_LIMIT} s")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    _write("start", item.nodeid)
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(_LIMIT)
    try:
        return (yield)
    finally:
        signal.alarm(0)


_reports = {}  # of the test that runs: outcome, why


def pytest_runtest_logreport(report):
    if report.failed:
        _reports[report.nodeid] = "failed", str(report.longrepr)
    elif report.skipped:
        _reports.setdefault(report.nodeid, ("skipped", str(report.longrepr)))
    if report.when == "teardown":
        outcome, why = _reports.pop(report.nodeid, ("passed", ""))
        _write(outcome, report.nodeid, why)
