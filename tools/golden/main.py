"""Called by tools/make-op-goldens; see there."""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import case
import cases_conv
import cases_image
import cases_nn
import cases_optim
import tensorflow as tf


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    bad = written = size = 0
    for module in (cases_conv, cases_image, cases_nn, cases_optim):
        for one in module.cases():
            if options.words and not any(word in one.name for word in options.words):
                continue
            path = options.out / f"{one.name}.npz"
            if options.check:
                for problem in case.differences(one, path):
                    print(f"{path.name}: {problem}")
                    bad += 1
            else:
                data = case.build(one)
                if not path.exists() or path.read_bytes() != data:
                    path.write_bytes(data)
            written, size = written + 1, size + path.stat().st_size
    print(f"make-op-goldens: {written} cases, {size} bytes, {bad} differences")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
