"""Kernel text of src/device/cl/text as CUDA C: every text, with the options of its recipes, through NVRTC to machine code for cards from
sm_75 on, with the options of the library. Warnings are errors; so are spilled registers and kernels with more registers than a card has for
the groups that should run beside each other. And what api.h and api.def declare by hand against NVIDIA's own headers and stub. Exit code 77 (skipped) where the CUDA toolkit is not installed.

    cuda_text_test.py SOURCE_FOLDER [ARCHITECTURE ... | all]
"""

import ctypes
import glob
import os
import re
import sys

F32 = "-DSK_T=float -DSK_R=float -DSK_A=float -DSK_LOAD=sk_load_f32 -DSK_STORE=sk_store_f32 -DSK_Y=float"
F64 = F32.replace("float", "double").replace("f32", "f64")
BF16 = F32.replace("SK_T=float", "SK_T=ushort").replace("f32", "bf16")
F16 = BF16.replace("bf16", "f16")
I32 = "-DSK_T=int -DSK_A=sk_long -DSK_LOAD=sk_load_i32 -DSK_STORE=sk_store_i32 -DSK_Y=int"
# stk_cl_tile_of of recipes_gemm.c; float64 has the first and the last
TILES = [" -DSK_BM=%d -DSK_BN=%d -DSK_TM=%d -DSK_TN=%d" % sizes
         for sizes in ((64, 64, 4, 4), (128, 64, 8, 4), (64, 128, 4, 8), (32, 32, 2, 2))]


def options():
    for tile in TILES:
        for types in (F32, F64, BF16, F16):
            if types != F64 or tile in (TILES[0], TILES[-1]):
                yield "gemm.cl", types + tile + " -DSK_WIDE=0 -DSK_END=0"
        for end in (1, 2, 3):
            yield "gemm.cl", F32 + tile + f" -DSK_WIDE=0 -DSK_END={end}"
        for what in (0, 1, 2):
            yield "conv.cl", f"-DSK_R=float -DSK_WHAT={what} -DSK_HOW=2" + tile
    for what in (0, 1, 2):
        yield "conv.cl", f"-DSK_R=float -DSK_WHAT={what} -DSK_HOW=0"
    folded = " -DSK_GX=3 -DSK_GY=65537"  # a grid of more groups than CUDA takes on an axis
    yield "gemm.cl", F32 + TILES[0] + " -DSK_WIDE=0 -DSK_END=0" + folded
    for what in (0, 1, 2):
        yield "conv.cl", f"-DSK_R=float -DSK_WHAT={what} -DSK_HOW=2" + TILES[0] + folded
    for kind in range(8):
        yield "reduce.cl", F32 + f" -DSK_KIND={kind}"
        yield "reduce.cl", I32 + f" -DSK_KIND={kind}"
    for lanes in (1, 64):
        rows = f"-DSK_R=float -DSK_LANES={lanes} -DSK_GROUP_SIZE=64"
        yield "rows.cl", rows + " -DSK_ROWS=0"
        yield "rows.cl", rows + " -DSK_ROWS=1 -DSK_L=sk_long -DSK_DENSE=0"
        yield "rows.cl", rows + " -DSK_ROWS=1 -DSK_L=float -DSK_DENSE=1"
        yield "rows.cl", rows + " -DSK_ROWS=2 -DSK_GAMMA=1 -DSK_BETA=1 -DSK_CENTER=1"
        yield "rows.cl", rows + " -DSK_ROWS=2 -DSK_GAMMA=0 -DSK_BETA=0 -DSK_CENTER=0"
    yield "columns.cl", "-DSK_R=float -DSK_CENTER=1"
    yield "columns.cl", "-DSK_R=double -DSK_CENTER=0"
    yield "move.cl", "-DSK_E=uint -DSK_I=sk_long"
    yield "move.cl", "-DSK_E=uchar -DSK_I=int"
    yield "lines.cl", F32 + " -DSK_SCAN=1"
    yield "lines.cl", I32 + " -DSK_SCAN=0"
    yield "index.cl", "-DSK_MOVES=1 -DSK_E=uint -DSK_I=sk_long"
    yield "index.cl", F32 + " -DSK_MOVES=0 -DSK_I=int -DSK_BASE=1"
    yield "sort.cl", "-DSK_E=uint -DSK_BITS=32 -DSK_KEY=2 -DSK_INFINITY=0x7f800000u -DSK_RUN=16"
    yield "sort.cl", "-DSK_E=sk_long -DSK_BITS=64 -DSK_KEY=3 -DSK_INFINITY=0 -DSK_RUN=16"
    yield "pool.cl", F32 + " -DSK_W=uchar -DSK_Q=1"
    for kind in range(4):
        yield "random.cl", f"-DSK_KIND={kind} -DSK_T=float -DSK_WIDE=0"
        yield "random.cl", f"-DSK_KIND={kind} -DSK_T=double -DSK_WIDE=1"
    yield "random.cl", "-DSK_KIND=4 -DSK_T=int -DSK_WIDE=0"
    for cell in range(4):
        yield "rnn.cl", (f"-DSK_R=float -DSK_CELL={cell} -DSK_LANES=64 -DSK_MASK=1 -DSK_DHS=1 "
                         "-DSK_DH=1 -DSK_DC=1")
    yield "image.cl", F32 + " -DSK_RESIZE=1 -DSK_COPIES=0"
    yield "image.cl", F32 + " -DSK_RESIZE=0 -DSK_GRAD=0 -DSK_X=float"
    yield "image.cl", F32 + " -DSK_RESIZE=0 -DSK_GRAD=1 -DSK_X=float"


# A chain as recipes_chain.c writes it: Adam, with operations of every lane behind it.
CHAIN = """
typedef struct { int q[4]; } sk_numbers;
SK_KERNEL void chain(SK_IN(float, s0x0), SK_IN(ushort, s0x1), SK_IN(sk_long, s0x2), SK_OUT(float, s0y0),
                     SK_OUT(uchar, s0y1), const sk_numbers p)
{
    int i = SK_GROUP * 256 + SK_LANE;
    SK_GLOBAL const float *x0 = s0x0_block + s0x0_at;
    SK_GLOBAL const ushort *x1 = s0x1_block + s0x1_at;
    SK_GLOBAL const sk_long *x2 = s0x2_block + s0x2_at;
    SK_GLOBAL float *y0 = s0y0_block + s0y0_at;
    SK_GLOBAL uchar *y1 = s0y1_block + s0y1_at;
    if (i >= p.q[1]) return;
    float a = sk_load_f32(x0, i), b = sk_load_bf16(x1, i), r = 0;
    sk_long c = sk_load_i64(x2, i);
%s
    sk_store_f32(y0, i, r);
    sk_store_bool(y1, i, sk_lt_f32(a, b) + sk_eq_i64(c, c) + sk_cast_f32_bool(a));
}
"""


def chain_text(folder):
    with open(os.path.join(folder, "elementwise.h"), encoding="utf-8") as f:
        text = f.read()
    lines = []
    for name, arguments in re.findall(r"SK_FN R sk_(\w+?)_##S\(([^)]*)\)", text):
        few = {1: "a", 2: "a, b", 3: "a, b, r"}[arguments.count(",") + 1]
        if "int a" not in arguments:
            lines.append(f"    r += sk_{name}_f32({few});")
    for name, arguments in re.findall(r"SK_FN sk_long sk_(\w+?)_i64\((sk_long[^)]*)\)", text):
        few = {1: "c", 2: "c, c + 1"}[arguments.count(",") + 1]
        lines.append(f"    c += sk_{name}_i64({few});")
    return text + CHAIN % "\n".join(lines + ["    r += (float)c;"])


# Registers of one item. A multiprocessor has 65536: with 128, two groups of 256 run beside each other; 64 leaves room for four.
BUDGET = {"gemm.cl": 128, "conv.cl": 128, "rnn.cl": 128}
OTHERS = 64
ALL = ["75", "80", "86", "87", "89", "90", "100", "120"]


def open_nvrtc():
    places = ["libnvrtc.so.13", "libnvrtc.so.12", *sorted(glob.glob("/usr/local/cuda*/lib64/libnvrtc.so.1[0-9]"), reverse=True)]
    for path in places:
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    return None


def compile_text(nvrtc, text, options):
    """(machine code was made, what the compiler said)"""
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    nvrtc.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
    given = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
    code = nvrtc.nvrtcCompileProgram(program, len(options), given)
    nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    said = ctypes.create_string_buffer(size.value + 1)
    nvrtc.nvrtcGetProgramLog(program, said)
    made = code == 0 and nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)) == 0 and size.value > 0
    nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    return made, said.value.decode()


def judge(name, made, said):
    """What is wrong; "" when nothing is. And the most registers that a kernel of it has."""
    registers = [int(n) for n in re.findall(r"Used (\d+) registers", said)]
    spills = [n for n in re.findall(r"(\d+) bytes spill stores", said) if n != "0"]
    other = [line for line in said.splitlines() if line.strip() and not re.match(r"ptxas (info|\s+\.)", line)]
    if not made or other:
        return "\n".join(other)[-800:] or "no machine code", 0
    if spills:
        return f"spills {spills[0]} bytes", 0
    if not registers:
        return "no kernel in it", 0
    budget = BUDGET.get(name, OTHERS)
    return (f"{max(registers)} registers, more than {budget}" if max(registers) > budget else ""), max(registers)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def declarations(folder):
    """What is wrong with the constants and names that are declared by hand."""
    headers = [glob.glob(f"/usr/local/cuda*/include/{name}.h") for name in ("cuda", "nvrtc")]
    if not all(headers):
        return []
    real = "\n".join(read(sorted(found)[-1]) for found in headers)
    wrong = []
    for name, value in re.findall(r"\b((?:CU|NVRTC)\w+) = (\d+)", read(os.path.join(folder, "api.h"))):
        there = re.search(rf"\b{name}\s*(?:=\s*)?(0x[0-9a-fA-F]+|\d+)", real)
        if not there or int(there[1], 0) != int(value):
            wrong.append(f"{name} is {there[1] if there else 'nowhere'}, not {value}")
    stubs = sorted(glob.glob("/usr/local/cuda*/lib64/stubs/libcuda.so"))
    driver = ctypes.CDLL(stubs[-1]) if stubs else None
    for name, arguments in re.findall(r"STK_CU\((\w+), int,\s*\(([^)]*)", read(os.path.join(folder, "api.def"))):
        if driver and not hasattr(driver, name):
            wrong.append(f"no {name} in the driver")
        known = re.search(rf"#define (\w+)\s+(?:__CUDA_API_\w+\()?{name}\b", real)  # the header gives it another name
        plain = known[1] if known else name
        there = re.search(rf"CUresult CUDAAPI {plain}\(([^)]*)\)", real)
        if not there or there[1].count(",") != arguments.count(","):
            wrong.append(f"{name}({arguments}), but {there[1] if there else 'nothing'}")
    return wrong


def main():
    nvrtc, architectures = open_nvrtc(), sys.argv[2:] or ["75", "120"]
    if not nvrtc:
        print("no CUDA toolkit here: skipped")
        return 77
    if architectures == ["all"]:
        architectures = ALL
    folder = os.path.join(sys.argv[1], "src/device/cl/text")
    texts, most, tried = {}, {}, 0
    wrong = declarations(os.path.join(sys.argv[1], "src/device/cuda"))
    bad = len(wrong)
    print("\n".join(wrong), end="\n" if wrong else "")
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            texts[name] = f.read()
    head = texts["dialect.h"] + "\n" + texts["params.h"] + "\n"
    jobs = [("chain", "", chain_text(folder))] + [(n, o, texts[n]) for n, o in options()]
    left = {n for n in texts if n.endswith(".cl")} - {n for n, _, _ in jobs}
    if left:
        print("texts without options in this test:", sorted(left))
        bad += 1
    for name, given, text in jobs:
        for arch in architectures:
            made, said = compile_text(nvrtc, head + text, [f"--gpu-architecture=sm_{arch}", "--fmad=false", "--diag-suppress=177",
                                                           "--ptxas-options=-v", *given.split()])
            wrong, registers = judge(name, made, said)
            most[name] = max(most.get(name, 0), registers)
            tried += 1
            if wrong:
                bad += 1
                print(f"{name} {given}, sm_{arch}: {wrong}")
    print("most registers:", ", ".join(f"{n} {r}" for n, r in sorted(most.items())))
    print(f"{tried} programs for sm_{', sm_'.join(architectures)}: {bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
