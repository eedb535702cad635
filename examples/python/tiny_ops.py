"""A million tiny operations, eagerly: what does one call cost?  (`tiny_ops.py 100000` for fewer)"""
import sys
import time

import numpy as np
import tensorflow as tf

COUNT = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000

rng = np.random.default_rng(8)
a = tf.constant(rng.normal(size=(10, 10)).astype("float32"))
b = tf.constant(rng.normal(size=(10, 10)).astype("float32"))
unit = tf.constant(np.linalg.qr(rng.normal(size=(10, 10)))[0].astype("float32"))  # keeps the length of vectors

start = time.perf_counter()
c = a
for _ in range(COUNT):
    c = c + b
adds = time.perf_counter() - start

start = time.perf_counter()
d = a
for _ in range(COUNT):
    d = tf.matmul(d, unit)
products = time.perf_counter() - start

print(f"add {adds / COUNT * 1e6:.2f} us, matmul {products / COUNT * 1e6:.2f} us")
print("result: sum_of_adds", float(f"{float(c[3, 4]):.3g}"))
print("result: length_kept", abs(float(tf.norm(d) / tf.norm(a)) - 1.0) < 0.05)
print("result: type", c.dtype.name, c.shape)
