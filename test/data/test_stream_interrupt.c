/* Consumers that are called away while they wait: nothing hangs, nothing is lost. */
#include "check.h"
#include "pipelines.h"

#include <pthread.h>
#include <unistd.h>

typedef struct gate {
    pthread_mutex_t lock;
    pthread_cond_t opens;
    bool open;
} gate;

static gate the_gate = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false};

static void set_gate(bool open)
{
    pthread_mutex_lock(&the_gate.lock);
    the_gate.open = open;
    pthread_cond_broadcast(&the_gate.opens);
    pthread_mutex_unlock(&the_gate.lock);
}

static pthread_t consumer;

/* Others than the consumer wait until the gate opens; the consumer is slow, so that there are others. */
static stk_status slow(void *context, const stk_map_info *info, stk_tensor *const *in,
                       stk_tensor **out, stk_error *err)
{
    (void)context;
    (void)info;
    if (pthread_equal(pthread_self(), consumer)) {
        usleep(20000);
    } else {
        pthread_mutex_lock(&the_gate.lock);
        while (!the_gate.open) pthread_cond_wait(&the_gate.opens, &the_gate.lock);
        pthread_mutex_unlock(&the_gate.lock);
    }
    if (out[0]) return stk_tensor_copy(out[0], in[0], err);
    out[0] = stk_tensor_retain(in[0]);
    return STK_OK;
}
static const stk_map_fn slow_fn = {.name = "slow", .call = slow};

static bool always(void *context)
{
    ++*(int *)context;
    return true;
}

static stk_status walk(stk_stream *s, int64_t *sum, stk_error *err)
{
    for (bool end = false; !end;) {
        stk_tensor *part = NULL;
        stk_status status = stk_stream_next(s, &part, &end, err);
        if (status != STK_OK) return status;
        if (!end) *sum += (int64_t)stk_tensor_at(part, 0);
        stk_tensor_release(part);
    }
    return STK_OK;
}

static void interrupted_and_continued(stk_dataset *ds)
{
    stk_error err;
    int asked = 0;
    int64_t sum = 0;
    stk_stream *s = NULL;
    stk_stream_options o = stk_stream_options_defaults();
    o.threads = 3;
    o.interrupt = always;
    o.interrupt_context = &asked;
    set_gate(false);
    consumer = pthread_self();
    CHECK_OK(stk_dataset_stream(ds, &o, &s, &err));
    CHECK(walk(s, &sum, &err) == STK_ERR_CANCELLED);
    CHECK(asked > 0);
    CHECK_CONTAINS(err.message, "interrupted");
    set_gate(true);
    CHECK_OK(walk(s, &sum, &err));
    CHECK_EQ_I64(sum, 45);
    stk_stream_release(s);
    stk_dataset_release(ds);
}

TEST(parallel_map_by_number)
{
    stk_error err;
    stk_map_options parallel = stk_map_options_defaults();
    parallel.parallel = 3;
    stk_dataset *ds = stk_data_range(0, 10, 1, &err);
    interrupted_and_continued(stk_data_map(ds, &slow_fn, &parallel, &err));
}

TEST(prefetch_in_order)
{
    stk_error err;
    stk_map_options serial = stk_map_options_defaults();
    serial.parallel = 1;
    stk_dataset *ds = stk_data_ignore_errors(stk_data_range(0, 10, 1, &err), &err);
    ds = stk_data_map(ds, &slow_fn, &serial, &err);
    interrupted_and_continued(stk_data_prefetch(ds, 2, &err));
}

/* Work without end on the caller's own thread. */
static stk_status never(void *context, const stk_map_info *info, stk_tensor *const *in,
                        stk_tensor **out, stk_error *err)
{
    (void)context;
    (void)info;
    (void)in;
    if (!out[0]) return stk_tensor_scalar(STK_BOOL, 0, &out[0], err);
    return stk_tensor_set(out[0], 0, 0, err);
}
static const stk_map_fn never_fn = {.name = "never", .call = never};

TEST(filter_that_keeps_nothing)
{
    stk_error err;
    int asked = 0;
    int64_t sum = 0;
    stk_stream *s = NULL;
    stk_stream_options o = stk_stream_options_defaults();
    o.threads = 1;
    o.interrupt = always;
    o.interrupt_context = &asked;
    stk_dataset *ds = stk_data_repeat(stk_data_range(0, 9, 1, &err), STK_INFINITE, &err);
    ds = stk_data_filter(ds, &never_fn, &err);
    CHECK_OK(stk_dataset_stream(ds, &o, &s, &err));
    CHECK(walk(s, &sum, &err) == STK_ERR_CANCELLED);
    CHECK_EQ_I64(sum, 0);
    stk_stream_release(s);
    stk_dataset_release(ds);
}

TEST_MAIN()
