/* A run that is killed at any moment, again and again, ends with the same bits as one that never was. */
#include "train/problem.h"
#include "temporary.h"

#include "base/clock.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#define NET                                                                                        \
    "Input(shape=(8,))\nDense(16, activation=relu)\nDropout(0.2)\nBatchNormalization()\nDense(4, " \
    "activation=softmax)"

enum { EPOCHS = 8, ROWS = 700, KILLS = INSTRUMENTED ? 15 : 50 };

static bool train(const char *path, bool from_dataset, stk_tensor **kernel, int64_t *steps)
{
    problem p;
    stk_error err;
    stk_trainer_options how = usual_options();
    how.threads = 1; /* many processes at once */
    if (!open_problem_with(&p, NET, &how, ROWS)) return false;
    stk_callback *stop = NULL;
    stk_monitor_options w = stk_monitor_defaults();
    w.monitor = "loss";
    w.patience = 100;
    w.restore_best = true;
    bool good = CHECK_OK(stk_early_stopping(&w, &stop, &err));
    stk_fit_options fit = stk_fit_defaults();
    fit.epochs = EPOCHS;
    fit.batch = 16;
    fit.callbacks = &stop;
    fit.ncallbacks = 1;
    fit.checkpoint = path;
    fit.checkpoint_seconds = path ? 1e-3 : 0;
    fit.resume = true;
    stk_dataset *ds = NULL;
    if (from_dataset) {
        ds = stk_data_slices(2, (stk_tensor *[]){p.x, p.y}, NULL, NULL, &err);
        ds = stk_data_batch(ds, 16, false, &err);
        good &= CHECK(ds != NULL);
        p.data = (stk_train_data){.dataset = ds};
    }
    good = good && CHECK_OK(stk_trainer_fit(p.trainer, &p.data, &fit, NULL, &err));
    *steps = stk_trainer_step(p.trainer);
    good =
        good && CHECK_OK(stk_store_get(stk_trainer_store(p.trainer), "dense/kernel", kernel, &err));
    stk_dataset_release(ds);
    stk_callback_release(stop);
    close_problem(&p);
    return good;
}

/* Trains in a process of its own that is killed after `ns`; false when it was done before that. */
static bool killed_after(const char *path, bool from_dataset, int64_t ns)
{
    fflush(stdout);
    pid_t child = fork();
    if (!CHECK(child >= 0)) return false;
    if (child == 0) {
        stk_tensor *kernel = NULL;
        int64_t steps = 0;
        _exit(train(path, from_dataset, &kernel, &steps) ? 0 : 1);
    }
    int status = 0;
    nanosleep(&(struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}, NULL);
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return WIFSIGNALED(status);
}

/* Goes on from the file to the end and compares with the run that nobody disturbed. */
static bool ends_like(const char *path, bool from_dataset, const stk_tensor *whole, int64_t steps)
{
    stk_tensor *resumed = NULL;
    int64_t again = 0;
    bool good = train(path, from_dataset, &resumed, &again) && CHECK_EQ_I64(again, steps) &&
                CHECK(!memcmp(whole->data, resumed->data, (size_t)stk_tensor_bytes(whole)));
    stk_tensor_release(resumed);
    return good;
}

/* Moments are shares of what a run takes here, so that a fast machine is caught in the act as well. A run that got through
 * between two kills is compared and begun anew. */
static void kill_and_compare(const char *name, bool from_dataset)
{
    stk_tensor *whole = NULL;
    int64_t steps = 0;
    char path[300];
    snprintf(path, sizeof path, "%s", temporary(name));
    REQUIRE(train(NULL, from_dataset, &whole, &steps));
    int64_t began = stk_now_ns();
    REQUIRE(ends_like(path, from_dataset, whole, steps));
    int64_t takes = stk_now_ns() - began;
    unlink(path);
    int killed = 0;
    for (int i = 0; i < 20 * KILLS && killed < KILLS; i++) {
        uint32_t word;
        stk_rng_words((stk_rng){5, 0}, i, 1, &word);
        if (killed_after(path, from_dataset, (int64_t)((double)takes * word * 0x1p-32))) {
            killed++;
        } else {
            REQUIRE(ends_like(path, from_dataset, whole, steps));
            unlink(path);
        }
    }
    CHECK_EQ_I64(killed, KILLS);
    CHECK(ends_like(path, from_dataset, whole, steps));
    stk_tensor_release(whole);
}

TEST(killed_fifty_times_over_arrays) { kill_and_compare("arrays.ckpt", false); }

TEST(killed_fifty_times_over_a_dataset) { kill_and_compare("dataset.ckpt", true); }

TEST_MAIN()
