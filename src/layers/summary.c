/* The table that Keras' model.summary() prints. Columns are as wide as there, or as wide as their contents need. */
#include "layers/model.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MOST_COLUMNS = 5, CELL = 256 };

typedef struct text {
    char *data;
    int64_t count, capacity;
    bool no_memory;
} text;

typedef struct row {
    char cell[MOST_COLUMNS][CELL];
    bool goes_on; /* the next row belongs to it: no rule between them */
} row;

typedef struct table {
    row *rows;
    int64_t count, capacity;
    int32_t columns;
    int32_t width[MOST_COLUMNS];
    bool right[MOST_COLUMNS];
    bool no_memory;
    const stk_summary_options *options;
} table;

static void put(text *t, const char *bytes)
{
    for (; *bytes && !t->no_memory; bytes++) {
        if (!STK_GROW(t->data, t->count, t->capacity)) {
            t->no_memory = true;
            return;
        }
        t->data[t->count++] = *bytes;
    }
}

static void put_times(text *t, const char *bytes, int32_t times)
{
    for (int32_t i = 0; i < times; i++) put(t, bytes);
}

/* Characters, not bytes: names may be in any script. */
static int32_t width_of(const char *cell)
{
    int32_t n = 0;
    for (; *cell; cell++) n += ((unsigned char)*cell & 0xC0) != 0x80;
    return n;
}

/* ---- numbers ----------------------------------------------------------------------------------------------------------- */

/* 100480 -> "100,480" */
static char *grouped(int64_t n, char *out, size_t size)
{
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)n);
    size_t used = 0;
    for (int i = 0; i < length && used + 2 < size; i++) {
        if (i && (length - i) % 3 == 0 && digits[i - 1] != '-') out[used++] = ',';
        out[used++] = digits[i];
    }
    out[used] = 0;
    return out;
}

/* "392.50 KB" */
static char *memory_size(int64_t bytes, char *out, size_t size)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB"};
    double n = (double)bytes;
    int unit = 0;
    while (n >= 1024 && unit < 5) n /= 1024, unit++;
    snprintf(out, size, "%.2f %s", n, units[unit]);
    return out;
}

static void put_count(text *t, const char *label, int64_t n, int64_t bytes)
{
    char line[160], count[40], size[40];
    snprintf(line, sizeof line, " %s: %s (%s)\n", label, grouped(n, count, sizeof count),
             memory_size(bytes, size, sizeof size));
    put(t, line);
}

/* ---- rows -------------------------------------------------------------------------------------------------------------- */

static row *new_row(table *t)
{
    if (!STK_GROW(t->rows, t->count, t->capacity)) {
        t->no_memory = true;
        return NULL;
    }
    t->rows[t->count] = (row){.goes_on = false};
    return &t->rows[t->count++];
}

static void describe_outputs(const stk_model *m, const stk_mcall *call, char *cell)
{
    char one[160];
    size_t used = 0;
    if (!call) {
        snprintf(cell, CELL, "?");
        return;
    }
    for (int32_t i = 0; i < call->nout && used < CELL; i++) {
        int n = snprintf(cell + used, CELL - used, "%s%s%s",
                         i                ? ", "
                         : call->nout > 1 ? "["
                                          : "",
                         stk_sym_text(stk_sym_at(m, call->out + i), one, sizeof one),
                         i + 1 == call->nout && call->nout > 1 ? "]" : "");
        used += n > 0 ? (size_t)n : 0;
    }
}

/* Weights of one layer; those of an inner model's layers are found by their path. */
static int64_t count_params(const stk_model *m, const stk_model *inner, int32_t number,
                            bool *trainable)
{
    const stk_model *of = inner ? inner : m;
    int64_t n = 0;
    *trainable = false;
    for (int32_t i = stk_layer_at(of, number)->first_weight; i; i = of->weights[i - 1].next) {
        const stk_mweight *w = &of->weights[i - 1];
        if (__builtin_add_overflow(n, stk_shape_count(&w->shape), &n)) n = INT64_MAX;
        *trainable = *trainable || stk_weight_trainable(of, w);
    }
    return n;
}

static const stk_mcall *first_call(const stk_model *m, int32_t number)
{
    const stk_layer_state *layer = stk_layer_at(m, number);
    return layer->ncalls ? &m->calls[layer->first_call] : NULL;
}

/* "dense[0][0]," each on a line of its own, over all calls of the layer. */
static void add_connections(table *t, const stk_model *m, int32_t number)
{
    row *r = &t->rows[t->count - 1];
    bool first = true;
    const stk_mcall *call = first_call(m, number);
    for (; call; call = call->next ? &m->calls[call->next - 1] : NULL) {
        if (!call->used) continue;
        for (int32_t i = 0; i < call->nin; i++) {
            const stk_msym *s = stk_sym_at(m, call->in[i]);
            const stk_mcall *from = &m->calls[s->call];
            if (!first) {
                size_t length = strlen(r->cell[3]);
                if (length + 2 < CELL) memcpy(r->cell[3] + length, ",", 2);
                r->goes_on = true;
                r = new_row(t);
                if (!r) return;
            }
            snprintf(r->cell[3], CELL, "%.200s[%d][%d]", stk_layer_at(m, from->layer)->name,
                     from->number, s->index);
            first = false;
        }
    }
    if (first) snprintf(r->cell[3], CELL, "-");
}

static void add_layers(table *t, const stk_model *top, const stk_model *m, int32_t depth,
                       bool frozen)
{
    for (int32_t i = 0; i < stk_model_layer_count(m) && !t->no_memory; i++) {
        int32_t number = m->built ? m->order[i] : i + 1;
        const stk_layer_state *layer = stk_layer_at(m, number);
        if (m->kind == STK_MODEL_SEQUENTIAL && layer->def == &stk_layer_input) continue;
        row *r = new_row(t);
        bool trainable;
        if (!r) return;
        snprintf(r->cell[0], CELL, "%*s%s%.160s (%.60s)", depth * 4, "",
                 depth ? (t->options->ascii ? "- " : "\u2514 ") : "", layer->name,
                 stk_model_layer_class(m, i));
        describe_outputs(m, m->built ? first_call(m, number) : NULL, r->cell[1]);
        int64_t n = count_params(top, m == top ? NULL : m, number, &trainable);
        if (m->built)
            grouped(n, r->cell[2], CELL);
        else
            snprintf(r->cell[2], CELL, "0 (unbuilt)");
        int32_t flag = t->columns - 1;
        if (t->options->trainable)
            snprintf(r->cell[flag], CELL, "%s", !n ? "-" : trainable && !frozen ? "Y" : "N");
        if (flag > 2 && !(t->options->trainable && flag == 3)) {
            if (m == top)
                add_connections(t, m, number);
            else
                snprintf(r->cell[3], CELL, "-");
        }
        if (layer->inner && t->options->nested && depth < 8)
            add_layers(t, top, layer->inner, depth + 1,
                       frozen || !m->trainable || !layer->trainable);
    }
}

/* ---- drawing ------------------------------------------------------------------------------------------------------------- */

/* left, line, middle, right of a rule */
typedef struct rule {
    const char *part[4];
} rule;
enum { TOP, UNDER_HEAD, BETWEEN, BOTTOM };
static const rule boxes[] = {{{"\u250f", "\u2501", "\u2533", "\u2513"}},
                             {{"\u2521", "\u2501", "\u2547", "\u2529"}},
                             {{"\u251c", "\u2500", "\u253c", "\u2524"}},
                             {{"\u2514", "\u2500", "\u2534", "\u2518"}}};
static const rule plain[] = {
    {{"+", "-", "+", "+"}}, {{"+", "=", "+", "+"}}, {{"+", "-", "+", "+"}}, {{"+", "-", "+", "+"}}};

static void put_rule(text *out, const table *t, int which)
{
    const rule *r = t->options->ascii ? &plain[which] : &boxes[which];
    for (int32_t c = 0; c < t->columns; c++) {
        put(out, r->part[c ? 2 : 0]);
        put_times(out, r->part[1], t->width[c] + 2);
    }
    put(out, r->part[3]);
    put(out, "\n");
}

static void put_row(text *out, const table *t, const row *r, bool head)
{
    const char *bar = t->options->ascii ? "|" : head ? "\u2503" : "\u2502";
    for (int32_t c = 0; c < t->columns; c++) {
        int32_t space = t->width[c] - width_of(r->cell[c]);
        put(out, bar);
        put(out, " ");
        if (t->right[c]) put_times(out, " ", space);
        put(out, r->cell[c]);
        if (!t->right[c]) put_times(out, " ", space);
        put(out, " ");
    }
    put(out, bar);
    put(out, "\n");
}

static void draw(text *out, table *t, const row *head)
{
    for (int64_t i = 0; i < t->count; i++)
        for (int32_t c = 0; c < t->columns; c++)
            if (width_of(t->rows[i].cell[c]) > t->width[c])
                t->width[c] = width_of(t->rows[i].cell[c]);
    put_rule(out, t, TOP);
    put_row(out, t, head, true);
    put_rule(out, t, UNDER_HEAD);
    for (int64_t i = 0; i < t->count; i++) {
        put_row(out, t, &t->rows[i], false);
        if (i + 1 < t->count && !t->rows[i].goes_on) put_rule(out, t, BETWEEN);
    }
    put_rule(out, t, BOTTOM);
}

/* A chain needs no column that says what is connected to what. */
static bool is_chain(const stk_model *m)
{
    if (m->kind != STK_MODEL_FUNCTIONAL) return true;
    for (int64_t k = 0; k < m->ncalls; k++)
        if (m->calls[k].used && (m->calls[k].nin > 1 || m->calls[k].number > 0 || m->ninputs > 1))
            return false;
    for (int64_t k = 1; k < m->ncalls; k++)
        if (m->calls[k].used && m->calls[k].nin && stk_sym_at(m, m->calls[k].in[0])->call != k - 1)
            return false;
    return m->noutputs == 1;
}

static void set_columns(table *t, const stk_model *m, row *head)
{
    static const int32_t chain[] = {31, 22, 13}, graph[] = {19, 17, 10, 17};
    bool connected = !is_chain(m);
    t->columns = connected ? 4 : 3;
    memcpy(t->width, connected ? graph : chain, sizeof *t->width * (size_t)t->columns);
    snprintf(head->cell[0], CELL, "Layer (type)");
    snprintf(head->cell[1], CELL, "Output Shape");
    snprintf(head->cell[2], CELL, "Param #");
    if (connected) snprintf(head->cell[3], CELL, "Connected to");
    t->right[2] = true;
    if (!t->options->trainable) return;
    t->width[t->columns] = 9;
    snprintf(head->cell[t->columns++], CELL, "Trainable");
}

stk_status stk_model_summary(const stk_model *m, const stk_summary_options *options, char **out,
                             stk_error *err)
{
    static const stk_summary_options defaults;
    if (!out) return stk_fail(err, STK_ERR_ARGUMENT, "stk_model_summary: out must not be NULL");
    *out = NULL;
    STK_TRY(stk_model_status(m, err));
    table t = {.options = options ? options : &defaults};
    text s = {.data = NULL};
    row head = {.goes_on = false};
    set_columns(&t, m, &head);
    add_layers(&t, m, m, 0, false);
    stk_param_count p = stk_model_params(m);
    put(&s, "Model: \"");
    put(&s, stk_model_name(m));
    put(&s, "\"\n");
    draw(&s, &t, &head);
    put_count(&s, "Total params", p.total, p.bytes);
    put_count(&s, "Trainable params", p.trainable, p.trainable_bytes);
    put_count(&s, "Non-trainable params", p.fixed, p.fixed_bytes);
    bool room = STK_GROW(s.data, s.count, s.capacity);
    stk_free(t.rows);
    if (s.no_memory || t.no_memory || !room) {
        stk_free(s.data);
        return stk_fail_memory(err, "stk_model_summary", (size_t)s.count);
    }
    s.data[s.count] = 0;
    *out = s.data;
    return STK_OK;
}
