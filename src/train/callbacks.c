/* callbacks.c - what Keras' callbacks do at the end of an epoch, one block each. Numbers that must survive a checkpoint live in
 * callback.state, nowhere else. */
#include "train/trainer.h"

#include "base/dtype.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- common ---------------------------------------------------------------------------------------------- */

typedef struct watcher {
    stk_callback base;
    stk_monitor_options options;
    char *monitor, *path;
    bool larger; /* is better */
    bool best_only, append;
    double (*rate)(void *context, int64_t epoch, double rate);
    void *rate_context;
    int file;                      /* of the log; -1 = not open */
    bool headed;                   /* the log has its first line */
    char *unsaved;                 /* lines of the log that did not get onto the disk yet */
    int64_t good_epoch, good_step; /* where the loss was a number; for messages only */
    double state[4];
} watcher;

enum { BEST, WAIT, COOL, BEST_EPOCH }; /* places in state */

static watcher *of(stk_callback *self) { return self->context; }

static void release(stk_callback *self)
{
    watcher *w = of(self);
    if (w->file >= 0) close(w->file);
    free(w->unsaved); /* check: allow heap, open_memstream() took it */
    stk_free(w->monitor);
    stk_free(w->path);
    stk_free(w);
}

void stk_callback_release(stk_callback *callback)
{
    if (callback && callback->release) callback->release(callback);
}

static stk_status make(const char *name, const char *monitor, const char *path, watcher **out,
                       stk_error *err)
{
    watcher *w = stk_calloc(1, sizeof *w);
    if (!w) return stk_fail_memory(err, name, sizeof *w);
    w->base = (stk_callback){
        .name = name, .context = w, .state = w->state, .nstate = 4, .release = release};
    w->file = -1;
    w->monitor = stk_strdup(monitor ? monitor : "");
    w->path = stk_strdup(path ? path : "");
    if (!w->monitor || !w->path) {
        release(&w->base);
        return stk_fail_memory(err, name, 64);
    }
    *out = w;
    return STK_OK;
}

stk_monitor_options stk_monitor_defaults(void)
{
    return (stk_monitor_options){.monitor = "val_loss",
                                 .mode = "auto",
                                 .min_delta = -1,
                                 .patience = -1,
                                 .baseline = NAN,
                                 .factor = 0.1};
}

/* What grows as it gets better, as Keras' metrics say of themselves. */
static bool grows(const char *name)
{
    static const char *const growing[] = {"accuracy", "acc",      "auc", "precision",
                                          "recall",   "f1_score", "iou", "cosine_similarity",
                                          "top_k"};
    for (size_t i = 0; i < sizeof growing / sizeof *growing; i++)
        if (strstr(name, growing[i])) return true;
    return false;
}

static stk_status watch(const char *name, const stk_monitor_options *options, const char *path,
                        watcher **out, stk_error *err)
{
    stk_monitor_options o = options ? *options : stk_monitor_defaults();
    const char *mode = o.mode ? o.mode : "auto";
    bool max = !strcmp(mode, "max");
    if (!max && strcmp(mode, "min") && strcmp(mode, "auto"))
        return stk_fail(err, STK_ERR_ARGUMENT, "%s: mode '%s' is none of auto, min, max", name,
                        mode);
    if (!o.monitor || !o.monitor[0])
        return stk_fail(err, STK_ERR_ARGUMENT, "%s: say what to monitor, for instance val_loss",
                        name);
    STK_TRY(make(name, o.monitor, path, out, err));
    (*out)->options = o;
    (*out)->options.monitor = (*out)->monitor;
    (*out)->larger = max || (!strcmp(mode, "auto") && grows(o.monitor));
    return STK_OK;
}

static stk_status start_over(stk_callback *self, stk_trainer *t, stk_error *err)
{
    watcher *w = of(self);
    (void)t, (void)err;
    memset(w->state, 0, sizeof w->state);
    w->state[BEST] = w->larger ? -INFINITY : INFINITY;
    w->state[BEST_EPOCH] = -1;
    return STK_OK;
}

static bool better(const watcher *w, double value, double than)
{
    double delta = w->options.min_delta;
    return w->larger ? value - delta > than : value + delta < than;
}

static stk_status monitored(const watcher *w, const stk_progress *p, double *value, stk_error *err)
{
    *value = NAN;
    for (int32_t i = 0; i < p->logs.count; i++)
        if (!strcmp(p->logs.names[i], w->monitor)) {
            *value = p->logs.values[i];
            return STK_OK;
        }
    char known[512] = "";
    for (int32_t i = 0; i < p->logs.count; i++) {
        size_t used = strlen(known);
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", p->logs.names[i]);
    }
    return stk_fail(err, STK_ERR_ARGUMENT, "%s watches '%s', which is not logged; there are: %s",
                    w->base.name, w->monitor, known);
}

/* ---- early stopping ------------------------------------------------------------------------------------------ */

static stk_status keep_best(watcher *w, stk_trainer *t, int64_t epoch, stk_error *err)
{
    w->state[BEST_EPOCH] = (double)epoch;
    if (!w->options.restore_best) return STK_OK;
    stk_named_list now = {0};
    STK_TRY(stk_trainer_get_weights(t, &now, err));
    stk_named_release(&t->best);
    t->best = now;
    return STK_OK;
}

static stk_status stopping_epoch(stk_callback *self, stk_trainer *t, const stk_progress *p,
                                 stk_error *err)
{
    watcher *w = of(self);
    double value;
    if (p->epoch < w->options.start_from) return STK_OK;
    STK_TRY(monitored(w, p, &value, err));
    if (w->state[BEST_EPOCH] < 0) STK_TRY(keep_best(w, t, p->epoch, err));
    w->state[WAIT] += 1;
    if (better(w, value, w->state[BEST])) {
        w->state[BEST] = value;
        STK_TRY(keep_best(w, t, p->epoch, err));
        if (isnan(w->options.baseline) || better(w, value, w->options.baseline)) w->state[WAIT] = 0;
        return STK_OK;
    }
    if (w->state[WAIT] >= (double)w->options.patience && p->epoch > 0) stk_trainer_finish(t);
    return STK_OK;
}

static stk_status stopping_end(stk_callback *self, stk_trainer *t, stk_error *err)
{
    const watcher *w = of(self);
    return w->options.restore_best && t->best.count ? stk_trainer_put_weights(t, &t->best, err)
                                                    : STK_OK;
}

stk_status stk_early_stopping(const stk_monitor_options *options, stk_callback **out,
                              stk_error *err)
{
    watcher *w = NULL;
    STK_TRY(watch("early_stopping", options, NULL, &w, err));
    if (w->options.patience < 0) w->options.patience = 0;
    w->options.min_delta = w->options.min_delta < 0 ? 0 : w->options.min_delta;
    w->base.train_begin = start_over;
    w->base.epoch_end = stopping_epoch;
    w->base.train_end = stopping_end;
    *out = &w->base;
    return STK_OK;
}

/* ---- a smaller learning rate when nothing gets better ----------------------------------------------------------- */

static stk_status reduce_epoch(stk_callback *self, stk_trainer *t, const stk_progress *p,
                               stk_error *err)
{
    watcher *w = of(self);
    double value, rate;
    STK_TRY(monitored(w, p, &value, err));
    if (w->state[COOL] > 0) {
        w->state[COOL] -= 1;
        w->state[WAIT] = 0;
    }
    if (better(w, value, w->state[BEST])) {
        w->state[BEST] = value;
        w->state[WAIT] = 0;
    } else if (w->state[COOL] <= 0) {
        w->state[WAIT] += 1;
        if (w->state[WAIT] < (double)w->options.patience) return STK_OK;
        STK_TRY(stk_trainer_rate(t, &rate, err));
        if (rate <= w->options.min_lr) return STK_OK;
        STK_TRY(stk_trainer_set_rate(t, fmax(rate * w->options.factor, w->options.min_lr), err));
        w->state[COOL] = (double)w->options.cooldown;
        w->state[WAIT] = 0;
    }
    return STK_OK;
}

stk_status stk_reduce_lr(const stk_monitor_options *options, stk_callback **out, stk_error *err)
{
    watcher *w = NULL;
    STK_TRY(watch("reduce_lr", options, NULL, &w, err));
    if (!(w->options.factor > 0 && w->options.factor < 1)) {
        stk_status status =
            stk_fail(err, STK_ERR_RANGE, "reduce_lr: factor is %g; it must lie between 0 and 1",
                     w->options.factor);
        release(&w->base);
        return status;
    }
    if (w->options.patience < 0) w->options.patience = 10;
    if (w->options.min_delta < 0) w->options.min_delta = 1e-4;
    w->base.train_begin = start_over;
    w->base.epoch_end = reduce_epoch;
    *out = &w->base;
    return STK_OK;
}

/* ---- a learning rate for each epoch ------------------------------------------------------------------------------- */

static stk_status schedule_epoch(stk_callback *self, stk_trainer *t, int64_t epoch, stk_error *err)
{
    const watcher *w = of(self);
    double rate;
    STK_TRY(stk_trainer_rate(t, &rate, err));
    return stk_trainer_set_rate(t, w->rate(w->rate_context, epoch, rate), err);
}

stk_status stk_lr_scheduler(double (*rate)(void *context, int64_t epoch, double rate),
                            void *context, stk_callback **out, stk_error *err)
{
    watcher *w = NULL;
    if (!rate) return stk_fail(err, STK_ERR_ARGUMENT, "lr_scheduler: the function is NULL");
    STK_TRY(make("lr_scheduler", NULL, NULL, &w, err));
    w->rate = rate;
    w->rate_context = context;
    w->base.epoch_begin = schedule_epoch;
    *out = &w->base;
    return STK_OK;
}

/* ---- no further than the first NaN ------------------------------------------------------------------------------------ */

static stk_status nan_check(stk_callback *self, stk_trainer *t, const stk_progress *p,
                            stk_error *err)
{
    watcher *w = of(self);
    double loss = stk_logs_get(&p->logs, "loss");
    if (w->good_epoch != p->epoch) w->good_step = p->first_step;
    w->good_epoch = p->epoch;
    if (isfinite(loss) || p->step == 0) {
        w->good_step = p->step;
        return STK_OK;
    }
    char culprit[256], until[64] = "";
    bool known = stk_culprit_find(t, w->good_step, p->step, culprit, sizeof culprit);
    if (w->good_step > 0 && w->good_step < p->step)
        snprintf(until, sizeof until, ", after step %" PRId64 " it was not", w->good_step);
    return stk_fail(
        err, STK_ERR_RANGE,
        "the loss is %s after step %" PRId64 " of epoch %" PRId64 "%s; training ends here (%s)",
        isnan(loss) ? "NaN" : "infinite", p->step, p->epoch + 1, until,
        known ? culprit : "try a smaller learning rate, or look for such values in the data");
}

stk_status stk_terminate_on_nan(stk_callback **out, stk_error *err)
{
    watcher *w = NULL;
    STK_TRY(make("terminate_on_nan", NULL, NULL, &w, err));
    w->good_epoch = -1;
    w->base.progress = nan_check;
    w->base.epoch_end = nan_check;
    *out = &w->base;
    return STK_OK;
}

/* ---- a line per epoch ----------------------------------------------------------------------------------------------------- */

/* A resumed run may do epochs again that are in the file already: those lines go. */
static stk_status trim_log(const char *path, int64_t epoch, stk_error *err)
{
    char *text = NULL;
    size_t size = 0;
    if (stk_file_read(path, (uint64_t)1 << 30, &text, &size, NULL) != STK_OK)
        return STK_OK; /* a new file */
    stk_file_writer out = {.fd = -1};
    stk_status status = stk_file_create(path, &out, err);
    for (char *line = text; status == STK_OK && *line;) {
        char *end = strchr(line, '\n');
        size_t length = end ? (size_t)(end - line) + 1 : strlen(line);
        long long number = -1;
        bool row = sscanf(line, "%lld", &number) == 1;
        if (end && (!row || number < epoch)) status = stk_file_write(&out, line, length, err);
        line += length;
    }
    if (status == STK_OK)
        status = stk_file_commit(&out, err);
    else
        stk_file_abandon(&out);
    stk_free(text);
    return status;
}

static stk_status log_open(stk_callback *self, stk_trainer *t, int64_t epoch, stk_error *err)
{
    watcher *w = of(self);
    struct stat info;
    (void)t;
    if (w->file >= 0) return STK_OK;
    if (w->append) STK_TRY(trim_log(w->path, epoch, err));
    w->file =
        open(w->path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (w->append ? 0 : O_TRUNC), 0666);
    if (w->file < 0) return stk_fail_system(err, "open the log for writing", w->path);
    w->headed = fstat(w->file, &info) == 0 && info.st_size > 0;
    return STK_OK;
}

/* What waits, and the row of this epoch. */
static char *log_lines(watcher *w, const stk_progress *p)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);
    if (!f) return NULL;
    if (w->unsaved) fputs(w->unsaved, f);
    if (!w->headed) {
        fprintf(f, "epoch");
        for (int32_t i = 0; i < p->logs.count; i++) fprintf(f, ",%s", p->logs.names[i]);
        fprintf(f, "\n");
    }
    fprintf(f, "%" PRId64, p->epoch);
    for (int32_t i = 0; i < p->logs.count; i++) fprintf(f, ",%.9g", p->logs.values[i]);
    fprintf(f, "\n");
    if (fclose(f) == 0) return text;
    free(text); /* check: allow heap, open_memstream() took it */
    return NULL;
}

/* Writes what waits, and keeps what found no room. */
static stk_status log_write(watcher *w, stk_error *err)
{
    char *at = w->unsaved;
    while (at && *at) {
        ssize_t put = write(w->file, at, strlen(at));
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) {
            stk_status status = stk_fail_system(err, "write to the log", w->path);
            memmove(w->unsaved, at, strlen(at) + 1);
            return status;
        }
        at += put;
    }
    free(w->unsaved); /* check: allow heap, open_memstream() took it */
    w->unsaved = NULL;
    return STK_OK;
}

/* A log that has no room is no reason to end a training: its lines wait for the next epoch. */
static stk_status log_epoch(stk_callback *self, stk_trainer *t, const stk_progress *p,
                            stk_error *err)
{
    watcher *w = of(self);
    stk_error why;
    char *lines = log_lines(w, p);
    if (!lines) return stk_fail_memory(err, w->path, 4096);
    free(w->unsaved); /* check: allow heap, open_memstream() took it */
    w->unsaved = lines;
    w->headed = true;
    stk_trouble(t, w, log_write(w, &why) == STK_OK ? NULL : &why);
    return STK_OK;
}

static stk_status log_close(stk_callback *self, stk_trainer *t, stk_error *err)
{
    watcher *w = of(self);
    stk_error why;
    stk_status status = log_write(w, &why);
    stk_trouble(t, w, status == STK_OK ? NULL : &why);
    if (w->file >= 0 && close(w->file) != 0 && status == STK_OK)
        status = stk_fail_system(err, "write to the log", w->path);
    else
        status = STK_OK;
    w->file = -1;
    return status;
}

stk_status stk_csv_logger(const char *path, bool append, stk_callback **out, stk_error *err)
{
    watcher *w = NULL;
    if (!path || !path[0])
        return stk_fail(err, STK_ERR_ARGUMENT, "csv_logger: the path is missing");
    STK_TRY(make("csv_logger", NULL, path, &w, err));
    w->append = append;
    w->base.epoch_begin = log_open;
    w->base.epoch_end = log_epoch;
    w->base.train_end = log_close;
    *out = &w->base;
    return STK_OK;
}

/* ---- weights of each epoch, or of the best one --------------------------------------------------------------------------------- */

static stk_status weights_epoch(stk_callback *self, stk_trainer *t, const stk_progress *p,
                                stk_error *err)
{
    watcher *w = of(self);
    double value;
    if (w->best_only) {
        STK_TRY(monitored(w, p, &value, err));
        if (!better(w, value, w->state[BEST])) return STK_OK;
        w->state[BEST] = value;
    }
    char path[4096];
    const char *mark = strstr(w->path, "{epoch}");
    int n = mark ? snprintf(path, sizeof path, "%.*s%" PRId64 "%s", (int)(mark - w->path), w->path,
                            p->epoch + 1, mark + 7)
                 : snprintf(path, sizeof path, "%s", w->path);
    if (n < 0 || n >= (int)sizeof path)
        return stk_fail(err, STK_ERR_RANGE, "model_checkpoint: the path is too long");
    int32_t before = stk_books_enter(&t->books, STK_SPAN_CHECKPOINT);
    stk_status status = stk_trainer_save_weights(t, path, err);
    stk_books_enter(&t->books, before);
    return status;
}

stk_status stk_model_checkpoint(const char *path, bool best_only,
                                const stk_monitor_options *options, stk_callback **out,
                                stk_error *err)
{
    watcher *w = NULL;
    if (!path || !path[0])
        return stk_fail(err, STK_ERR_ARGUMENT, "model_checkpoint: the path is missing");
    STK_TRY(watch("model_checkpoint", options, path, &w, err));
    w->options.min_delta = 0;
    w->best_only = best_only;
    w->base.train_begin = start_over;
    w->base.epoch_end = weights_epoch;
    *out = &w->base;
    return STK_OK;
}
