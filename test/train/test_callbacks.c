/* Callbacks: what they do at which epoch, told by losses that a test makes up. */
#include "train/problem.h"
#include "temporary.h"

#include <unistd.h>

/* A callback in front of the others that says how the training goes: it writes `value` over the loss. */
typedef struct script {
    stk_callback base;
    const double *losses;
    double rates[32];
    int64_t epochs;
} script;

static stk_status play(stk_callback *self, stk_trainer *t, const stk_progress *p, stk_error *err)
{
    script *s = self->context;
    ((double *)(uintptr_t)p->logs.values)[0] = s->losses[p->epoch];
    s->epochs = p->epoch + 1;
    return stk_trainer_rate(t, &s->rates[p->epoch], err);
}

static stk_status fit_script(problem *p, script *s, const double *losses, int64_t epochs,
                             stk_callback *other, stk_error *err)
{
    *s = (script){.base = {.name = "script", .epoch_end = play}, .losses = losses};
    s->base.context = s;
    stk_callback *callbacks[] = {&s->base, other};
    stk_fit_options fit = stk_fit_defaults();
    fit.epochs = epochs;
    fit.callbacks = callbacks;
    fit.ncallbacks = 2;
    return stk_trainer_fit(p->trainer, &p->data, &fit, NULL, err);
}

TEST(early_stopping_waits_and_restores)
{
    problem p;
    stk_error err;
    script s;
    stk_callback *stop = NULL;
    const double losses[] = {5, 4, 3, 3.5, 3.2, 3.1, 1, 1};
    REQUIRE(open_problem(&p, 40));
    stk_monitor_options w = stk_monitor_defaults();
    w.monitor = "loss";
    w.patience = 2;
    CHECK_OK(stk_early_stopping(&w, &stop, &err));
    CHECK_OK(fit_script(&p, &s, losses, 8, stop, &err));
    CHECK_EQ_I64(s.epochs, 5);
    stk_callback_release(stop);
    close_problem(&p);

    /* The weights of epoch 3 come back: those of a run that ends there. */
    problem q;
    REQUIRE(open_problem(&p, 40) && open_problem(&q, 40));
    w.restore_best = true;
    CHECK_OK(stk_early_stopping(&w, &stop, &err));
    CHECK_OK(fit_script(&p, &s, losses, 8, stop, &err));
    stk_fit_options fit = stk_fit_defaults();
    fit.epochs = 3;
    CHECK_OK(stk_trainer_fit(q.trainer, &q.data, &fit, NULL, &err));
    stk_tensor *a = NULL, *b = NULL;
    CHECK_OK(stk_store_get(stk_trainer_store(p.trainer), "dense/kernel", &a, &err));
    CHECK_OK(stk_store_get(stk_trainer_store(q.trainer), "dense/kernel", &b, &err));
    CHECK(!memcmp(a->data, b->data, (size_t)stk_tensor_bytes(a)));
    stk_tensor_release(a);
    stk_tensor_release(b);
    stk_callback_release(stop);
    close_problem(&p), close_problem(&q);
}

TEST(the_rate_goes_down_on_a_plateau)
{
    problem p;
    stk_error err;
    script s;
    stk_callback *reduce = NULL;
    const double losses[] = {5, 4, 4, 4, 4, 4, 4, 4};
    REQUIRE(open_problem(&p, 40));
    stk_monitor_options w = stk_monitor_defaults();
    w.monitor = "loss";
    w.patience = 2;
    w.factor = 0.5;
    w.cooldown = 1;
    w.min_lr = 0.004;
    CHECK_OK(stk_reduce_lr(&w, &reduce, &err));
    CHECK_OK(fit_script(&p, &s, losses, 8, reduce, &err));
    const double rates[] = {.01,  .01,  .01,  .01,
                            .005, .005, .004, .004}; /* seen before the reduction of the epoch */
    for (int i = 0; i < 8; i++) CHECK_NEAR(s.rates[i], rates[i], 1e-8);
    stk_callback_release(reduce);
    w.factor = 1;
    CHECK_FAILS(stk_reduce_lr(&w, &reduce, &err), STK_ERR_RANGE, "factor");
    w.mode = "best";
    CHECK_FAILS(stk_early_stopping(&w, &reduce, &err), STK_ERR_ARGUMENT, "best");
    close_problem(&p);
}

static stk_status refuse(stk_callback *self, stk_trainer *t, const stk_progress *p, stk_error *err)
{
    (void)self, (void)t;
    CHECK_STR(p->logs.names[p->logs.count - 1], "learning_rate");
    err->code = STK_ERR_STATE;
    snprintf(err->message, sizeof err->message, "enough");
    return STK_ERR_STATE;
}

/* The rate stands behind whatever else an epoch has logged, also when an epoch before ended badly. */
TEST(names_of_the_logs_stay_in_place)
{
    problem p;
    stk_error err;
    stk_callback *reduce = NULL, no = {.name = "no", .epoch_end = refuse};
    stk_history *h = NULL;
    REQUIRE(open_problem(&p, 40));
    stk_monitor_options w = stk_monitor_defaults();
    w.monitor = "loss";
    CHECK_OK(stk_reduce_lr(&w, &reduce, &err));
    stk_fit_options fit = stk_fit_defaults();
    fit.callbacks = (stk_callback *[]){reduce, &no};
    fit.ncallbacks = 2;
    CHECK_FAILS(stk_trainer_fit(p.trainer, &p.data, &fit, NULL, &err), STK_ERR_STATE, "enough");
    fit.ncallbacks = 1;
    fit.validation = &p.data;
    CHECK_OK(stk_trainer_fit(p.trainer, &p.data, &fit, &h, &err));
    static const char *const names[] = {"loss", "accuracy", "val_loss", "val_accuracy",
                                        "learning_rate"};
    REQUIRE(CHECK_EQ_I64(stk_history_count(h), 5));
    for (int32_t i = 0; i < 5; i++) CHECK_STR(stk_history_name(h, i), names[i]);
    CHECK_NEAR(stk_history_value(h, "learning_rate", 0), 0.01, 1e-8);
    stk_history_release(h);
    stk_callback_release(reduce);
    close_problem(&p);
}

static double halve(void *context, int64_t epoch, double rate)
{
    ++*(int *)context;
    return epoch ? rate / 2 : rate;
}

TEST(a_rate_for_each_epoch)
{
    problem p;
    stk_error err;
    script s;
    int calls = 0;
    stk_callback *schedule = NULL;
    REQUIRE(open_problem(&p, 40));
    CHECK_OK(stk_lr_scheduler(halve, &calls, &schedule, &err));
    CHECK_OK(fit_script(&p, &s, (double[]){1, 1, 1}, 3, schedule, &err));
    CHECK_EQ_I64(calls, 3);
    CHECK_NEAR(s.rates[2], 0.0025, 1e-9);
    stk_callback_release(schedule);
    close_problem(&p);
}

TEST(what_is_not_logged_cannot_be_watched)
{
    problem p;
    stk_error err;
    script s;
    stk_callback *stop = NULL;
    REQUIRE(open_problem(&p, 40));
    CHECK_OK(stk_early_stopping(NULL, &stop, &err));
    CHECK_FAILS(fit_script(&p, &s, (double[]){1, 1}, 2, stop, &err), STK_ERR_ARGUMENT,
                "'val_loss', which is not logged; there are: loss, accuracy");
    stk_callback_release(stop);
    close_problem(&p);
}

static stk_error check_nan_ends(problem *p, script *s, double *losses, int epochs, const char *says)
{
    stk_error err;
    stk_callback *end = NULL;
    CHECK_OK(stk_terminate_on_nan(&end, &err));
    CHECK_FAILS(fit_script(p, s, losses, epochs, end, &err), STK_ERR_RANGE, says);
    stk_callback_release(end);
    return err;
}

TEST(nan_ends_the_training)
{
    problem p;
    script s;
    REQUIRE(open_problem(&p, 40));
    stk_error err = check_nan_ends(&p, &s, (double[]){1, NAN, 1}, 3, "NaN after step 2 of epoch 2");
    CHECK_EQ_I64(s.epochs, 2);
    CHECK_CONTAINS(err.message, "try a smaller learning rate");
    close_problem(&p);
}

TEST(nan_names_what_is_wrong_with_the_data)
{
    problem p;
    script s;
    REQUIRE(open_problem(&p, 40));
    ((float *)p.x->data)[7 * (stk_tensor_count(p.x) / 40)] = INFINITY;
    check_nan_ends(&p, &s, (double[]){NAN}, 1,
                   "(x 0 has a number that is not finite in row 7; correct it)");
    close_problem(&p);
}

/* ---- NaN in a dataset: its batches are gone when it is seen, and are made once more ------------------------------- */

static stk_dataset *shuffled_batches(const problem *p)
{
    stk_error err;
    stk_dataset *ds = stk_data_slices(2, (stk_tensor *[]){p->x, p->y}, NULL, NULL, &err);
    return stk_data_batch(stk_data_shuffle(ds, STK_SHUFFLE_ALL, 5, true, &err), 8, false, &err);
}

/* Where the first NaN of x is in the first epoch. */
static void find_nan(stk_dataset *ds, int64_t *batch, int64_t *row)
{
    stk_error err;
    stk_stream *s = NULL;
    stk_tensor *parts[2];
    *batch = *row = -1;
    if (!CHECK_OK(stk_dataset_stream(ds, NULL, &s, &err))) return;
    bool end = false;
    for (int64_t at = 1; CHECK_OK(stk_stream_next(s, parts, &end, &err)) && !end; at++) {
        for (int64_t i = 0; *batch < 0 && i < stk_tensor_count(parts[0]); i++)
            if (isnan(stk_tensor_at(parts[0], i))) *batch = at, *row = i / parts[0]->shape[1];
        for (int k = 0; k < 2; k++) stk_tensor_release(parts[k]);
    }
    stk_stream_release(s);
}

static stk_status nap(stk_callback *self, stk_trainer *t, const stk_progress *p, stk_error *err)
{
    (void)self, (void)t, (void)p, (void)err;
    usleep(60000); /* so that progress is told before the epoch ends */
    return STK_OK;
}

static stk_error fit_until_nan(problem *p, stk_dataset *ds, stk_callback *first)
{
    stk_error err = {.code = STK_OK};
    stk_callback *callbacks[2] = {NULL, first};
    stk_fit_options fit = stk_fit_defaults();
    CHECK_OK(stk_terminate_on_nan(&callbacks[0], &err));
    fit.callbacks = callbacks;
    fit.ncallbacks = first ? 2 : 1;
    CHECK_FAILS(stk_trainer_fit(p->trainer, &(stk_train_data){.dataset = ds}, &fit, NULL, &err),
                STK_ERR_RANGE, "the loss is NaN after step ");
    stk_callback_release(callbacks[0]);
    return err;
}

TEST(nan_in_a_dataset_is_found_again)
{
    problem p;
    int64_t batch, row;
    char says[128];
    REQUIRE(open_problem(&p, 40));
    for (int64_t i = 0; i < 40; i += 39) ((float *)p.x->data)[i * 8 + 3] = NAN;
    stk_dataset *ds = shuffled_batches(&p);
    find_nan(ds, &batch, &row);
    snprintf(says, sizeof says,
             "(x 0 of batch %d has a number that is not finite in row %d; correct it)", (int)batch,
             (int)row);
    stk_error err = fit_until_nan(&p, ds, NULL);
    CHECK_CONTAINS(err.message, says);
    stk_dataset_release(ds);
    close_problem(&p);
}

/* The message says between which steps it happened. */
TEST(nan_was_not_there_before)
{
    problem p;
    stk_error err;
    REQUIRE(open_problem(&p, 64));
    ((float *)p.x->data)[60 * 8] = NAN; /* in the last batch of eight */
    stk_dataset *ds = stk_data_slices(2, (stk_tensor *[]){p.x, p.y}, NULL, NULL, &err);
    ds = stk_data_batch(ds, 8, false, &err);
    stk_callback slow = {.name = "slow", .batch_end = nap};
    err = fit_until_nan(&p, ds, &slow);
    CHECK_CONTAINS(err.message, "after step 8 of epoch 1, after step ");
    CHECK_CONTAINS(err.message, " it was not; training ends here (x 0 of batch 8 has a number that "
                                "is not finite in row 4; correct it)");
    stk_dataset_release(ds);
    close_problem(&p);
}

/* Rows of the problem, batches of 8; every walk is counted. */
static problem *generated;
static int walks;
static stk_status walk_open(void *context, void **walk, stk_error *err)
{
    static int64_t at;
    (void)context, (void)err;
    walks++;
    at = 0;
    *walk = &at;
    return STK_OK;
}
static stk_status walk_next(void *context, void *walk, stk_tensor **parts, bool *end,
                            stk_error *err)
{
    (void)context;
    int64_t *at = walk, first[] = {*at, 0};
    *end = *at >= generated->x->shape[0];
    if (*end) return STK_OK;
    *at += 8;
    stk_status status = stk_tensor_slice(generated->x, first, (int64_t[]){8, 8}, &parts[0], err);
    if (status == STK_OK)
        status = stk_tensor_slice(generated->y, first, (int64_t[]){8}, &parts[1], err);
    return status;
}

/* A generator is walked again only when it says that this gives the same. */
TEST(nan_of_a_generator)
{
    problem p;
    static const stk_field fields[] = {{.dtype = STK_F32, .rank = 2, .shape = {8, 8}},
                                       {.dtype = STK_I32, .rank = 1, .shape = {8}}};
    static const stk_schema schema = {2, fields, "(0,1)"};
    for (uint32_t flags = 0; flags <= STK_MAP_PURE; flags += STK_MAP_PURE) {
        REQUIRE(open_problem(&p, 40));
        generated = &p;
        walks = 0;
        ((float *)p.x->data)[17 * 8] = NAN;
        stk_generator g = {.name = "rows",
                           .output = &schema,
                           .open = walk_open,
                           .next = walk_next,
                           .cardinality = STK_UNKNOWN,
                           .flags = flags};
        stk_dataset *ds = stk_data_generator(&g, NULL);
        stk_error err = fit_until_nan(&p, ds, NULL);
        CHECK_CONTAINS(err.message, flags ? "(x 0 of batch 3 " : "(try a smaller learning rate");
        CHECK_EQ_I64(walks, flags ? 2 : 1);
        stk_dataset_release(ds);
        close_problem(&p);
    }
}

static void read_text(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "r");
    size_t n = f ? fread(text, 1, size - 1, f) : 0;
    text[n] = 0;
    if (f) fclose(f);
}

TEST(the_log_has_a_line_per_epoch)
{
    problem p;
    stk_error err;
    script s;
    stk_callback *log = NULL;
    char text[1024], path[300];
    snprintf(path, sizeof path, "%s", temporary("log.csv"));
    REQUIRE(open_problem(&p, 40));
    CHECK_OK(stk_csv_logger(path, false, &log, &err));
    CHECK_OK(fit_script(&p, &s, (double[]){0.5, 0.25}, 2, log, &err));
    stk_callback_release(log);
    read_text(path, text, sizeof text);
    CHECK(!strncmp(text, "epoch,loss,accuracy\n0,0.5,", 26) && strstr(text, "\n1,0.25,"));
    /* Going on at epoch 1: that line is written anew, the one before stays. */
    CHECK_OK(stk_csv_logger(path, true, &log, &err));
    stk_callback *callbacks[] = {log};
    stk_fit_options fit = stk_fit_defaults();
    fit.initial_epoch = 1;
    fit.epochs = 2;
    fit.callbacks = callbacks;
    fit.ncallbacks = 1;
    CHECK_OK(stk_trainer_fit(p.trainer, &p.data, &fit, NULL, &err));
    stk_callback_release(log);
    read_text(path, text, sizeof text);
    CHECK(strstr(text, "\n0,0.5,") && !strstr(text, "0.25") && strstr(text, "\n1,"));
    int lines = 0;
    for (char *c = text; *c; c++) lines += *c == '\n';
    CHECK_EQ_I64(lines, 3);
    CHECK_OK(stk_csv_logger(temporary("no/such"), false, &log, &err));
    CHECK_FAILS(fit_script(&p, &s, (double[]){1}, 1, log, &err), STK_ERR_IO, "no/such");
    stk_callback_release(log);
    close_problem(&p);
}

TEST(weights_of_the_best_epoch_are_written)
{
    problem p;
    stk_error err;
    script s;
    stk_callback *keep = NULL;
    char path[300];
    snprintf(path, sizeof path, "%s", temporary("best{epoch}.safetensors"));
    REQUIRE(open_problem(&p, 40));
    stk_monitor_options w = stk_monitor_defaults();
    w.monitor = "loss";
    CHECK_OK(stk_model_checkpoint(path, true, &w, &keep, &err));
    CHECK_OK(fit_script(&p, &s, (double[]){3, 4, 2, 5}, 4, keep, &err));
    CHECK(access(temporary("best1.safetensors"), R_OK) == 0 &&
          access(temporary("best3.safetensors"), R_OK) == 0);
    CHECK(access(temporary("best2.safetensors"), R_OK) != 0 &&
          access(temporary("best4.safetensors"), R_OK) != 0);
    stk_callback_release(keep);
    close_problem(&p);
}

typedef struct stopper {
    stk_callback base;
    int64_t after, steps;
} stopper;

static stk_status count_step(stk_callback *self, stk_trainer *t, const stk_progress *p,
                             stk_error *err)
{
    stopper *s = self->context;
    (void)err;
    if (p->step == s->after && p->epoch == 1) stk_trainer_stop(t);
    s->steps++;
    return STK_OK;
}

/* Stopped in the middle of an epoch, and gone on by another trainer: the same bits as without the stop. */
TEST(a_stopped_run_goes_on_as_if_nothing_had_happened)
{
    problem a, b, c;
    stk_error err;
    char path[300];
    snprintf(path, sizeof path, "%s", temporary("stop.ckpt"));
    REQUIRE(open_problem(&a, 200) && open_problem(&b, 200) && open_problem(&c, 200));
    stopper s = {.base = {.name = "stopper", .batch_end = count_step}, .after = 3};
    s.base.context = &s;
    stk_callback *callbacks[] = {&s.base};
    stk_fit_options fit = stk_fit_defaults();
    fit.epochs = 4;
    fit.validation_split = 0.1;
    stk_history *whole = NULL, *part = NULL;
    CHECK_OK(stk_trainer_fit(a.trainer, &a.data, &fit, &whole, &err));
    fit.checkpoint = path;
    fit.callbacks = callbacks;
    fit.ncallbacks = 1;
    CHECK_FAILS(stk_trainer_fit(b.trainer, &b.data, &fit, NULL, &err), STK_ERR_CANCELLED,
                "epoch 2 of 4");
    CHECK(s.steps >= 6 + 3);
    fit.resume = true;
    fit.ncallbacks = 0;
    CHECK_OK(stk_trainer_fit(c.trainer, &c.data, &fit, &part, &err));
    CHECK(same_stores(stk_trainer_store(a.trainer), stk_trainer_store(c.trainer)));
    CHECK_EQ_I64(stk_history_rows(part), 4);
    for (int64_t i = 0; i < 4; i++) {
        CHECK_NEAR(stk_history_value(part, "loss", i), stk_history_value(whole, "loss", i), 0);
        CHECK_NEAR(stk_history_value(part, "val_loss", i), stk_history_value(whole, "val_loss", i),
                   0);
    }
    fit.batch = 16; /* everything is done: nothing to do, whatever the batch */
    CHECK_OK(stk_trainer_fit(c.trainer, &c.data, &fit, NULL, &err));
    stk_history_release(whole);
    stk_history_release(part);
    close_problem(&a), close_problem(&b), close_problem(&c);
}

TEST_MAIN()
