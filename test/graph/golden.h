/* golden.h - one file of test/golden as a graph: its inputs, attributes and expected results by name. The files are
 * described in tools/golden/case.py.
 *
 *     static void build_elu(golden *c) { golden_result(c, "y", stk_g_elu(c->g, golden_input(c, "x"), 1)); }
 */
#ifndef STK_TEST_GRAPH_GOLDEN_H
#define STK_TEST_GRAPH_GOLDEN_H

#include "check.h"

#include "base/json.h"
#include "stoker/graph.h"

enum { GOLDEN_MOST = 16 };

typedef struct golden {
    stk_npz *file;
    stk_json_document *document;
    const stk_json *meta, *attributes;
    const char *name, *op;
    stk_graph *g;
    int32_t ninputs, noutputs;
    const char *input[GOLDEN_MOST], *output[GOLDEN_MOST];
    stk_val input_val[GOLDEN_MOST], output_val[GOLDEN_MOST];
    bool differentiable[GOLDEN_MOST]; /* per output */
} golden;

/* ---- what builders ask ------------------------------------------------------------------------------------ */

static inline stk_val golden_input(golden *c, const char *name)
{
    for (int32_t i = 0; i < c->ninputs; i++)
        if (!strcmp(c->input[i], name)) return c->input_val[i];
    const stk_tensor *t = stk_npz_find(c->file, name);
    if (!t || c->ninputs == GOLDEN_MOST) {
        printf("golden %s has no input %s\n", c->name, name);
        CHECK(!"the input is in the file");
        return 0;
    }
    stk_val v = stk_g_input(c->g, name, t->dtype, t->rank, t->shape);
    c->input[c->ninputs] = name;
    c->input_val[c->ninputs++] = v;
    return v;
}

static inline void golden_result(golden *c, const char *name, stk_val v)
{
    if (!CHECK(c->noutputs < GOLDEN_MOST)) return;
    c->output[c->noutputs] = name;
    c->differentiable[c->noutputs] = true;
    c->output_val[c->noutputs++] = v;
    stk_g_output(c->g, name, v);
}

/* A result that no gradient flows through. */
static inline void golden_aside(golden *c, const char *name, stk_val v)
{
    golden_result(c, name, v);
    c->differentiable[c->noutputs - 1] = false;
}

/* An attribute that must be there: a misspelt one would pass as its default. */
static inline const stk_json *golden_attribute(const golden *c, const char *name)
{
    const stk_json *a = stk_json_get(c->attributes, name);
    if (!a) {
        printf("golden %s has no attribute %s\n", c->name, name);
        CHECK(!"the attribute is in the file");
    }
    return a;
}
static inline double golden_real(const golden *c, const char *name)
{
    return stk_json_double(golden_attribute(c, name), 0);
}
static inline bool golden_flag(const golden *c, const char *name)
{
    return stk_json_bool(golden_attribute(c, name), false);
}
static inline const char *golden_text(const golden *c, const char *name)
{
    return stk_json_text(golden_attribute(c, name), "");
}
static inline void golden_ints(const golden *c, const char *name, int64_t *out, int64_t most)
{
    const stk_json *a = golden_attribute(c, name);
    for (int64_t i = 0; a && i < a->count && i < most; i++)
        out[i] = stk_json_int(stk_json_item(a, i), 0);
}
static inline stk_val golden_scalar(const golden *c, double value)
{
    return stk_g_scalar(c->g, STK_F32, value);
}

/* ---- reading and comparing ---------------------------------------------------------------------------------- */

static inline bool golden_open(const char *path, golden *c)
{
    stk_error err;
    memset(c, 0, sizeof *c);
    c->name = path;
    if (!CHECK_OK(stk_npz_load(path, &c->file, &err))) return false;
    const stk_tensor *meta = stk_npz_find(c->file, "meta");
    if (!CHECK(meta != NULL)) return false;
    if (!CHECK_OK(
            stk_json_parse(meta->data, (size_t)stk_tensor_bytes(meta), NULL, &c->document, &err)))
        return false;
    c->meta = stk_json_root(c->document);
    c->attributes = stk_json_get(c->meta, "attributes");
    c->name = stk_json_text(stk_json_get(c->meta, "name"), path);
    c->op = stk_json_text(stk_json_get(c->meta, "op"), "");
    return CHECK_OK(stk_graph_new(&c->g, &err));
}

static inline void golden_close(golden *c)
{
    stk_graph_release(c->g);
    stk_json_release(c->document);
    stk_npz_release(c->file);
}

/* Largest difference relative to the largest number that is expected. `row` >= 0 compares with that row of want. */
static inline void golden_compare(const golden *c, const char *what, const stk_tensor *got,
                                  const stk_tensor *want, int64_t row)
{
    double scale = 1e-30, worst = 0,
           tolerance = stk_json_double(stk_json_get(c->meta, "tolerance"), 0);
    int64_t at = 0;
    if (!CHECK(got && want)) return;
    int64_t n = stk_tensor_count(got), from = row < 0 ? 0 : row * n;
    CHECK_EQ_I64(got->dtype, want->dtype);
    if (row < 0 && !CHECK_EQ_I64(n, stk_tensor_count(want))) return;
    for (int64_t k = 0; k < stk_tensor_count(want); k++)
        scale = fmax(scale, fabs(stk_tensor_at(want, k)));
    for (int64_t k = 0; k < n; k++) {
        double difference = fabs(stk_tensor_at(got, k) - stk_tensor_at(want, from + k)) / scale;
        if (difference > worst || isnan(difference)) {
            worst = isnan(difference) ? INFINITY : difference;
            at = k;
        }
    }
    if (worst <= tolerance) return;
    printf("golden %s, %s: element %lld is %.9g, expected %.9g (off by %.1e of the largest)\n",
           c->name, what, (long long)at, stk_tensor_at(got, at), stk_tensor_at(want, from + at),
           worst);
    CHECK(!"within tolerance of the golden file");
}

static inline stk_tensor *golden_find(const golden *c, const char *prefix, const char *name)
{
    char full[64];
    snprintf(full, sizeof full, "%s%s", prefix, name);
    return stk_npz_find(c->file, full);
}

/* The gradient of sum(out * up) over all results, into outputs named grad_<input>. */
static inline void golden_add_gradients(golden *c)
{
    const stk_json *names = stk_json_get(c->meta, "gradients");
    stk_val total = 0, wrt[GOLDEN_MOST] = {0}, d[GOLDEN_MOST] = {0};
    int32_t n = names ? (int32_t)names->count : 0;
    if (!n || !CHECK(n <= GOLDEN_MOST)) return;
    for (int32_t o = 0; o < c->noutputs; o++) {
        stk_tensor *up = golden_find(c, "up_", c->output[o]);
        if (!up || !c->differentiable[o]) continue;
        stk_val term =
            stk_g_sum_all(c->g, stk_g_mul(c->g, c->output_val[o], stk_g_const(c->g, up)));
        total = total ? stk_g_add(c->g, total, term) : term;
    }
    for (int32_t i = 0; i < n; i++)
        wrt[i] = golden_input(c, stk_json_text(stk_json_item(names, i), ""));
    stk_g_gradients(c->g, total, n, wrt, d);
    for (int32_t i = 0; i < n; i++) {
        char name[64];
        snprintf(name, sizeof name, "grad_%s", stk_json_text(stk_json_item(names, i), ""));
        stk_g_output(c->g, name, d[i] ? d[i] : stk_g_zeros_like(c->g, wrt[i]));
    }
}

static inline void golden_compare_outputs(const golden *c, stk_program *p)
{
    stk_error err;
    for (int32_t i = 0; i < stk_npz_count(c->file); i++) {
        const char *member = stk_npz_name(c->file, i);
        bool out = !strncmp(member, "out_", 4), gradient = !strncmp(member, "grad_", 5);
        stk_tensor *got = NULL;
        if (!out && !gradient) continue;
        if (!CHECK_OK(stk_program_read(p, out ? member + 4 : member, &got, &err))) continue;
        golden_compare(c, member, got, stk_npz_tensor(c->file, i), -1);
        stk_tensor_release(got);
    }
}

/* The graph, compiled with fast or reference kernels; NULL: it does not compile, and that was a failure. */
static inline stk_program *golden_program(golden *c, bool ref)
{
    stk_error err = {0};
    stk_program *p = NULL;
    stk_program_options options = stk_program_options_defaults();
    options.ref = ref;
    if (stk_program_new(c->g, &options, &p, &err) == STK_OK) return p;
    printf("golden %s: %s\n", c->name, err.message);
    CHECK(!"the program compiles");
    return NULL;
}

/* Compiles and runs the graph, with fast or reference kernels, and compares every result in the file. */
static inline void golden_run(golden *c, bool ref)
{
    stk_error err = {0};
    stk_program *p = golden_program(c, ref);
    if (!p) return;
    bool good = true;
    for (int32_t i = 0; good && i < c->ninputs; i++)
        good = CHECK_OK(stk_program_feed(p, c->input[i], stk_npz_find(c->file, c->input[i]), &err));
    if (good && CHECK_OK(stk_program_run(p, 1, &err))) golden_compare_outputs(c, p);
    stk_program_release(p);
}

#endif
