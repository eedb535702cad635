/* Image steps as functions of the input pipeline, from C and from pipeline files. */
#include "base/resize_taps.h"
#include "base/tensor.h"
#include "data/json/pipeline.h"
#include "data/pixels/pixels_program.h"

#include <stdio.h>
#include <string.h>

typedef struct work {
    stk_pixels *pixels;
    int32_t part;
} work;

static void work_release(void *context)
{
    work *w = context;
    stk_pixels_release(w->pixels);
    stk_free(w);
}

/* Parts that pass: the same memory, one more handle; or a copy into what was given. */
static stk_status pass(stk_tensor *in, stk_tensor **out, stk_error *err)
{
    if (*out) return stk_tensor_copy(*out, in, err);
    *out = stk_tensor_retain(in);
    return STK_OK;
}

static stk_status work_call(void *context, const stk_map_info *info, stk_tensor *const *in,
                            stk_tensor **out, stk_error *err)
{
    const work *w = context;
    for (int32_t i = 0; i < info->inputs; i++)
        STK_TRY(i == w->part
                    ? stk_pixels_run(w->pixels, info->seed, info->index, in[i], &out[i], err)
                    : pass(in[i], &out[i], err));
    return STK_OK;
}

static stk_status work_schema(void *context, const stk_schema *in, stk_schema **out, stk_error *err)
{
    const work *w = context;
    if (w->part >= in->n)
        return stk_fail(err, STK_ERR_ARGUMENT, "pixels: the elements have %d parts, there is no %d",
                        in->n, w->part);
    stk_field *fields = stk_calloc((size_t)in->n, sizeof *fields);
    if (!fields) return stk_fail_memory(err, "pixels", (size_t)in->n * sizeof *fields);
    memcpy(fields, in->fields, (size_t)in->n * sizeof *fields);
    stk_field *image = &fields[w->part];
    int64_t shape[3] = {-1, -1, -1};
    stk_status status = STK_OK;
    if (image->rank == 3)
        memcpy(shape, image->shape, sizeof shape);
    else if (image->rank != -1)
        status = stk_fail(err, STK_ERR_SHAPE,
                          "pixels: part %d has %d axes, images have 3: height, width, channels",
                          w->part, image->rank);
    if (status == STK_OK) {
        image->rank = 3;
        status = stk_pixels_infer(w->pixels, image->dtype, shape, &image->dtype, image->shape, err);
    }
    if (status == STK_OK) status = stk_schema_new(in->n, fields, in->structure, out, err);
    stk_free(fields);
    return status;
}

static bool work_fuse(const stk_map_fn *first, const stk_map_fn *second, const uint64_t seeds[2],
                      stk_map_fn *out)
{
    const work *a = first->context, *b = second->context;
    stk_pixels *both = NULL;
    if (first->call != work_call || second->call != work_call || a->part != b->part) return false;
    if (stk_pixels_join(a->pixels, b->pixels, seeds, &both, NULL) != STK_OK) return false;
    stk_status status = stk_map_pixels(both, a->part, out, NULL);
    stk_pixels_release(both);
    return status == STK_OK;
}

bool stk_map_parts_exactly(const stk_map_fn *first, const stk_map_fn *second)
{
    const work *a = first->context, *b = second->context;
    if (!first->fuse || first->fuse != second->fuse) return true; /* never joined */
    if (first->call != work_call || second->call != work_call) return false;
    return a->part != b->part || stk_pixels_part_exactly(a->pixels, b->pixels);
}

stk_status stk_map_pixels(stk_pixels *pixels, int32_t part, stk_map_fn *fn, stk_error *err)
{
    if (!pixels || part < 0)
        return stk_fail(err, STK_ERR_ARGUMENT, "pixels: no steps, or part %d", part);
    work *w = stk_calloc(1, sizeof *w);
    if (!w) return stk_fail_memory(err, "pixels", sizeof *w);
    w->pixels = stk_pixels_retain(pixels);
    w->part = part;
    *fn = (stk_map_fn){.name = "pixels",
                       .context = w,
                       .call = work_call,
                       .schema = work_schema,
                       .fuse = work_fuse,
                       .release = work_release,
                       .flags = stk_pixels_are_pure(pixels) ? STK_MAP_PURE : 0};
    return STK_OK;
}

/* ---- pipeline files ------------------------------------------------------------------------------ */

/* One number for all channels, or a list of one per channel. */
static stk_status read_numbers(const stk_json *op, const char *name, float otherwise, float out[4],
                               int32_t *channels, stk_error *err)
{
    const stk_json *v = stk_json_get(op, name);
    for (int k = 0; k < 4; k++) out[k] = otherwise;
    if (!v) return STK_OK;
    int64_t n = v->kind == STK_JSON_ARRAY ? v->count : 1;
    if (n < 1 || n > 4)
        return stk_fail(err, STK_ERR_FORMAT, "pipeline: \"%s\" takes 1 to 4 numbers", name);
    for (int64_t k = 0; k < 4; k++) {
        const stk_json *item = v->kind == STK_JSON_ARRAY ? &v->items[k < n ? k : 0] : v;
        if (item->kind != STK_JSON_INT && item->kind != STK_JSON_DOUBLE)
            return stk_fail(err, STK_ERR_FORMAT, "pipeline: \"%s\" takes numbers", name);
        out[k] = (float)item->number;
    }
    if (n > 1) *channels = (int32_t)n;
    return STK_OK;
}

static stk_status read_method(const stk_json *op, stk_pixel_step *s, stk_error *err)
{
    static const char *const names[] = {
#define STK_RESIZE(NAME, name, doc) #name,
#include "stoker/resize.def"
    };
    const char *method = "bilinear";
    STK_TRY(stk_option_text(op, "method", &method, err));
    for (int i = 0; i < STK_TAPS_COUNT; i++)
        if (strcmp(names[i], method) == 0) {
            s->method = i;
            return STK_OK;
        }
    return stk_fail(err, STK_ERR_FORMAT,
                    "pipeline: there is no method \"%.40s\"; try nearest, bilinear, bicubic, area",
                    method);
}

static stk_status read_step(const stk_json *op, stk_pixel_step *s, stk_error *err)
{
    static const char *const known[] = {
        "scale",    "offset", "mean",  "deviation", "delta",     "factor", "low",    "high",
        "fraction", "turns",  "top",   "left",      "height",    "width",  "method", "antialias",
        "value",    "part",   "steps", "parallel",  "unordered", "seed",   NULL};
    const char *name = "";
    int64_t turns = 0;
    *s = (stk_pixel_step){0};
    STK_TRY(stk_options_known(op, known, err));
    STK_TRY(stk_option_text(op, "op", &name, err));
    if (!stk_pixel_op_parse(name, &s->op))
        return stk_fail(err, STK_ERR_FORMAT, "pipeline: there is no image step \"%.40s\"", name);
    bool normalise = s->op == STK_PIXEL_NORMALISE;
    STK_TRY(read_numbers(op, normalise ? "mean" : "scale", normalise ? 0 : 1, s->scale,
                         &s->channels, err));
    STK_TRY(read_numbers(op, normalise ? "deviation" : "offset", normalise ? 1 : 0, s->offset,
                         &s->channels, err));
    STK_TRY(stk_option_double(op, "delta", &s->a, err));
    STK_TRY(stk_option_double(op, "factor", &s->a, err));
    STK_TRY(stk_option_double(op, "fraction", &s->a, err));
    STK_TRY(stk_option_double(op, "value", &s->a, err));
    STK_TRY(stk_option_double(op, "low", &s->a, err));
    STK_TRY(stk_option_double(op, "high", &s->b, err));
    STK_TRY(stk_option_int(op, "turns", -1000, 1000, &turns, err));
    STK_TRY(stk_option_int(op, "top", 0, 1 << 20, &s->top, err));
    STK_TRY(stk_option_int(op, "left", 0, 1 << 20, &s->left, err));
    STK_TRY(stk_option_int(op, "height", 1, 1 << 20, &s->height, err));
    STK_TRY(stk_option_int(op, "width", 1, 1 << 20, &s->width, err));
    STK_TRY(stk_option_bool(op, "antialias", &s->antialias, err));
    s->turns = (int32_t)turns;
    return read_method(op, s, err);
}

enum { MOST_STEPS = 64 };

static stk_status finish(int32_t n, const stk_pixel_step *steps, const stk_json *op, stk_map_fn *fn,
                         stk_error *err)
{
    int64_t part = 0;
    stk_pixels *pixels = NULL;
    STK_TRY(stk_option_int(op, "part", 0, 1 << 20, &part, err));
    STK_TRY(stk_pixels_new(n, steps, &pixels, err));
    stk_status status = stk_map_pixels(pixels, (int32_t)part, fn, err);
    stk_pixels_release(pixels);
    return status;
}

/* {"op": "random_crop", "height": 24, "width": 24}: one step by its own name. */
stk_status stk_read_pixel_step(const stk_json *op, const char *folder, stk_map_fn *fn,
                               stk_error *err)
{
    (void)folder;
    stk_pixel_step step;
    STK_TRY(read_step(op, &step, err));
    return finish(1, &step, op, fn, err);
}

/* {"op": "pixels", "part": 0, "steps": [{"op": "rescale", "scale": 0.0039}, ...]} */
stk_status stk_read_pixels(const stk_json *op, const char *folder, stk_map_fn *fn, stk_error *err)
{
    (void)folder;
    const stk_json *list = stk_json_get(op, "steps");
    stk_pixel_step steps[MOST_STEPS];
    if (!list || list->kind != STK_JSON_ARRAY || list->count < 1 || list->count > MOST_STEPS)
        return stk_fail(err, STK_ERR_FORMAT,
                        "pipeline: op \"pixels\" takes \"steps\", 1 to %d of them", MOST_STEPS);
    for (int64_t i = 0; i < list->count; i++) {
        if (list->items[i].kind != STK_JSON_OBJECT)
            return stk_fail(err, STK_ERR_FORMAT, "pipeline: a step is an object with \"op\"");
        STK_TRY(read_step(&list->items[i], &steps[i], err));
    }
    return finish((int32_t)list->count, steps, op, fn, err);
}
