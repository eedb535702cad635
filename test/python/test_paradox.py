"""python -m stoker paradox: its rows run, what it tells machines, what it refuses, Ctrl-C."""
import json
import signal
import subprocess
import sys
import time

import pytest

from stoker import _paradox

COMMAND = [sys.executable, "-m", "stoker", "paradox"]


def run(*words):
    return subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=280)


def test_every_row_in_python():
    done = run("--python", "--json", "--seconds", "0.2")
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)["python"]
    assert [row["id"] for row in rows] == ["1", "2", "3", "4", "5a", "5b", "6a", "6b"]
    for row in rows:
        assert 0 < row["gain"]["low"] <= row["gain"]["best"] <= row["gain"]["high"]
        assert row["as_written_seconds"] / row["cured_seconds"] == pytest.approx(row["gain"]["best"])
        assert row["judged"] in ("faster", "slower", "no difference", "too noisy")


def test_the_engine_then_python(tmp_path):
    page = tmp_path / "p.html"
    done = run("--only", "5a", "--seconds", "0.2", "--device", "cpu:0", "--html", str(page))
    assert (done.returncode, done.stderr) == (0, "")
    engine, python = done.stdout.split("\nIn Python:\n")
    assert "\n5a   a million tiny adds\n     cpu:0, per million adds" in engine
    assert "\n5a   per million adds" in python and "for x, y in pairs: x + y" in python
    assert page.read_text().startswith("<!doctype html>")


def test_what_is_refused():
    done = run("--only", "9")
    assert done.returncode == 2 and "there is no experiment '9'; there are 1, 1a, 1b, 2," in done.stderr
    done = run("--only", "5a", "--device", "gpu:9")
    assert done.returncode != 0 and 'no device "gpu:9"' in done.stderr


def test_interval():
    best, low, high = _paradox._interval([0.1] * 8)
    assert best == pytest.approx(low) == pytest.approx(high) == pytest.approx(1.1051709)
    assert _paradox._judge(0.9, 1.2) == "too noisy" and _paradox._judge(0.97, 1.03) == "no difference"


def test_interrupted():
    child = subprocess.Popen([*COMMAND, "--only", "5,6"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(3)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130, (out, err)
    assert err == "\npython -m stoker paradox: interrupted\n"
