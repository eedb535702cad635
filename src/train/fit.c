/* fit.c - the loop over epochs and steps. Between two looks at the clock a stretch of steps runs with nothing but batches and
 * programs; everything else happens at its end. */
#include "train/trainer.h"

#include "base/file.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

stk_fit_options stk_fit_defaults(void)
{
    return (stk_fit_options){.batch = 32, .epochs = 1, .validation_every = 1};
}

void stk_trainer_stop(stk_trainer *t)
{
    if (t) __atomic_store_n(&t->stop, 1, __ATOMIC_RELEASE);
}

void stk_trainer_finish(stk_trainer *t)
{
    if (t) t->finish = true;
}

/* ---- callbacks -------------------------------------------------------------------------------------------------- */

static const double LOOK_SECONDS = 0.1; /* progress is told this often */

#define EACH_IN(span, f, slot, ...)                                                                \
    do {                                                                                           \
        int32_t each_before_ = stk_books_enter(&(f)->t->books, span);                              \
        for (int32_t each_ = 0; each_ < (f)->o->ncallbacks; each_++) {                             \
            stk_callback *callback = (f)->o->callbacks[each_];                                     \
            if (callback->slot) STK_TRY(callback->slot(callback, (f)->t, __VA_ARGS__));            \
        }                                                                                          \
        stk_books_enter(&(f)->t->books, each_before_);                                             \
    } while (0)
#define EACH(f, slot, ...) EACH_IN(STK_SPAN_CALLBACK, f, slot, __VA_ARGS__)

static stk_progress progress(const stk_fit *f)
{
    const stk_trainer *t = f->t;
    return (stk_progress){.epoch = f->epoch,
                          .epochs = f->o->epochs,
                          .step = f->batch,
                          .steps = f->batches.steps,
                          .first_step = f->first_batch,
                          .samples = f->samples,
                          .seconds = (double)(stk_now_ns() - f->began) * 1e-9,
                          .logs = {t->nlogs, (const char *const *)t->names, t->values},
                          .trouble = t->trouble.code ? t->trouble.message : NULL};
}

void stk_trouble(stk_trainer *t, const void *of, const stk_error *why)
{
    if (why) {
        t->trouble = *why;
        t->trouble_of = of;
    } else if (t->trouble_of == of) {
        t->trouble = (stk_error){.code = STK_OK};
    }
}

/* A disk that is full now may have room at the next checkpoint. Until then everything is in memory only, which
 * is the best reason to go on. */
static stk_status save(stk_fit *f, stk_error *err)
{
    stk_error why;
    stk_status status = stk_checkpoint_write(f->t, f->o->checkpoint, &why);
    stk_trouble(f->t, f, status == STK_ERR_IO ? &why : NULL);
    if (status == STK_OK) f->saved_epoch = f->epoch, f->saved_batch = f->batch;
    return status == STK_OK || status == STK_ERR_IO ? STK_OK
                                                    : stk_fail_in(err, why.code, "%s", why.message);
}

static stk_status read_metrics(stk_fit *f, stk_error *err)
{
    int32_t before = stk_books_enter(&f->t->books, STK_SPAN_READ);
    stk_status status = stk_step_results(f->t->maker, f->t->store, f->t->values, err);
    stk_books_enter(&f->t->books, before);
    return status;
}

static stk_status tell_progress(stk_fit *f, stk_error *err)
{
    STK_TRY(read_metrics(f, err));
    stk_progress p = progress(f);
    EACH(f, progress, &p, err);
    return STK_OK;
}

/* ---- steps ---------------------------------------------------------------------------------------------------------- */

static stk_status one_step(stk_fit *f, stk_error *err)
{
    stk_trainer *t = f->t;
    stk_program *program = NULL;
    bool waits = f->batches.dataset || f->batches.ahead.on;
    stk_trace_step(1); /* a round: batch, program, and what follows before the next batch */
    stk_books_enter(&t->books, waits ? STK_SPAN_INPUT : STK_SPAN_GATHER);
    STK_TRY(stk_batches_next(&f->batches, err));
    stk_books_enter(&t->books, STK_SPAN_STEP);
    if (f->batches.end) return STK_OK;
    STK_TRY(stk_trainer_prepare(t, STK_STEP_TRAIN, &f->batches, &program, err));
    stk_program_set_step(program, t->step);
    STK_TRY(stk_program_run(program, 1, err));
    t->step++;
    f->batch++;
    f->samples += f->batches.rows;
    t->books.steps++;
    t->books.samples += f->batches.rows;
    return STK_OK;
}

/* Is batch_end to be called now? */
static bool tells_batch(const stk_fit *f)
{
    int64_t every = f->o->callbacks_every > 1 ? f->o->callbacks_every : 1;
    return f->every_step && f->batch % every == 0;
}

/* Steps until something else is to be done: the epoch ends, a look or a checkpoint is due, or somebody wants to stop. */
static stk_status stretch(stk_fit *f, stk_error *err)
{
    stk_trainer *t = f->t;
    do {
        STK_TRY(one_step(f, err));
    } while (!f->batches.end && !tells_batch(f) && t->books.since < f->look_at &&
             t->books.since < f->save_at && !__atomic_load_n(&t->stop, __ATOMIC_ACQUIRE));
    return STK_OK;
}

static uint64_t after(const stk_fit *f, double seconds)
{
    return stk_ticks() + (uint64_t)(seconds * f->ticks_per_second);
}

static stk_status stopped(stk_fit *f, stk_error *err)
{
    const char *path = f->o->checkpoint;
    if (path) STK_TRY(stk_checkpoint_write(f->t, path, err));
    return stk_fail(err, STK_ERR_CANCELLED,
                    "stopped in epoch %" PRId64 " of %" PRId64 " after step %" PRId64 "%s%s",
                    f->epoch + 1, f->o->epochs, f->batch,
                    path ? "; it can go on from " : "; no checkpoint was asked for",
                    path ? path : "");
}

/* What is due between two stretches. */
static stk_status between(stk_fit *f, stk_error *err)
{
    stk_trainer *t = f->t;
    if (__atomic_load_n(&t->stop, __ATOMIC_ACQUIRE)) return stopped(f, err);
    if (tells_batch(f)) {
        STK_TRY(read_metrics(f, err));
        stk_progress p = progress(f);
        EACH(f, batch_end, &p, err);
    }
    if (stk_ticks() >= f->look_at) {
        STK_TRY(tell_progress(f, err));
        f->look_at = after(f, LOOK_SECONDS);
    }
    if (stk_ticks() >= f->save_at) {
        STK_TRY(save(f, err));
        f->save_at = after(f, f->o->checkpoint_seconds);
    }
    return STK_OK;
}

/* ---- epochs ------------------------------------------------------------------------------------------------------------ */

static bool rate_moves(const stk_fit *f)
{
    const stk_optimizer *o = stk_step_optimizer(f->t->maker);
    bool moves = o && stk_optimizer_get_options(o)->schedule.kind != STK_SCHEDULE_CONSTANT;
    for (int32_t i = 0; i < f->o->ncallbacks; i++) {
        const char *name = f->o->callbacks[i]->name ? f->o->callbacks[i]->name : "";
        moves |= !strcmp(name, "reduce_lr") || !strcmp(name, "lr_scheduler");
    }
    return moves;
}

/* Loss and metrics of the epoch, val_... behind them, and the learning rate when it is not constant. */
static stk_status finish_epoch(stk_fit *f, stk_progress *p, stk_error *err)
{
    stk_trainer *t = f->t;
    int32_t n = t->nlogs;
    STK_TRY(tell_progress(f, err));
    int64_t every = f->o->validation_every > 1 ? f->o->validation_every : 1;
    if (f->validates && (f->epoch + 1) % every == 0) {
        stk_books_enter(&t->books, STK_SPAN_VALIDATE);
        stk_status status = stk_trainer_run_evaluation(t, &f->validation, t->values + n, err);
        if (status != STK_OK) return stk_fail_in(err, status, "validation data");
        stk_books_enter(&t->books, STK_SPAN_COUNT);
        n *= 2;
    }
    for (int32_t i = 0; i < n; i++) t->epoch_logs[i] = t->names[i];
    if (rate_moves(f)) {
        STK_TRY(stk_trainer_rate(t, &t->values[n], err));
        t->epoch_logs[n++] = "learning_rate";
    }
    *p = progress(f);
    p->logs = (stk_logs){n, t->epoch_logs, t->values};
    return STK_OK;
}

static stk_status tell_epoch(stk_fit *f, const stk_progress *p, stk_error *err)
{
    STK_TRY(stk_history_add(f->t->history, f->epoch, &p->logs, err));
    EACH_IN(STK_SPAN_EPOCH_END, f, epoch_end, p, err);
    return STK_OK;
}

static stk_status begin_epoch(stk_fit *f, stk_error *err)
{
    stk_trainer *t = f->t;
    stk_books_enter(&t->books, f->batches.dataset ? STK_SPAN_INPUT : STK_SPAN_GATHER);
    STK_TRY(stk_batches_begin(&f->batches, f->epoch, f->batch, err));
    if (t->position.data && f->batch > 0)
        STK_TRY(stk_batches_restore(&f->batches, t->position.data, t->position.data_size, err));
    stk_books_enter(&t->books, STK_SPAN_COUNT);
    if (f->batch == 0) {
        STK_TRY(stk_step_reset(t->maker, t->store, err));
        EACH_IN(STK_SPAN_EPOCH_END, f, epoch_begin, f->epoch, err);
    }
    stk_trace_step_break(); /* epochs begin and end outside of steps */
    f->began = stk_now_ns();
    f->samples = 0;
    f->first_batch = f->batch;
    f->look_at = f->looks ? after(f, LOOK_SECONDS) : UINT64_MAX;
    return STK_OK;
}

static stk_status one_epoch(stk_fit *f, stk_error *err)
{
    stk_progress p;
    STK_TRY(begin_epoch(f, err));
    for (;;) {
        STK_TRY(stretch(f, err));
        if (f->batches.end) break;
        STK_TRY(between(f, err));
    }
    stk_trace_step_break();
    STK_TRY(finish_epoch(f, &p, err));
    STK_TRY(tell_epoch(f, &p, err));
    f->epoch++;
    f->batch = 0;
    return f->o->checkpoint ? save(f, err) : STK_OK;
}

/* ---- the whole ------------------------------------------------------------------------------------------------------------ */

static stk_status check_options(const stk_fit_options *o, const stk_train_data *data,
                                stk_error *err)
{
    if (o->batch < 1 || o->epochs < 0 || o->initial_epoch < 0 || o->steps_per_epoch < 0)
        return stk_fail(err, STK_ERR_RANGE,
                        "fit: batch %" PRId64 ", epochs %" PRId64
                        ": they must not be negative, and a batch has "
                        "a row at least",
                        o->batch, o->epochs);
    if (o->validation_split < 0 || o->validation_split >= 1 || isnan(o->validation_split))
        return stk_fail(err, STK_ERR_RANGE,
                        "fit: validation_split is %g; it must be from 0 to less than 1",
                        o->validation_split);
    if (o->validation_split > 0 && data && data->dataset)
        return stk_fail(
            err, STK_ERR_UNSUPPORTED,
            "fit: a dataset cannot be split for validation; give validation data of its own");
    if (o->class_weights && o->classes < 1)
        return stk_fail(err, STK_ERR_ARGUMENT, "fit: class weights without their number");
    return STK_OK;
}

static stk_status open_data(stk_fit *f, const stk_train_data *data, stk_error *err)
{
    const stk_fit_options *o = f->o;
    stk_trainer *t = f->t;
    stk_batch_options how = stk_trainer_batches(t, STK_STEP_TRAIN, o->batch);
    how.shuffle = !o->no_shuffle;
    how.steps = o->steps_per_epoch;
    how.class_weights = o->class_weights;
    how.classes = o->classes;
    int64_t rows =
        data && !data->dataset && data->nx > 0 && data->x && data->x[0] && data->x[0]->rank > 0
            ? data->x[0]->shape[0]
            : 0;
    int64_t kept =
        o->validation_split > 0 ? (int64_t)floor((double)rows * (1 - o->validation_split)) : rows;
    if (o->validation_split > 0) how.rows = kept;
    STK_TRY(stk_batches_open(&f->batches, data, &how, err));
    if (o->epochs > 1)
        STK_TRY(stk_resident_open(&f->batches, err)); /* one walk can as well be fed */
    t->resident_bytes = stk_resident_bytes(f->batches.resident);
    const stk_train_data *other = o->validation             ? o->validation
                                  : o->validation_split > 0 ? data
                                                            : NULL;
    if (!other) return STK_OK;
    stk_batch_options check = stk_trainer_batches(
        t, STK_STEP_EVALUATE, o->validation_batch ? o->validation_batch : o->batch);
    check.steps = o->validation_steps;
    check.first = o->validation ? 0 : kept;
    f->validates = true;
    stk_status status = stk_batches_open(&f->validation, other, &check, err);
    return status == STK_OK ? STK_OK : stk_fail_in(err, status, "validation data");
}

/* A checkpoint's callbacks get their numbers back, when they are the same callbacks. */
static stk_status restore_states(stk_fit *f, stk_error *err)
{
    const stk_position *p = &f->t->position;
    int64_t n = 0;
    for (int32_t i = 0; i < f->o->ncallbacks; i++)
        if (f->o->callbacks[i]->nstate > 0) n += f->o->callbacks[i]->nstate;
    if (n != p->nstates)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "the checkpoint was made with other callbacks (%" PRId64
                        " numbers, here %" PRId64 "); resume with the same ones",
                        p->nstates, n);
    const double *from = p->states;
    for (int32_t i = 0; i < f->o->ncallbacks; i++) {
        stk_callback *c = f->o->callbacks[i];
        if (c->nstate <= 0) continue;
        memcpy(c->state, from, (size_t)c->nstate * sizeof *from);
        from += c->nstate;
    }
    return STK_OK;
}

/* A place where nothing can ever be written is a mistake that is told before the start. */
static stk_status try_place(const char *path, stk_error *err)
{
    stk_file_writer w;
    STK_TRY(stk_file_create(path, &w, err));
    stk_file_abandon(&w);
    return STK_OK;
}

static stk_status start(stk_fit *f, stk_error *err)
{
    stk_trainer *t = f->t;
    t->trouble = (stk_error){.code = STK_OK};
    if (f->o->checkpoint) STK_TRY(try_place(f->o->checkpoint, err));
    if (!t->last) /* the optimizer's state is made with the first program */
        STK_TRY(stk_check_room(t->model, false, stk_optimizer_slots(stk_step_optimizer(t->maker)),
                               err));
    if (f->o->resume && f->o->checkpoint && access(f->o->checkpoint, F_OK) == 0)
        STK_TRY(stk_trainer_load(t, f->o->checkpoint, err));
    bool resumed = f->o->resume && t->position.loaded;
    f->epoch = resumed ? t->position.epoch : f->o->initial_epoch;
    f->batch = resumed ? t->position.batch : 0;
    t->position.loaded = false;
    if (resumed && f->o->checkpoint) f->saved_epoch = f->epoch, f->saved_batch = f->batch;
    if (!resumed) {
        stk_named_release(&t->best);
        stk_history_release(t->history);
        t->history = NULL;
        stk_free(t->position.data);
        t->position.data = NULL;
    }
    if (!t->history && !(t->history = stk_history_new()))
        return stk_fail_memory(err, "history", 64);
    EACH(f, train_begin, err);
    return resumed ? restore_states(f, err) : STK_OK;
}

static stk_status run(stk_fit *f, stk_error *err)
{
    stk_trainer *t = f->t;
    STK_TRY(start(f, err));
    for (int32_t i = 0; i < f->o->ncallbacks; i++) {
        f->every_step |= f->o->callbacks[i]->batch_end != NULL;
        f->looks |= f->o->callbacks[i]->progress != NULL;
    }
    f->save_at = f->o->checkpoint && f->o->checkpoint_seconds > 0
                     ? after(f, f->o->checkpoint_seconds)
                     : UINT64_MAX;
    while (f->epoch < f->o->epochs && !t->finish) {
        if (__atomic_load_n(&t->stop, __ATOMIC_ACQUIRE)) return stopped(f, err);
        STK_TRY(one_epoch(f, err));
        stk_free(t->position.data); /* was of the epoch that is over */
        t->position.data = NULL;
    }
    STK_TRY(stk_step_finish(t->maker, t->store, err));
    EACH(f, train_end, err);
    if (t->trouble.code)
        return stk_fail(err, t->trouble.code, "%s; the training itself is done",
                        t->trouble.message);
    return STK_OK;
}

/* A device that fails takes what it computed with it: whoever reads that wants to know where to go on from. */
static stk_status tell_checkpoint(const stk_fit *f, stk_status status, stk_error *err)
{
    const char *path = f->o->checkpoint;
    if (status != STK_ERR_DEVICE || !err) return status;
    stk_error why = *err;
    if (!path) return stk_fail(err, status, "%s; no checkpoint was asked for", why.message);
    if (f->saved_epoch < 0)
        return stk_fail(err, status, "%s; %s was not written yet", why.message, path);
    return stk_fail(err, status,
                    "%s; the last checkpoint is %s, after %" PRId64 " epochs and %" PRId64
                    " steps: resume from it",
                    why.message, path, f->saved_epoch, f->saved_batch);
}

/* Once per process: it takes a tenth of a millisecond. */
static double measure_ticks(void)
{
    static int64_t known; /* atomic; whoever comes second measures nearly the same */
    int64_t rate = __atomic_load_n(&known, __ATOMIC_RELAXED);
    if (rate > 0) return (double)rate;
    stk_tick_scale s;
    stk_tick_scale_mark(&s, 0);
    do stk_tick_scale_mark(&s, 1);
    while (s.ns[1] - s.ns[0] < 100000);
    rate = (int64_t)((double)(s.ticks[1] - s.ticks[0]) / (double)(s.ns[1] - s.ns[0]) * 1e9);
    __atomic_store_n(&known, rate, __ATOMIC_RELAXED);
    return (double)rate;
}

stk_status stk_trainer_fit(stk_trainer *t, const stk_train_data *data,
                           const stk_fit_options *options, stk_history **history, stk_error *err)
{
    stk_fit_options o = options ? *options : stk_fit_defaults();
    if (!t) return stk_fail(err, STK_ERR_ARGUMENT, "stk_trainer_fit: the trainer is NULL");
    if (t->fit)
        return stk_fail(err, STK_ERR_STATE, "stk_trainer_fit: this trainer is training already");
    STK_TRY(check_options(&o, data, err));
    stk_fit f = {.t = t, .o = &o, .ticks_per_second = measure_ticks(), .saved_epoch = -1};
    t->fit = &f;
    t->finish = false;
    __atomic_store_n(&t->stop, 0, __ATOMIC_RELEASE);
    stk_books_start(&t->books);
    stk_status status = open_data(&f, data, err);
    if (status == STK_OK) status = run(&f, err);
    status = tell_checkpoint(&f, status, err);
    stk_trace_step_break();
    stk_books_end(&t->books);
    t->fit = NULL;
    t->position.epoch = f.epoch;
    t->position.batch = f.batch;
    stk_batches_close(&f.batches);
    stk_batches_close(&f.validation);
    if (history && (status == STK_OK || status == STK_ERR_CANCELLED || t->trouble.code))
        *history = stk_history_retain(t->history);
    return status;
}
