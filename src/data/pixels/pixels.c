/* Programs of image steps: checked once, then run image by image.
 *
 * A run walks over the steps with an image (the caller's at first) and a pass that waits. Flips, scales and shifts
 * only change the waiting pass; any other step first has it done. What comes last writes into the result
 * itself. Images in between lie in two scratch buffers which the program keeps for the next run. */
#include "base/resize_taps.h"
#include "base/rng.h"
#include "base/tensor.h"
#include "data/pixels/pixels.h"
#include "data/pixels/pixels_program.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { KEPT = 16 }; /* scratch buffers waiting for the next run */

struct stk_pixels {
    int32_t refs, count;
    stk_pixel_step *steps;
    uint64_t *seeds; /* [count]: mixed with the run's when seeded */
    bool *seeded;
    int32_t *order;       /* [count]: number of the step in its own program */
    pthread_mutex_t lock; /* of the kept buffers */
    void *kept[KEPT];
    size_t kept_size[KEPT];
    int32_t kept_count;
};

static const struct {
    const char *name;
} ops[STK_PIXEL_COUNT] = {
#define STK_PIXEL(NAME, name, needs, doc) {#name},
#include "stoker/pixel_ops.def"
};

const char *stk_pixel_op_name(stk_pixel_op op)
{
    return (unsigned)op < STK_PIXEL_COUNT ? ops[op].name : "?";
}
bool stk_pixel_op_parse(const char *name, stk_pixel_op *out)
{
    for (int i = 0; i < STK_PIXEL_COUNT; i++)
        if (strcmp(ops[i].name, name) == 0) {
            *out = (stk_pixel_op)i;
            return true;
        }
    return false;
}

/* ---- making ------------------------------------------------------------------------------------- */

static stk_status check_step(const stk_pixel_step *s, stk_error *err)
{
    const char *name = stk_pixel_op_name(s->op), *wrong = NULL;
    bool sized = s->op == STK_PIXEL_CROP || s->op == STK_PIXEL_RANDOM_CROP ||
                 s->op == STK_PIXEL_PAD || s->op == STK_PIXEL_RESIZE || s->op == STK_PIXEL_CUTOUT;
    if ((unsigned)s->op >= STK_PIXEL_COUNT)
        wrong = "there is no such step";
    else if (sized && (s->height < 1 || s->width < 1 || s->height > 1 << 20 || s->width > 1 << 20))
        wrong = "height and width have to be 1 .. 1048576";
    else if ((s->op == STK_PIXEL_CROP || s->op == STK_PIXEL_PAD) && (s->top < 0 || s->left < 0))
        wrong = "top and left cannot be negative";
    else if (s->op == STK_PIXEL_RESIZE && (s->method < 0 || s->method >= STK_TAPS_COUNT))
        wrong = "there is no such method";
    else if (s->op == STK_PIXEL_CENTRAL_CROP && !(s->a > 0 && s->a <= 1))
        wrong = "the fraction has to be above 0 and at most 1";
    else if (s->channels < 0 || s->channels > 4)
        wrong = "1 to 4 numbers, one per channel";
    else if ((s->op == STK_PIXEL_RANDOM_CONTRAST || s->op == STK_PIXEL_RANDOM_SATURATION) &&
             !(s->a >= 0 && s->a <= s->b))
        wrong = "low has to be at least 0 and at most high";
    else if ((s->op == STK_PIXEL_HUE || s->op == STK_PIXEL_RANDOM_HUE) &&
             !(s->a >= -1 && s->a <= 1))
        wrong = "the turn has to be within -1 .. 1";
    if (!wrong) return STK_OK;
    return stk_fail(err, STK_ERR_ARGUMENT, "%s: %s", name, wrong);
}

stk_status stk_pixels_new(int32_t count, const stk_pixel_step *steps, stk_pixels **out,
                          stk_error *err)
{
    *out = NULL;
    if (count < 0 || count > 1000 || (count && !steps))
        return stk_fail(err, STK_ERR_ARGUMENT, "pixels: %d steps", count);
    for (int32_t i = 0; i < count; i++) STK_TRY(check_step(&steps[i], err));
    stk_pixels *p = stk_calloc(1, sizeof *p);
    if (!p) return stk_fail_memory(err, "pixels", sizeof *p);
    p->refs = 1;
    pthread_mutex_init(&p->lock, NULL);
    p->steps = stk_calloc((size_t)count, sizeof *p->steps);
    p->seeds = stk_calloc((size_t)count, sizeof *p->seeds);
    p->seeded = stk_calloc((size_t)count, sizeof *p->seeded);
    p->order = stk_calloc((size_t)count, sizeof *p->order);
    if (!p->steps || !p->seeds || !p->seeded || !p->order) {
        stk_pixels_release(p);
        return stk_fail_memory(err, "pixels", (size_t)count * sizeof *p->steps);
    }
    p->count = count;
    for (int32_t i = 0; i < count; i++) p->order[i] = i;
    if (count) memcpy(p->steps, steps, (size_t)count * sizeof *steps);
    *out = p;
    return STK_OK;
}

stk_pixels *stk_pixels_retain(stk_pixels *p)
{
    if (p) __atomic_add_fetch(&p->refs, 1, __ATOMIC_RELAXED);
    return p;
}

void stk_pixels_release(stk_pixels *p)
{
    if (!p || __atomic_sub_fetch(&p->refs, 1, __ATOMIC_ACQ_REL) != 0) return;
    for (int32_t i = 0; i < p->kept_count; i++) stk_free(p->kept[i]);
    pthread_mutex_destroy(&p->lock);
    stk_free(p->steps);
    stk_free(p->seeds);
    stk_free(p->seeded);
    stk_free(p->order);
    stk_free(p);
}

stk_status stk_pixels_join(const stk_pixels *first, const stk_pixels *second,
                           const uint64_t seeds[2], stk_pixels **out, stk_error *err)
{
    int32_t n = first->count, m = second->count;
    stk_pixel_step *steps = stk_calloc((size_t)(n + m), sizeof *steps);
    if (!steps) return stk_fail_memory(err, "pixels", (size_t)(n + m) * sizeof *steps);
    if (n) memcpy(steps, first->steps, (size_t)n * sizeof *steps);
    if (m) memcpy(steps + n, second->steps, (size_t)m * sizeof *steps);
    stk_status status = stk_pixels_new(n + m, steps, out, err);
    stk_free(steps);
    for (int32_t i = 0; status == STK_OK && i < n + m; i++) {
        const stk_pixels *from = i < n ? first : second;
        int32_t k = i < n ? i : i - n;
        (*out)->seeded[i] = true;
        (*out)->order[i] = from->order[k];
        (*out)->seeds[i] = from->seeded[k] ? from->seeds[k] : seeds[i >= n];
    }
    return status;
}

/* Steps of a waiting pass: what only moves pixels leaves their numbers alone, what scales them does not. */
typedef enum share_of_pass { NO_PASS, MOVES, SCALES } share_of_pass;
static share_of_pass in_pass(stk_pixel_op op)
{
    switch (op) {
    case STK_PIXEL_FLIP_LEFT_RIGHT:
    case STK_PIXEL_FLIP_UP_DOWN:
    case STK_PIXEL_RANDOM_FLIP_LEFT_RIGHT:
    case STK_PIXEL_RANDOM_FLIP_UP_DOWN: return MOVES;
    case STK_PIXEL_RESCALE:
    case STK_PIXEL_NORMALISE:
    case STK_PIXEL_BRIGHTNESS:
    case STK_PIXEL_RANDOM_BRIGHTNESS: return SCALES;
    default: return NO_PASS;
    }
}

bool stk_pixels_part_exactly(const stk_pixels *first, const stk_pixels *second)
{
    int32_t i = first->count - 1, k = 0;
    while (i >= 0 && in_pass(first->steps[i].op) == MOVES) i--;
    while (k < second->count && in_pass(second->steps[k].op) == MOVES) k++;
    return i < 0 || k == second->count || in_pass(first->steps[i].op) != SCALES ||
           in_pass(second->steps[k].op) != SCALES;
}

bool stk_pixels_are_pure(const stk_pixels *pixels)
{
    bool pure = true;
    for (int32_t i = 0; i < pixels->count; i++) {
        stk_pixel_op op = pixels->steps[i].op;
        pure = pure && op != STK_PIXEL_CUTOUT &&
               strncmp(stk_pixel_op_name(op), "random_", strlen("random_")) != 0;
    }
    return pure;
}

/* ---- shapes ------------------------------------------------------------------------------------- */

typedef struct form {
    stk_dtype dtype;
    int64_t h, w, c; /* -1 unknown */
} form;

static stk_status misfit(const stk_pixel_step *s, const form *f, const char *why, stk_error *err)
{
    return stk_fail(err, STK_ERR_SHAPE, "%s: the image is %lld x %lld x %lld; %s",
                    stk_pixel_op_name(s->op), (long long)f->h, (long long)f->w, (long long)f->c,
                    why);
}

/* The middle `fraction` of n pixels, as TensorFlow cuts it. */
static int64_t central_start(int64_t n, double fraction)
{
    return (int64_t)((double)n - (double)n * fraction) / 2;
}

static stk_status infer_window(const stk_pixel_step *s, form *f, stk_error *err)
{
    bool random = s->op == STK_PIXEL_RANDOM_CROP;
    int64_t top = random ? 0 : s->top, left = random ? 0 : s->left;
    if ((f->h >= 0 && s->height > f->h - top) || (f->w >= 0 && s->width > f->w - left))
        return misfit(s, f, "the window has to lie inside", err);
    f->h = s->height;
    f->w = s->width;
    return STK_OK;
}

static stk_status infer_colour(const stk_pixel_step *s, const form *f, stk_error *err)
{
    return f->c == 3 || f->c == -1 ? STK_OK : misfit(s, f, "it takes 3 channels", err);
}

/* What a step makes of a form. */
static stk_status infer_step(const stk_pixel_step *s, form *f, stk_error *err)
{
    switch (s->op) {
    case STK_PIXEL_RESCALE:
    case STK_PIXEL_NORMALISE:
        if (s->channels > 1 && f->c >= 0 && s->channels != f->c)
            return misfit(s, f, "its numbers have to be one per channel", err);
        f->dtype = STK_F32;
        return STK_OK;
    case STK_PIXEL_STANDARDISE: f->dtype = STK_F32; return STK_OK;
    case STK_PIXEL_SATURATION:
    case STK_PIXEL_RANDOM_SATURATION:
    case STK_PIXEL_HUE:
    case STK_PIXEL_RANDOM_HUE: return infer_colour(s, f, err);
    case STK_PIXEL_GRAYSCALE:
        STK_TRY(infer_colour(s, f, err));
        f->c = 1;
        return STK_OK;
    case STK_PIXEL_ROT90:
        if (s->turns % 2) *f = (form){f->dtype, f->w, f->h, f->c};
        return STK_OK;
    case STK_PIXEL_CROP:
    case STK_PIXEL_RANDOM_CROP: return infer_window(s, f, err);
    case STK_PIXEL_CENTRAL_CROP:
        if (f->h >= 0) f->h -= 2 * central_start(f->h, s->a);
        if (f->w >= 0) f->w -= 2 * central_start(f->w, s->a);
        return STK_OK;
    case STK_PIXEL_PAD:
        if ((f->h >= 0 && f->h > s->height - s->top) || (f->w >= 0 && f->w > s->width - s->left))
            return misfit(s, f, "it has to fit into the padded one", err);
        f->h = s->height;
        f->w = s->width;
        return STK_OK;
    case STK_PIXEL_RESIZE:
        if (f->h == 0 || f->w == 0) return misfit(s, f, "nothing can be made of that", err);
        f->h = s->height;
        f->w = s->width;
        if (s->method != STK_TAPS_NEAREST) f->dtype = STK_F32;
        return STK_OK;
    default: return STK_OK;
    }
}

stk_status stk_pixels_infer(const stk_pixels *p, stk_dtype dtype, const int64_t shape[3],
                            stk_dtype *out_dtype, int64_t out_shape[3], stk_error *err)
{
    form f = {dtype == STK_U8 ? STK_U8 : STK_F32, shape[0], shape[1], shape[2]};
    if (dtype == STK_STRING)
        return stk_fail(err, STK_ERR_DTYPE, "pixels: strings are no images; decode them first");
    for (int32_t i = 0; i < p->count; i++) STK_TRY(infer_step(&p->steps[i], &f, err));
    *out_dtype = f.dtype;
    out_shape[0] = f.h, out_shape[1] = f.w, out_shape[2] = f.c;
    return STK_OK;
}

/* ---- running ------------------------------------------------------------------------------------ */

typedef struct run {
    const stk_pixels *program;
    stk_canvas at;       /* the image now */
    stk_pixel_pass pass; /* waits to be done on it */
    void *buffer[3];     /* two images in turn, and rows */
    size_t room[3];
    int32_t holds;     /* which buffer `at` lies in, -1: the caller's memory */
    stk_canvas result; /* where the last step writes; data NULL until known */
} run;

static void take_buffer(stk_pixels *p, void **buffer, size_t *room)
{
    pthread_mutex_lock(&p->lock);
    if (p->kept_count > 0) {
        p->kept_count--;
        *buffer = p->kept[p->kept_count];
        *room = p->kept_size[p->kept_count];
    }
    pthread_mutex_unlock(&p->lock);
}

static void give_buffer(stk_pixels *p, void *buffer, size_t room)
{
    if (!buffer) return;
    bool kept = false;
    pthread_mutex_lock(&p->lock);
    if (p->kept_count < KEPT) {
        p->kept[p->kept_count] = buffer;
        p->kept_size[p->kept_count++] = room;
        kept = true;
    }
    pthread_mutex_unlock(&p->lock);
    if (!kept) stk_free(buffer);
}

static stk_status need(run *r, int which, size_t size, stk_error *err)
{
    if (r->room[which] >= size && r->buffer[which]) return STK_OK;
    if (!r->buffer[which])
        take_buffer((stk_pixels *)(uintptr_t)r->program, &r->buffer[which], &r->room[which]);
    if (r->buffer[which] && r->room[which] >= size) return STK_OK;
    stk_free(r->buffer[which]);
    r->room[which] = 0;
    r->buffer[which] = stk_malloc(size);
    if (!r->buffer[which]) return stk_fail_memory(err, "an image between two steps", size);
    r->room[which] = size;
    return STK_OK;
}

/* Memory for the next image, of this form: the result itself for the last step. */
static stk_status next_canvas(run *r, bool last, stk_dtype dtype, int64_t h, int64_t w, int64_t c,
                              stk_canvas *out, int32_t *where, stk_error *err)
{
    *out = (stk_canvas){NULL, dtype, h, w, c};
    if (last) {
        out->data = r->result.data;
        *where = -1;
        return STK_OK;
    }
    *where = r->holds == 0;
    STK_TRY(need(r, *where, stk_canvas_bytes(out) + 64, err));
    out->data = r->buffer[*where];
    return STK_OK;
}

static bool waiting(const stk_pixel_pass *p) { return p->affine || p->flip_lr || p->flip_ud; }

static stk_status flush(run *r, bool last, stk_error *err)
{
    if (!waiting(&r->pass)) return STK_OK;
    stk_canvas out;
    int32_t where;
    const stk_canvas *in = &r->at;
    STK_TRY(next_canvas(r, last, r->pass.affine ? STK_F32 : in->dtype, in->h, in->w, in->c, &out,
                        &where, err));
    if (r->pass.flip_lr) STK_TRY(need(r, 2, (size_t)(in->w * in->c) * 4 + 64, err));
    stk_pass_run(&r->pass, in, &out, r->buffer[2]);
    r->at = out;
    r->holds = where;
    r->pass = (stk_pixel_pass){0};
    return STK_OK;
}

/* x * scale + offset behind what waits already. */
static void add_affine(stk_pixel_pass *p, bool each, const float *scale, const float *offset)
{
    if (!p->affine)
        for (int k = 0; k < 4; k++) p->scale[k] = 1, p->offset[k] = 0;
    if (each && !p->each)
        for (int k = 1; k < 4; k++) p->scale[k] = p->scale[0], p->offset[k] = p->offset[0];
    for (int k = 0; k < 4; k++) {
        int from = each ? k : 0;
        p->offset[k] = p->offset[k] * scale[from] + offset[from];
        p->scale[k] *= scale[from];
    }
    p->each |= each;
    p->affine = true;
}

/* The numbers of a step drawn for one image. */
typedef struct drawn {
    uint32_t word[4];
} drawn;

static double between(uint32_t word, double low, double high)
{
    return low + (high - low) * (double)stk_word_to_unit(word);
}
/* 0 .. n - 1 */
static int64_t below(uint32_t word, int64_t n)
{
    return (int64_t)(((uint64_t)word * (uint64_t)n) >> 32);
}

/* Steps that only change the waiting pass; false for others. */
static bool absorb(run *r, const stk_pixel_step *s, const drawn *d)
{
    stk_pixel_pass *p = &r->pass;
    bool is_float = r->at.dtype == STK_F32 || p->affine;
    float one[4] = {1, 1, 1, 1}, shift[4], scale[4];
    double delta = s->op == STK_PIXEL_BRIGHTNESS ? s->a : between(d->word[0], -s->a, s->a);
    switch (s->op) {
    case STK_PIXEL_FLIP_LEFT_RIGHT: p->flip_lr = !p->flip_lr; return true;
    case STK_PIXEL_FLIP_UP_DOWN: p->flip_ud = !p->flip_ud; return true;
    case STK_PIXEL_RANDOM_FLIP_LEFT_RIGHT: p->flip_lr ^= d->word[0] >> 31; return true;
    case STK_PIXEL_RANDOM_FLIP_UP_DOWN: p->flip_ud ^= d->word[0] >> 31; return true;
    case STK_PIXEL_RESCALE: add_affine(p, s->channels > 1, s->scale, s->offset); return true;
    case STK_PIXEL_NORMALISE:
        for (int k = 0; k < 4; k++) {
            scale[k] = 1 / s->offset[k];
            shift[k] = -s->scale[k] / s->offset[k];
        }
        add_affine(p, s->channels > 1, scale, shift);
        return true;
    case STK_PIXEL_BRIGHTNESS:
    case STK_PIXEL_RANDOM_BRIGHTNESS:
        if (!is_float) return false;
        for (int k = 0; k < 4; k++) shift[k] = (float)delta;
        add_affine(p, false, one, shift);
        return true;
    default: return false;
    }
}

/* Brightness of integers: 256 answers, looked up. */
static void brighten_u8(const stk_canvas *in, const stk_canvas *out, float delta)
{
    uint8_t table[256], number[256];
    float unit[256];
    for (int v = 0; v < 256; v++) number[v] = (uint8_t)v;
    stk_unit_from_u8(number, unit, 256);
    for (int v = 0; v < 256; v++) unit[v] += delta;
    stk_unit_to_u8(unit, table, 256);
    int64_t n = stk_canvas_count(in);
    for (int64_t i = 0; i < n; i++)
        ((uint8_t *)out->data)[i] = table[((const uint8_t *)in->data)[i]];
}

static void colour_in_place(const stk_pixel_step *s, const drawn *d, const stk_canvas *image)
{
    switch (s->op) {
    case STK_PIXEL_CONTRAST: stk_contrast(image, (float)s->a); break;
    case STK_PIXEL_RANDOM_CONTRAST:
        stk_contrast(image, (float)between(d->word[0], s->a, s->b));
        break;
    case STK_PIXEL_SATURATION: stk_saturation(image, (float)s->a); break;
    case STK_PIXEL_RANDOM_SATURATION:
        stk_saturation(image, (float)between(d->word[0], s->a, s->b));
        break;
    case STK_PIXEL_HUE: stk_hue(image, (float)s->a); break;
    case STK_PIXEL_RANDOM_HUE: stk_hue(image, (float)between(d->word[0], -s->a, s->a)); break;
    case STK_PIXEL_STANDARDISE: stk_standardise(image); break;
    default: break;
    }
}

/* Colours need floats: integers go to 0 .. 1 and back, standardising takes them as they are. */
static stk_status colour(run *r, const stk_pixel_step *s, const drawn *d, const stk_canvas *out,
                         stk_error *err)
{
    const stk_canvas *in = &r->at;
    int64_t n = stk_canvas_count(in);
    if (in->dtype == STK_F32) {
        if (s->op == STK_PIXEL_GRAYSCALE) {
            stk_grayscale(in, out);
            return STK_OK;
        }
        memcpy(out->data, in->data, stk_canvas_bytes(in));
        colour_in_place(s, d, out);
        return STK_OK;
    }
    if (s->op == STK_PIXEL_STANDARDISE) {
        for (int64_t i = 0; i < n; i++) ((float *)out->data)[i] = ((const uint8_t *)in->data)[i];
        stk_standardise(out);
        return STK_OK;
    }
    STK_TRY(need(r, 2, (size_t)n * 4 + 64, err));
    stk_canvas floats = {r->buffer[2], STK_F32, in->h, in->w, in->c};
    stk_unit_from_u8(in->data, floats.data, n);
    if (s->op == STK_PIXEL_GRAYSCALE)
        stk_grayscale(&floats, &(stk_canvas){floats.data, STK_F32, in->h, in->w, 1});
    else
        colour_in_place(s, d, &floats);
    stk_unit_to_u8(floats.data, out->data, stk_canvas_count(out));
    return STK_OK;
}

static void cut_out(const stk_pixel_step *s, const drawn *d, const stk_canvas *in,
                    const stk_canvas *out)
{
    memcpy(out->data, in->data, stk_canvas_bytes(in));
    /* The middle lies anywhere, so the window may be cut off at the borders. */
    int64_t top = below(d->word[0], in->h) - s->height / 2;
    int64_t left = below(d->word[1], in->w) - s->width / 2;
    stk_paint(out, top, left, s->height, s->width, (float)s->a);
}

/* A step that is a pass of its own. */
static stk_status apply(run *r, const stk_pixel_step *s, const drawn *d, bool last, stk_error *err)
{
    STK_TRY(flush(r, false, err));
    const stk_canvas in = r->at;
    form f = {in.dtype, in.h, in.w, in.c};
    STK_TRY(infer_step(s, &f, err));
    stk_canvas out;
    int32_t where;
    STK_TRY(next_canvas(r, last, f.dtype, f.h, f.w, f.c, &out, &where, err));
    double delta = s->op == STK_PIXEL_BRIGHTNESS ? s->a : between(d->word[0], -s->a, s->a);
    switch (s->op) {
    case STK_PIXEL_BRIGHTNESS:
    case STK_PIXEL_RANDOM_BRIGHTNESS: brighten_u8(&in, &out, (float)delta); break;
    case STK_PIXEL_ROT90: {
        int32_t turns = (s->turns % 4 + 4) % 4;
        if (turns)
            stk_rotate(&in, turns, &out);
        else
            memcpy(out.data, in.data, stk_canvas_bytes(&in));
        break;
    }
    case STK_PIXEL_CROP: stk_window_copy(&in, s->top, s->left, &out); break;
    case STK_PIXEL_RANDOM_CROP:
        stk_window_copy(&in, below(d->word[0], in.h - f.h + 1), below(d->word[1], in.w - f.w + 1),
                        &out);
        break;
    case STK_PIXEL_CENTRAL_CROP:
        stk_window_copy(&in, central_start(in.h, s->a), central_start(in.w, s->a), &out);
        break;
    case STK_PIXEL_PAD: stk_pad_into(&in, s->top, s->left, &out); break;
    case STK_PIXEL_RESIZE:
        STK_TRY(need(r, 2, stk_resample_scratch(&in), err));
        STK_TRY(stk_resample(&in, &out, s->method, s->antialias, r->buffer[2], err));
        break;
    case STK_PIXEL_CUTOUT: cut_out(s, d, &in, &out); break;
    default: STK_TRY(colour(r, s, d, &out, err)); break;
    }
    r->at = out;
    r->holds = where;
    return STK_OK;
}

static stk_status run_steps(run *r, uint64_t seed, int64_t number, stk_error *err)
{
    const stk_pixels *p = r->program;
    for (int32_t i = 0; i < p->count; i++) {
        const stk_pixel_step *s = &p->steps[i];
        drawn d;
        uint64_t key = p->seeded[i] ? stk_seed_mix(p->seeds[i], seed) : seed;
        stk_rng_block((stk_rng){key, (uint64_t)p->order[i]}, (uint64_t)number, d.word);
        if (absorb(r, s, &d)) continue;
        STK_TRY(apply(r, s, &d, i + 1 == p->count, err));
    }
    STK_TRY(flush(r, true, err));
    if (r->at.data != r->result.data) /* nothing was to be done, or a pass in the middle was last */
        memcpy(r->result.data, r->at.data, stk_canvas_bytes(&r->at));
    return STK_OK;
}

/* The image as uint8 or float, dense; a new handle. */
static stk_status take_image(const stk_tensor *image, stk_tensor **out, stk_error *err)
{
    STK_TRY(stk_tensor_check("pixels", image, err));
    if (image->rank != 3 || image->dtype == STK_STRING)
        return stk_fail(err, STK_ERR_SHAPE, "pixels: %s is no image [height, width, channels]",
                        STK_TENSOR_TEXT(image));
    if (image->dtype == STK_U8 || image->dtype == STK_F32)
        return stk_tensor_dense((stk_tensor *)(uintptr_t)image, out, err);
    return stk_tensor_cast(image, STK_F32, out, err);
}

stk_status stk_pixels_run(const stk_pixels *p, uint64_t seed, int64_t number,
                          const stk_tensor *image, stk_tensor **out, stk_error *err)
{
    stk_tensor *in = NULL, *made = NULL;
    stk_dtype dtype;
    int64_t shape[3];
    STK_TRY(take_image(image, &in, err));
    stk_status status = stk_pixels_infer(p, in->dtype, in->shape, &dtype, shape, err);
    if (status == STK_OK && !*out) {
        status = stk_tensor_raw(dtype, 3, shape, &made, err);
    } else if (status == STK_OK) {
        const stk_tensor *o = *out;
        if (o->dtype != dtype || o->rank != 3 || memcmp(o->shape, shape, sizeof shape) != 0 ||
            !stk_tensor_is_dense(o))
            status =
                stk_fail(err, STK_ERR_SHAPE, "pixels: the result is %s[%lld,%lld,%lld], not %s",
                         stk_dtype_name(dtype), (long long)shape[0], (long long)shape[1],
                         (long long)shape[2], STK_TENSOR_TEXT(o));
    }
    if (status == STK_OK) {
        run r = {.program = p, .holds = -1};
        r.at = (stk_canvas){in->data, in->dtype, in->shape[0], in->shape[1], in->shape[2]};
        r.result = (stk_canvas){(made ? made : *out)->data, dtype, shape[0], shape[1], shape[2]};
        if (stk_canvas_count(&r.at) > 0 && stk_canvas_count(&r.result) > 0)
            status = run_steps(&r, seed, number, err);
        for (int k = 0; k < 3; k++) give_buffer((stk_pixels *)(uintptr_t)p, r.buffer[k], r.room[k]);
    }
    stk_tensor_release(in);
    if (status != STK_OK) {
        stk_tensor_release(made);
        return status;
    }
    if (made) *out = made;
    return STK_OK;
}
