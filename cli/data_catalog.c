/* What the records of a file hold, counted; and the progress bar. */
#include "data.h"
#include "show.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

data_feature *data_catalog_find(data_catalog *c, const char *name, size_t size, bool make)
{
    for (int i = 0; i < c->count; i++)
        if (strlen(c->features[i].name) == size && memcmp(c->features[i].name, name, size) == 0)
            return &c->features[i];
    if (!make) return NULL;
    if (c->count == c->room) {
        int room = c->room ? 2 * c->room : 16;
        data_feature *grown = realloc(c->features, (size_t)room * sizeof *grown);
        if (!grown) return NULL;
        c->features = grown;
        c->room = room;
    }
    char *copy = malloc(size + 1);
    if (!copy) return NULL;
    memcpy(copy, name, size);
    copy[size] = 0;
    data_feature *f = &c->features[c->count++];
    *f = (data_feature){.name = copy, .dtype = STK_DTYPE_COUNT, .least = INT64_MAX};
    return f;
}

static void count_label(data_feature *f, int64_t value)
{
    if (f->labels < 0) return;
    for (int64_t i = 0; i < f->labels; i++)
        if (f->label[i] == value) {
            f->label_count[i]++;
            return;
        }
    if (f->labels == (int64_t)(sizeof f->label / sizeof *f->label)) {
        f->labels = -1;
        return;
    }
    f->label[f->labels] = value;
    f->label_count[f->labels++] = 1;
}

static void count_values(data_feature *f, const stk_feature_seen *seen)
{
    stk_tensor *values = NULL;
    if (seen->dtype == STK_STRING || seen->list >= 0 || seen->count == 0) return;
    if (stk_feature_values(seen, &values, NULL) != STK_OK) return;
    for (int64_t i = 0; i < seen->count; i++) {
        double v = stk_tensor_at(values, i);
        if (!isfinite(v)) {
            f->odd++;
            continue;
        }
        if (f->numbers == 0 || v < f->low) f->low = v;
        if (f->numbers == 0 || v > f->high) f->high = v;
        f->numbers++;
        f->sum += v;
    }
    if (seen->dtype == STK_I64 && seen->count == 1)
        count_label(f, ((const int64_t *)values->data)[0]);
    else
        f->labels = -1;
    stk_tensor_release(values);
}

static void see(void *context, const stk_feature_seen *seen)
{
    data_catalog *c = context;
    data_feature *f = data_catalog_find(c, seen->name.data, (size_t)seen->name.size, true);
    if (!f) {
        c->no_memory = true;
        return;
    }
    if (seen->dtype != STK_DTYPE_COUNT) {
        f->mixed |= f->dtype != STK_DTYPE_COUNT && f->dtype != seen->dtype;
        f->dtype = seen->dtype;
    }
    f->list |= seen->list >= 0;
    f->records++;
    f->bytes += seen->bytes;
    int64_t n = seen->list >= 0 ? seen->list : seen->count;
    if (n < f->least) f->least = n;
    if (n > f->most) f->most = n;
    if (c->values) count_values(f, seen);
}

static void ignore(void *context, const stk_feature_seen *seen) { (void)context, (void)seen; }

void data_catalog_add(data_catalog *c, const void *record, size_t size)
{
    /* An Example is a SequenceExample without lists, so one way of looking serves both. */
    if (size == 0 || stk_example_visit(record, size, true, ignore, NULL, NULL) != STK_OK) {
        c->others++;
        return;
    }
    c->examples++;
    (void)!stk_example_visit(record, size, true, see, c, NULL);
}

void data_catalog_free(data_catalog *c)
{
    for (int i = 0; i < c->count; i++) free(c->features[i].name);
    free(c->features);
    *c = (data_catalog){0};
}

/* ---- progress ------------------------------------------------------------------------------------ */

void data_bar_start(data_bar *bar, const cli_args *args, const char *what, int64_t total)
{
    *bar = (data_bar){what, total, -1, cli_wants_bar(args, STDERR_FILENO)};
}

void data_bar_show(data_bar *bar, int64_t done)
{
    enum { WIDTH = 30 };
    int64_t per_mille = bar->total > 0 ? done * 1000 / bar->total : 1000;
    if (!bar->on || per_mille == bar->shown) return;
    bar->shown = per_mille;
    char line[WIDTH + 1];
    for (int i = 0; i < WIDTH; i++) line[i] = i < per_mille * WIDTH / 1000 ? '=' : ' ';
    line[WIDTH] = 0;
    fprintf(stderr, "\r%s [%s] %lld/%lld ", bar->what, line, (long long)done,
            (long long)bar->total);
}

void data_bar_end(data_bar *bar)
{
    if (bar->on && bar->shown >= 0) fprintf(stderr, "\n");
    bar->on = false;
}

bool data_ends(const char *path, const char *end)
{
    size_t n = strlen(path), m = strlen(end);
    if (n < m) return false;
    for (size_t i = 0; i < m; i++)
        if (tolower((unsigned char)path[n - m + i]) != end[i]) return false;
    return true;
}

bool data_is_array(const char *path)
{
    return data_ends(path, ".csv") || data_ends(path, ".npy") || data_ends(path, ".npz");
}

bool data_is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}
