/* Schedules of the learning rate: text and JSON in, and the formula as graph over the number of the step. All numbers are
 * float32, as Keras computes them. */
#include "optim/optimizer.h"

#include "base/number.h"

#include <math.h>
#include <string.h>

static const struct {
    const char *name, *keras_class, *defaults;
} kinds[STK_SCHEDULE_COUNT] = {
#define STK_SCHEDULE(NAME, name, keras_class, defaults, doc)                                       \
    [STK_SCHEDULE_##NAME] = {#name, keras_class, defaults},
#include "stoker/schedules.def"
};

#define MOST 1e18
#define ROW(member, alias, kind, low, high, none)                                                  \
    STK_OPTION(stk_schedule, member, alias, kind, low, high, none)
static const stk_option rows[] = {
    ROW(decay_steps, "first_decay_steps", REAL, 0, MOST, NAN),
    ROW(decay_rate, NULL, REAL, 0, MOST, NAN),
    ROW(staircase, NULL, BOOL, 0, 1, NAN),
    ROW(cycle, NULL, BOOL, 0, 1, NAN),
    ROW(end_learning_rate, "end", REAL, 0, MOST, NAN),
    ROW(power, NULL, REAL, -MOST, MOST, NAN),
    ROW(alpha, NULL, REAL, 0, MOST, NAN),
    ROW(warmup_target, NULL, REAL, 0, MOST, -1),
    ROW(warmup_steps, "warmup", REAL, 0, MOST, NAN),
    ROW(t_mul, NULL, REAL, 1, MOST, NAN),
    ROW(m_mul, NULL, REAL, 0, MOST, NAN),
};

/* Which rows a kind has is what its defaults name: "a=1,b=2" -> "a b". */
static stk_options options_of(stk_schedule_kind kind, char takes[256])
{
    takes[0] = 0;
    stk_options_names(kinds[kind].defaults, takes, 256);
    return (stk_options){rows, (int32_t)(sizeof rows / sizeof *rows), takes, kinds[kind].name};
}

stk_schedule stk_schedule_defaults(stk_schedule_kind kind)
{
    char takes[256];
    stk_schedule s = {.kind = kind, .warmup_target = -1};
    stk_options o = options_of(kind, takes);
    (void)!stk_options_text(&o, kinds[kind].defaults, &s, NULL); /* a test reads all rows */
    return s;
}

const char *stk_schedule_name(stk_schedule_kind kind)
{
    return kind >= 0 && kind < STK_SCHEDULE_COUNT ? kinds[kind].name : "?";
}

stk_status stk_schedule_check(const stk_schedule *s, stk_error *err)
{
    if (s->kind < 0 || s->kind >= STK_SCHEDULE_COUNT)
        return stk_fail(err, STK_ERR_ARGUMENT, "schedule: kind %d is unknown", (int)s->kind);
    const char *name = kinds[s->kind].name;
    if (s->kind == STK_SCHEDULE_CONSTANT) return STK_OK;
    if (s->kind != STK_SCHEDULE_PIECEWISE) {
        char takes[256];
        stk_options o = options_of(s->kind, takes);
        STK_TRY(stk_options_check(&o, s, err));
        if (s->decay_steps > 0) return STK_OK;
        return stk_fail(err, STK_ERR_RANGE,
                        "schedule %s: decay_steps must be given and larger than 0, as in %s/1000",
                        name, name);
    }
    if (s->pieces < 1 || s->pieces > STK_SCHEDULE_PIECES)
        return stk_fail(err, STK_ERR_RANGE, "schedule piecewise has %d values, 1 to %d fit",
                        s->pieces, STK_SCHEDULE_PIECES);
    for (int32_t i = 0; i < s->pieces; i++)
        if (!(s->value[i] >= 0 && s->value[i] <= MOST) || !(fabs(s->boundary[i]) <= MOST))
            return stk_fail(
                err, STK_ERR_RANGE,
                "schedule piecewise: rate %g up to step %g; rates are numbers from 0 on",
                s->value[i], s->boundary[i]);
    for (int32_t i = 1; i + 1 < s->pieces; i++)
        if (!(s->boundary[i] > s->boundary[i - 1]))
            return stk_fail(err, STK_ERR_RANGE,
                            "schedule piecewise: boundary %g does not follow %g", s->boundary[i],
                            s->boundary[i - 1]);
    return STK_OK;
}

/* ---- reading -------------------------------------------------------------------------------------------------- */

static const char *name_of(int32_t i, int32_t which)
{
    return which == 0 ? kinds[i].name : which == 1 ? kinds[i].keras_class : NULL;
}

static stk_status find_kind(const char *text, size_t size, stk_schedule *s, stk_error *err)
{
    static const stk_names names = {"schedule", STK_SCHEDULE_COUNT, name_of};
    int32_t kind = stk_names_find(&names, text, size, err);
    if (kind < 0) return STK_ERR_ARGUMENT;
    *s = stk_schedule_defaults((stk_schedule_kind)kind);
    return STK_OK;
}

/* 100:0.1 or, as the last one, 0.001 */
static stk_status read_piece(const char *text, size_t size, stk_schedule *s, bool *last,
                             stk_error *err)
{
    size_t colon = 0;
    double boundary = 0, value;
    while (colon < size && text[colon] != ':') colon++;
    *last = colon == size;
    size_t from = *last ? 0 : colon + 1;
    if ((!*last && !stk_parse_double(text, colon, &boundary)) ||
        !stk_parse_double(text + from, size - from, &value))
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "schedule piecewise: '%.*s' is neither boundary:rate nor the last rate; "
                        "write piecewise/100:0.1/200:0.01/0.001",
                        (int)(size < 80 ? size : 80), text);
    if (s->pieces == STK_SCHEDULE_PIECES)
        return stk_fail(err, STK_ERR_RANGE, "schedule piecewise: more than %d rates",
                        STK_SCHEDULE_PIECES);
    s->boundary[s->pieces] = boundary;
    s->value[s->pieces++] = value;
    return STK_OK;
}

static size_t part_size(const char *text, const char *end)
{
    const char *slash = memchr(text, '/', (size_t)(end - text));
    return (size_t)((slash ? slash : end) - text);
}

stk_status stk_schedule_text(const char *text, size_t size, stk_schedule *s, double *rate,
                             stk_error *err)
{
    const char *end = text + size, *at = text + part_size(text, end);
    char takes[256];
    bool last = false, first = true;
    STK_TRY(find_kind(text, (size_t)(at - text), s, err));
    stk_options o = options_of(s->kind, takes);
    for (; at < end; first = false) {
        at++;
        size_t n = part_size(at, end);
        const char *equal = memchr(at, '=', n);
        if (s->kind == STK_SCHEDULE_PIECEWISE) {
            if (last)
                return stk_fail(err, STK_ERR_ARGUMENT,
                                "schedule piecewise: only the last rate stands without a boundary");
            STK_TRY(read_piece(at, n, s, &last, err));
        } else if (equal) {
            STK_TRY(stk_options_set(&o, at, (size_t)(equal - at), equal + 1,
                                    n - (size_t)(equal + 1 - at), s, err));
        } else if (first) {
            STK_TRY(stk_options_set(&o, "decay_steps", strlen("decay_steps"), at, n, s, err));
        } else {
            return stk_fail(err, STK_ERR_ARGUMENT,
                            "schedule %s: '%.*s' is no option; write /name=value",
                            kinds[s->kind].name, (int)(n < 80 ? n : 80), at);
        }
        at += n;
    }
    if (s->kind == STK_SCHEDULE_PIECEWISE && !last)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "schedule piecewise: the last rate, without a boundary, is missing");
    if (s->pieces) *rate = s->value[0];
    return stk_schedule_check(s, err);
}

static stk_status read_pieces(const stk_json *config, stk_schedule *s, stk_error *err)
{
    const stk_json *b = stk_json_get(config, "boundaries"), *v = stk_json_get(config, "values");
    if (!b || !v || b->kind != STK_JSON_ARRAY || v->kind != STK_JSON_ARRAY ||
        v->count != b->count + 1 || v->count > STK_SCHEDULE_PIECES)
        return stk_fail(
            err, STK_ERR_FORMAT,
            "schedule PiecewiseConstantDecay: boundaries and values must be lists, with "
            "one value more and at most %d",
            STK_SCHEDULE_PIECES);
    s->pieces = (int32_t)v->count;
    for (int32_t i = 0; i < s->pieces; i++) {
        s->boundary[i] = stk_json_double(stk_json_item(b, i), 0);
        s->value[i] = stk_json_double(stk_json_item(v, i), NAN);
        if (isnan(s->value[i]))
            return stk_fail(err, STK_ERR_FORMAT,
                            "schedule PiecewiseConstantDecay: values[%d] is no number", i);
    }
    return STK_OK;
}

stk_status stk_schedule_json(const stk_json *json, stk_schedule *s, double *rate, stk_error *err)
{
    const char *name = stk_json_text(stk_json_get(json, "class_name"), NULL);
    const stk_json *config = stk_json_get(json, "config");
    char takes[256];
    if (!name || !config || config->kind != STK_JSON_OBJECT)
        return stk_fail(err, STK_ERR_FORMAT,
                        "schedule: expected an object with class_name and config");
    STK_TRY(find_kind(name, strlen(name), s, err));
    stk_options o = options_of(s->kind, takes);
    for (int64_t i = 0; i < config->count; i++) {
        const stk_json *item = &config->items[i];
        if (!strcmp(item->name, "name")) continue;
        if (!strcmp(item->name, "initial_learning_rate")) {
            *rate = stk_json_double(item, *rate);
        } else if (s->kind == STK_SCHEDULE_PIECEWISE) {
            if (!s->pieces) STK_TRY(read_pieces(config, s, err));
        } else {
            STK_TRY(stk_options_json(&o, item, s, err));
        }
    }
    if (s->pieces) *rate = s->value[0];
    return stk_schedule_check(s, err);
}

/* ---- writing ----------------------------------------------------------------------------------------------------- */

static void write_numbers(const char *name, const double *numbers, int32_t n, stk_json_writer *w)
{
    stk_json_name(w, name);
    stk_json_begin_array(w);
    for (int32_t i = 0; i < n; i++) stk_json_put_double(w, numbers[i]);
    stk_json_end_array(w);
}

void stk_schedule_write(const stk_schedule *s, double rate, stk_json_writer *w)
{
    char takes[256];
    stk_options o = options_of(s->kind, takes);
    stk_json_begin_object(w);
    stk_json_name(w, "module");
    stk_json_put_text(w, "keras.optimizers.schedules");
    stk_json_name(w, "class_name");
    stk_json_put_text(w, kinds[s->kind].keras_class);
    stk_json_name(w, "config");
    stk_json_begin_object(w);
    if (s->kind == STK_SCHEDULE_PIECEWISE) {
        write_numbers("boundaries", s->boundary, s->pieces - 1, w);
        write_numbers("values", s->value, s->pieces, w);
    } else {
        stk_json_name(w, "initial_learning_rate");
        stk_json_put_double(w, rate);
        if (s->kind == STK_SCHEDULE_COSINE_RESTARTS) { /* Keras' name for the same number */
            stk_json_name(w, "first_decay_steps");
            stk_json_put_double(w, s->decay_steps);
            o.takes = "t_mul m_mul alpha";
        }
        stk_options_write(&o, s, w);
    }
    stk_json_end_object(w);
    stk_json_name(w, "registered_name");
    stk_json_put_null(w);
    stk_json_end_object(w);
}

/* ---- the formulas ---------------------------------------------------------------------------------------------------- */

#define NUMBER(x) stk_g_scalar(g, STK_F32, x)

/* from ((1 - alpha) half (1 + cos(pi share)) + alpha) */
static stk_val cosine(stk_graph *g, double alpha, stk_val from, stk_val half, stk_val share)
{
    stk_val wave = stk_g_cos(g, stk_g_mul(g, NUMBER(3.14159265358979323846), share));
    wave = stk_g_mul(g, half, stk_g_add(g, NUMBER(1), wave));
    wave = stk_g_add(g, stk_g_mul(g, NUMBER(1 - alpha), wave), NUMBER(alpha));
    return stk_g_mul(g, from, wave);
}

static stk_val build_cosine(const stk_schedule *s, stk_graph *g, stk_val rate, stk_val t)
{
    stk_val steps = NUMBER(s->decay_steps), half = NUMBER(0.5);
    if (s->warmup_target < 0)
        return cosine(g, s->alpha, rate, half, stk_g_div(g, stk_g_min(g, t, steps), steps));
    stk_val warm = NUMBER(s->warmup_steps), target = NUMBER(s->warmup_target);
    stk_val at = stk_g_min(g, t, stk_g_add(g, steps, warm));
    stk_val late = cosine(g, s->alpha, target, half, stk_g_div(g, stk_g_sub(g, at, warm), steps));
    if (s->warmup_steps == 0) return late;
    stk_val early =
        stk_g_add(g, stk_g_mul(g, stk_g_sub(g, target, rate), stk_g_div(g, at, warm)), rate);
    return stk_g_select(g, stk_g_lt(g, at, warm), early, late);
}

/* The i-th cosine is t_mul^i as long as the first and m_mul^i as high. */
static stk_val build_restarts(const stk_schedule *s, stk_graph *g, stk_val rate, stk_val t)
{
    stk_val one = NUMBER(1), share = stk_g_div(g, t, NUMBER(s->decay_steps)), i;
    if (s->t_mul == 1) {
        i = stk_g_floor(g, share);
        share = stk_g_sub(g, share, i);
    } else {
        stk_val less = NUMBER(1 - s->t_mul), longer = NUMBER(s->t_mul);
        stk_val inside = stk_g_sub(g, one, stk_g_mul(g, share, less));
        i = stk_g_floor(g, stk_g_div(g, stk_g_log(g, inside), stk_g_log(g, longer)));
        stk_val length = stk_g_pow(g, longer, i);
        stk_val before = stk_g_div(g, stk_g_sub(g, one, length), less);
        share = stk_g_div(g, stk_g_sub(g, share, before), length);
    }
    stk_val half = stk_g_mul(g, NUMBER(0.5), stk_g_pow(g, NUMBER(s->m_mul), i));
    return cosine(g, s->alpha, rate, half, share);
}

static stk_val build_polynomial(const stk_schedule *s, stk_graph *g, stk_val rate, stk_val t)
{
    stk_val steps = NUMBER(s->decay_steps), one = NUMBER(1), end = NUMBER(s->end_learning_rate);
    if (s->cycle) {
        stk_val times = stk_g_max(g, one, stk_g_ceil(g, stk_g_div(g, t, steps)));
        steps = stk_g_mul(g, steps, times);
    } else {
        t = stk_g_min(g, t, steps);
    }
    stk_val left = stk_g_sub(g, one, stk_g_div(g, t, steps));
    stk_val curve = stk_g_pow(g, left, NUMBER(s->power));
    return stk_g_add(g, stk_g_mul(g, stk_g_sub(g, rate, end), curve), end);
}

static stk_val build_pieces(const stk_schedule *s, stk_graph *g, stk_val t)
{
    stk_val rate = NUMBER(s->value[s->pieces - 1]);
    for (int32_t i = s->pieces - 2; i >= 0; i--)
        rate = stk_g_select(g, stk_g_le(g, t, NUMBER(s->boundary[i])), NUMBER(s->value[i]), rate);
    return rate;
}

stk_val stk_schedule_build(const stk_schedule *s, stk_graph *g, double start, stk_val step)
{
    stk_val t = stk_g_cast(g, step, STK_F32), rate = NUMBER(start), one = NUMBER(1);
    stk_val share = s->decay_steps > 0 ? stk_g_div(g, t, NUMBER(s->decay_steps)) : t;
    if (s->staircase) share = stk_g_floor(g, share);
    switch (s->kind) {
    case STK_SCHEDULE_EXPONENTIAL:
        return stk_g_mul(g, rate, stk_g_pow(g, NUMBER(s->decay_rate), share));
    case STK_SCHEDULE_INVERSE_TIME:
        return stk_g_div(g, rate, stk_g_add(g, one, stk_g_mul(g, NUMBER(s->decay_rate), share)));
    case STK_SCHEDULE_COSINE: return build_cosine(s, g, rate, t);
    case STK_SCHEDULE_COSINE_RESTARTS: return build_restarts(s, g, rate, t);
    case STK_SCHEDULE_POLYNOMIAL: return build_polynomial(s, g, rate, t);
    case STK_SCHEDULE_PIECEWISE: return build_pieces(s, g, t);
    case STK_SCHEDULE_CONSTANT:
    case STK_SCHEDULE_COUNT: break;
    }
    return rate;
}

/* At step 0 every formula gives the first rate, but for two. */
double stk_schedule_start(const stk_schedule *s, double rate)
{
    if (s->kind == STK_SCHEDULE_PIECEWISE) return s->value[0];
    bool straight = s->kind == STK_SCHEDULE_COSINE && s->warmup_target >= 0 && s->warmup_steps == 0;
    return straight ? s->warmup_target : rate;
}
