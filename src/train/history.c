/* history.c - what was logged at the end of each epoch: a table of numbers, names across, epochs down. */
#include "train/history.h"

#include "base/memory.h"

#include <math.h>
#include <string.h>

typedef struct column {
    char *name;
    double *values; /* [rows] of the table; room for `capacity` of it */
} column;

struct stk_history {
    column *columns;
    int64_t count, columns_capacity;
    int64_t *epochs;
    int64_t rows, capacity; /* capacity: of epochs and of every column */
    int32_t refs;
};

stk_history *stk_history_new(void)
{
    stk_history *h = stk_calloc(1, sizeof *h);
    if (h) h->refs = 1;
    return h;
}

stk_history *stk_history_retain(stk_history *h)
{
    if (h) h->refs++;
    return h;
}

void stk_history_release(stk_history *h)
{
    if (!h || --h->refs > 0) return;
    for (int64_t i = 0; i < h->count; i++) {
        stk_free(h->columns[i].name);
        stk_free(h->columns[i].values);
    }
    stk_free(h->columns);
    stk_free(h->epochs);
    stk_free(h);
}

int64_t stk_history_rows(const stk_history *h) { return h ? h->rows : 0; }
int32_t stk_history_count(const stk_history *h) { return h ? (int32_t)h->count : 0; }

int64_t stk_history_epoch(const stk_history *h, int64_t row)
{
    return h && row >= 0 && row < h->rows ? h->epochs[row] : -1;
}

const char *stk_history_name(const stk_history *h, int32_t index)
{
    return h && index >= 0 && index < h->count ? h->columns[index].name : NULL;
}

static column *find(const stk_history *h, const char *name)
{
    for (int64_t i = 0; i < h->count; i++)
        if (!strcmp(h->columns[i].name, name)) return &h->columns[i];
    return NULL;
}

double stk_history_value(const stk_history *h, const char *name, int64_t row)
{
    if (!h || !name || row >= h->rows) return NAN;
    const column *c = find(h, name);
    if (row < 0) row += h->rows;
    return c && row >= 0 ? c->values[row] : NAN;
}

static bool grow_rows(stk_history *h)
{
    if (h->rows < h->capacity) return true;
    int64_t wanted = h->capacity ? h->capacity * 2 : 16;
    size_t old = (size_t)h->rows * 8, size = (size_t)wanted * 8;
    int64_t *epochs = stk_realloc(h->epochs, old, size);
    if (!epochs) return false;
    h->epochs = epochs;
    for (int64_t i = 0; i < h->count; i++) {
        double *values = stk_realloc(h->columns[i].values, old, size);
        if (!values) return false;
        h->columns[i].values = values;
    }
    h->capacity = wanted;
    return true;
}

static column *add_column(stk_history *h, const char *name)
{
    column c = {stk_strdup(name), stk_malloc((size_t)h->capacity * 8)};
    if (!c.name || !c.values || !STK_GROW(h->columns, h->count, h->columns_capacity)) {
        stk_free(c.name);
        stk_free(c.values);
        return NULL;
    }
    for (int64_t i = 0; i < h->rows; i++) c.values[i] = NAN;
    h->columns[h->count] = c;
    return &h->columns[h->count++];
}

stk_status stk_history_add(stk_history *h, int64_t epoch, const stk_logs *logs, stk_error *err)
{
    if (!grow_rows(h)) return stk_fail_memory(err, "history", (size_t)h->capacity * 16);
    for (int32_t i = 0; i < logs->count; i++)
        if (!find(h, logs->names[i]) && !add_column(h, logs->names[i]))
            return stk_fail_memory(err, "history", (size_t)h->capacity * 8);
    for (int64_t i = 0; i < h->count; i++) h->columns[i].values[h->rows] = NAN;
    for (int32_t i = 0; i < logs->count; i++)
        find(h, logs->names[i])->values[h->rows] = logs->values[i];
    h->epochs[h->rows++] = epoch;
    return STK_OK;
}

/* ---- as JSON: {"epoch": [0, 1], "history": {"loss": [0.5, 0.25]}} ------------------------------------ */

void stk_history_write(const stk_history *h, stk_json_writer *w)
{
    stk_json_begin_object(w);
    stk_json_name(w, "epoch");
    stk_json_begin_array(w);
    for (int64_t i = 0; i < h->rows; i++) stk_json_put_int(w, h->epochs[i]);
    stk_json_end_array(w);
    stk_json_name(w, "history");
    stk_json_begin_object(w);
    for (int64_t k = 0; k < h->count; k++) {
        stk_json_name(w, h->columns[k].name);
        stk_json_begin_array(w);
        for (int64_t i = 0; i < h->rows; i++) stk_json_put_double(w, h->columns[k].values[i]);
        stk_json_end_array(w);
    }
    stk_json_end_object(w);
    stk_json_end_object(w);
}

stk_status stk_history_json(const stk_history *h, int32_t indent, char **text, stk_error *err)
{
    if (!h || !text)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_history_json: history and text must be given");
    stk_json_writer w = {.indent = indent};
    size_t size = 0;
    stk_history_write(h, &w);
    return stk_json_finish(&w, text, &size, err);
}

static stk_status read_row(stk_history *h, const stk_json *epochs, const stk_json *columns,
                           int64_t row, const char **names, double *values, stk_error *err)
{
    for (int64_t k = 0; k < columns->count; k++) {
        const stk_json *values_k = &columns->items[k];
        if (values_k->kind != STK_JSON_ARRAY || values_k->count != epochs->count)
            return stk_fail(err, STK_ERR_FORMAT, "history: '%s' does not have one number per epoch",
                            values_k->name);
        names[k] = values_k->name;
        values[k] = stk_json_double(stk_json_item(values_k, row), NAN);
    }
    stk_logs logs = {(int32_t)columns->count, names, values};
    return stk_history_add(h, stk_json_int(stk_json_item(epochs, row), row), &logs, err);
}

stk_status stk_history_read(stk_history *h, const stk_json *object, stk_error *err)
{
    const stk_json *epochs = stk_json_get(object, "epoch"),
                   *columns = stk_json_get(object, "history");
    if (!epochs || epochs->kind != STK_JSON_ARRAY || !columns || columns->kind != STK_JSON_OBJECT)
        return stk_fail(err, STK_ERR_FORMAT,
                        "history: needs a list 'epoch' and an object 'history'");
    const char **names = stk_calloc((size_t)columns->count + 1, sizeof *names);
    double *values = stk_calloc((size_t)columns->count + 1, sizeof *values);
    stk_status status = names && values ? STK_OK : stk_fail_memory(err, "history", 0);
    for (int64_t row = 0; status == STK_OK && row < epochs->count; row++)
        status = read_row(h, epochs, columns, row, names, values, err);
    stk_free(names);
    stk_free(values);
    return status;
}
