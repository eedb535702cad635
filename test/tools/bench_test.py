#!/usr/bin/env python3
"""The benchmark's own arithmetic and protocol, tested without any peer: ratios, limits, goals,
the table, peers that answer, die or talk nonsense, and the C harness on a made-up row."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path.insert(0, str(BENCH))
from lib import goals, machine, programs, table  # noqa: E402
from lib.figures import Figures  # noqa: E402

PEAK = {"threads": 2,
        "flops": [{"isa": "a", "threads": 1, "gflops": 90, "best": 100},
                  {"isa": "a", "threads": 2, "gflops": 190, "best": 200},
                  {"isa": "b", "threads": 2, "gflops": 10, "best": 20}],
        "bandwidth": [{"level": "l2", "op": "read", "threads": 2, "bytes": 1, "gbs": 40, "best": 50}]}


def fixed(columns, limit=None):
    """Figures of {column: value, or one value per round}."""
    figures = Figures()
    for column, values in columns.items():
        for value in values if isinstance(values, list) else [values]:
            figures.add(column, {"samples": [value] * 3, "variant": "way"})
    figures.limits = [limit] if limit else []
    return figures


class Judging(unittest.TestCase):
    ROW = {"row": "r", "unit": "us", "flops": 400000, "bytes": 50000, "level": "l2",
           "goals": [{"vs": "tensorflow", "times": 40}, {"vs": "best", "times": 3}]}

    def test_ratios_and_limit(self):
        figures = fixed({"stoker": 10.0, "stoker_1t": 12.0, "tensorflow": 400.0,
                         "jax_scan": 31.0})
        result = goals.judge(self.ROW, figures, PEAK, 2)
        self.assertEqual(result["best_peer"], "jax_scan")
        self.assertAlmostEqual(result["ratio_best"], 3.1)
        self.assertAlmostEqual(result["limit"], 2.0)  # 400 kFLOP at 200 GFLOP/s, in us
        self.assertAlmostEqual(result["limit_share"], 0.2)
        self.assertIs(result["goal_met"], True)
        self.assertFalse(result["slower_with_threads"])

    def test_memory_can_be_the_limit(self):
        row = dict(self.ROW, bytes=500000)
        self.assertAlmostEqual(goals.limit_of(row, fixed({}), PEAK, 2), 10.0)  # 0.5 MB at 50 GB/s
        self.assertIsNone(goals.limit_of(dict(row, level="l9"), fixed({}), PEAK, 2))
        self.assertIsNone(goals.limit_of(row, fixed({}), None, 2))

    def test_missed_and_unknown_goals(self):
        missed = goals.judge(self.ROW, fixed({"stoker": 11.0, "tensorflow": 400.0}), PEAK, 2)
        self.assertIs(missed["goal_met"], False)
        unknown = goals.judge(self.ROW, fixed({"stoker": 10.0, "torch": 100.0}), PEAK, 2)
        self.assertIsNone(unknown["goal_met"])
        nothing = goals.judge(self.ROW, fixed({}), PEAK, 2)
        self.assertIsNone(nothing["stoker"])
        self.assertIsNone(nothing["goal_met"])

    def test_slower_with_threads_is_flagged(self):
        result = goals.judge(self.ROW, fixed({"stoker": 10.5, "stoker_1t": 10.0}), PEAK, 2)
        self.assertTrue(result["slower_with_threads"])
        lines = table.render([result], {"busy_by_others": 0.5})
        self.assertIn("SLOWER WITH THREADS", lines[2])
        self.assertIn("provisional", lines[-1])
        once = fixed({"stoker": [12.0, 9.0, 12.0], "stoker_1t": [10.0] * 3})
        self.assertFalse(goals.judge(self.ROW, once, PEAK, 2)["slower_with_threads"])
        start = fixed({"stoker": 10.5, "stoker_1t": 10.0})
        self.assertFalse(goals.judge(dict(self.ROW, fresh=True), start, PEAK, 2)["slower_with_threads"])

    def test_other_values_do_not_count(self):
        figures = fixed({"stoker": 1.0})
        figures.check = [1.0, 2.0]
        for name, values in (("tensorflow", [1.0, 2.0]), ("torch", [1.0, 2.1])):
            figures.add_peer({"same": 1e-3}, {"peer": name, "samples": [5.0], "check": values})
        self.assertEqual(figures.same, ["tensorflow"])
        self.assertIn("other values", figures.notes["torch"])

    def test_a_measured_limit_wins(self):
        result = goals.judge(self.ROW, fixed({"stoker": 8.0}, limit=4.0), PEAK, 2)
        self.assertAlmostEqual(result["limit_share"], 0.5)

    def test_columns_are_aligned(self):
        results = [goals.judge(dict(self.ROW, row=name), fixed({"stoker": v, "torch": 1e5}),
                               None, 2) for name, v in (("a", 1.0), ("a_long_name", 12345.0))]
        head, _, first, second = table.render(results, {"busy_by_others": 0})
        end = head.index("stoker") + len("stoker")
        self.assertEqual((first[end - 1], second[end - 1], first[end], second[end]), ("1", "5", " ", " "))

    def test_rows_file(self):
        rows = {row["row"]: row for row in json.loads((BENCH / "rows.json").read_text())["rows"]}

        def dense(batch, *sizes):
            pairs = list(zip(sizes, sizes[1:]))
            once = [2 * batch * a * b for a, b in pairs]
            return 2 * sum(once) + sum(once[1:])  # the first layer needs no data gradient

        conv, flat = 2 * 32 * 62 * 62 * 32 * 27, 2 * 32 * 31 * 31 * 32 * 10
        self.assertEqual(rows["tiny_step"]["flops"], dense(10, 100, 128, 10))
        self.assertEqual(rows["tiny_step_b32"]["flops"], dense(32, 100, 128, 10))
        self.assertEqual(rows["mlp_b512"]["flops"], dense(512, 128, 256, 128, 1))
        self.assertEqual(rows["cnn_step"]["flops"], 2 * conv + 3 * flat)
        for row in rows.values():
            self.assertTrue(row["goals"] and row["what"] and row["unit"], row)


FAKE_PEER = '''
import json, sys
print("noise from an import"); print(json.dumps({"ready": 1}), flush=True)
for line in sys.stdin:
    row = line.split()[0]
    if row == "die": sys.exit(3)
    if row == "garbage": print("{broken", flush=True)
    print(json.dumps({"row": row, "peer": "torch", "variant": "v", "samples": [1, 2, 3]}), flush=True)
    print(json.dumps({"done": row}), flush=True)
'''


class Protocol(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = pathlib.Path(self.folder.name)
        (self.path / "fake.py").write_text(FAKE_PEER)
        command = [sys.executable, str(self.path / "fake.py")]
        self.peer = programs.ServingPeer("torch", command, dict(os.environ), self.path / "log")
        self.peer.wait_ready()

    def tearDown(self):
        self.peer.close()
        self.folder.cleanup()

    def test_answers(self):
        self.assertEqual(self.peer.measure("x", 0.1, [])[0]["samples"], [1, 2, 3])

    def test_nonsense_is_an_error_line(self):
        lines = self.peer.measure("garbage", 0.1, [])
        self.assertIn("not JSON", lines[0]["error"])
        self.assertEqual(lines[1]["samples"], [1, 2, 3])

    def test_death_is_reported_once(self):
        lines = self.peer.measure("die", 0.1, [])
        self.assertIn("ended with 3", lines[0]["error"])
        self.assertEqual(self.peer.measure("x", 0.1, []), [])


class Load(unittest.TestCase):
    def test_own_work_is_not_others(self):
        watch = machine.Watch([])
        subprocess.run([sys.executable, "-c", "sum(range(3000000))"], check=True)
        self.assertTrue(0.0 <= watch.others() <= 1.0)


HARNESS_ROWS = '''
#include "harness.h"
static volatile double x;
static int spin(void *s, int64_t n) { (void)s; while (n--) x = x + 1; return 0; }
static int fail(void *s, int64_t n) { (void)s; (void)n; return 1; }
static int value(const bench_options *o, double *v) { *v = o->threads; bench_note_text("k", "a\\"b"); return 0; }
static const bench_row rows[] = {{.name = "spin", .unit = "ns", .run = spin},
                                 {.name = "fail", .unit = "ns", .run = fail},
                                 {.name = "value", .unit = "MB", .value = value}};
int main(int argc, char **argv) { return bench_main(argc, argv, rows, 3); }
'''


class Harness(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        source = pathlib.Path(cls.folder.name) / "rows.c"
        cls.program = str(source.with_suffix(""))
        source.write_text(HARNESS_ROWS)
        subprocess.run([os.environ.get("CC", "cc"), "-std=gnu11", "-O2", f"-I{BENCH}", "-o", cls.program,
                        str(source), str(BENCH / "harness.c"), "-lm"], check=True)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def call(self, *arguments):
        return subprocess.run([self.program, *arguments], capture_output=True, text=True)

    def test_list(self):
        self.assertEqual(self.call("--list").stdout.split(), ["spin", "fail", "value"])

    def test_timed_row(self):
        line = json.loads(self.call("--row", "spin", "--seconds", "0.05").stdout)
        self.assertGreaterEqual(len(line["samples"]), 5)
        self.assertTrue(0 < line["p10"] <= line["median"] <= line["p90"])
        self.assertEqual((line["row"], line["unit"]), ("spin", "ns"))

    def test_value_row(self):
        line = json.loads(self.call("--row", "value", "--threads", "2").stdout)
        self.assertEqual((line["samples"], line["k"]), ([2], 'a"b'))

    def test_exit_codes(self):
        for code, arguments in ((1, ["--row", "fail"]), (2, ["--row"]), (2, ["--row", "spin", "--seconds", "0"]),
                                (2, ["--what", "1"]), (3, ["--row", "none"])):
            self.assertEqual(self.call(*arguments).returncode, code, arguments)


if __name__ == "__main__":
    unittest.main(verbosity=0)
