/* pipelines.h - what the tests of streams share: little functions, and streams written out as text. */
#ifndef STK_TEST_PIPELINES_H
#define STK_TEST_PIPELINES_H

#include "check.h"
#include "stoker/data.h"

typedef struct collect {
    char text[65536];
    int64_t elements;
    stk_status status;
    stk_error error;
} collect;

/* Part after part, values separated by commas, parts by ';', elements by '|'. */
static inline void collect_add(collect *c, int32_t n, stk_tensor **parts)
{
    size_t at = strlen(c->text);
    for (int32_t p = 0; p < n; p++) {
        if (p) at += (size_t)snprintf(c->text + at, sizeof c->text - at, ";");
        int64_t count = stk_tensor_count(parts[p]);
        for (int64_t i = 0; i < count && at + 64 < sizeof c->text; i++) {
            if (i) c->text[at++] = ',';
            if (parts[p]->dtype == STK_STRING) {
                const stk_string *s = (const stk_string *)parts[p]->data + i;
                at += (size_t)snprintf(c->text + at, 60, "%.*s", (int)s->size, s->data);
            } else {
                at += (size_t)snprintf(c->text + at, 60, "%.7g", stk_tensor_at(parts[p], i));
            }
        }
    }
    if (at + 2 < sizeof c->text) strcpy(c->text + at, "|");
    c->elements++;
}

/* At most `most` elements of a stream; failing ones are written as '!' and passed over when `go_on`. */
static inline void collect_stream(stk_stream *s, int64_t most, bool go_on, collect *c)
{
    int32_t n = stk_stream_schema(s)->n;
    stk_tensor **parts = calloc((size_t)n + 1, sizeof *parts);
    for (int64_t i = 0; i < most; i++) {
        bool end = false;
        stk_status status = stk_stream_next(s, parts, &end, &c->error);
        if (status != STK_OK) {
            c->status = status;
            if (strlen(c->text) + 3 < sizeof c->text) strcat(c->text, "!|");
            if (!go_on) break;
            continue;
        }
        if (end) break;
        if (stk_schema_check(stk_stream_schema(s), parts, &c->error) != STK_OK) {
            c->status = STK_ERR_SHAPE;
            CHECK_MSG(false, "the schema does not fit: %s", c->error.message);
        }
        collect_add(c, n, parts);
        for (int32_t p = 0; p < n; p++) stk_tensor_release(parts[p]);
    }
    free(parts);
}

/* Runs the dataset to its end (10000 elements at most) and releases it. */
static inline void run_all(stk_dataset *ds, const stk_stream_options *options, collect *c)
{
    stk_error err;
    stk_stream *s = NULL;
    memset(c, 0, sizeof *c);
    if (!CHECK(ds != NULL)) return;
    if (CHECK_OK(stk_dataset_stream(ds, options, &s, &err))) collect_stream(s, 10000, true, c);
    stk_stream_release(s);
    stk_dataset_release(ds);
}

static inline stk_status call_times_ten(void *context, const stk_map_info *info,
                                        stk_tensor *const *in, stk_tensor **out, stk_error *err)
{
    (void)context;
    (void)info;
    if (!out[0] && stk_tensor_new(in[0]->dtype, in[0]->rank, in[0]->shape, &out[0], err) != STK_OK)
        return STK_ERR_MEMORY;
    for (int64_t i = 0; i < stk_tensor_count(in[0]); i++) {
        stk_status status = stk_tensor_set(out[0], i, stk_tensor_at(in[0], i) * 10, err);
        if (status != STK_OK) return status;
    }
    return STK_OK;
}
static const stk_map_fn times_ten
    __attribute__((unused)) = {.name = "times_ten", .call = call_times_ten};

#endif
