"""What the conftest of Keras' repository does and its wheel does not have, and a plain list of outcomes.

Loaded by tools/keras-test with `pytest -p keras_test_plugin`. Each line of the list is `outcome<tab>name`, where name is
`folder/file.py::Class::test`; it is written as tests end, so that a crash loses one test only.
"""
import os
import signal
import time

import pytest

_list = None
_begun, _alarms = 0.0, 0  # processor time when the test began; how often its alarm rang
_seconds = int(os.environ.get("KERAS_TEST_SECONDS", "120"))


def pytest_configure(config):
    global _list
    config.addinivalue_line("markers", "requires_trainable_backend: needs gradients")
    config.addinivalue_line("markers", "multi_device: needs several devices")
    path = os.environ.get("KERAS_TEST_OUTCOMES")
    _list = open(path, "a", buffering=1) if path else None


def _excluded():
    path = os.environ.get("KERAS_TEST_EXCLUSIONS")
    found = {}
    if path:
        for line in open(path):
            name, _, reason = line.strip().partition("#")
            if name.strip():
                found[name.strip()] = reason.strip()
    return found


def _names(path, outcomes):
    """Tests of a list of outcomes that ended in one of these."""
    if not path or not os.path.exists(path):
        return set()
    return {parts[1] for parts in (line.rstrip("\n").split("\t") for line in open(path)) if parts[0] in outcomes}


def _short(nodeid):
    return nodeid.partition("keras/src/")[2] or nodeid


def pytest_collection_modifyitems(config, items):
    excluded, done = _excluded(), set()
    again = os.environ.get("KERAS_TEST_DONE")
    if again and os.path.exists(again):
        done = {line.rstrip("\n").split("\t")[1] for line in open(again) if "\t" in line and not line.startswith("begun")}
    kept = []
    for item in items:
        name = _short(item.nodeid)
        if name in done:
            continue
        for pattern, reason in excluded.items():
            if name == pattern or (pattern.endswith("*") and name.startswith(pattern[:-1])):
                item.add_marker(pytest.mark.skip(reason="excluded: " + reason))
        kept.append(item)
    first = _names(os.environ.get("KERAS_TEST_FIRST"), ("failed", "error", "crashed", "skipped"))
    items[:] = sorted(kept, key=lambda item: _short(item.nodeid) not in first) if first else kept


def _too_long(signum, frame):
    """Others may have the processors: a test that had less than its time goes on, up to five times as long."""
    global _alarms
    _alarms += 1
    if _alarms < 5 and time.process_time() - _begun < _seconds / 2:
        signal.alarm(_seconds)
        return
    raise TimeoutError(f"the test took longer than {_seconds} s")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    if _list:
        _list.write(f"begun\t{_short(item.nodeid)}\n")
    global _begun, _alarms
    _begun, _alarms = time.process_time(), 0
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(_seconds)
    yield
    signal.alarm(0)


def pytest_runtest_logreport(report):
    if not _list or not (report.when == "call" or report.outcome != "passed"):
        return
    outcome = "error" if report.when != "call" and report.outcome == "failed" else report.outcome
    line = ""
    if report.outcome == "failed":
        crash = getattr(report.longrepr, "reprcrash", None)
        line = "\t" + (crash.message.splitlines() or [""])[0][:200] if crash else ""
    _list.write(f"{outcome}\t{_short(report.nodeid)}{line}\n")


def pytest_collectreport(report):
    if _list and report.failed:
        crash = getattr(report.longrepr, "reprcrash", None)
        text = (crash.message if crash else str(report.longrepr)).splitlines()
        _list.write(f"uncollected\t{_short(report.nodeid)}\t{text[-1][:200] if text else ''}\n")
