/* oneDNN as we open it: found or not, never with threads of its own, errors in our words. */
#include "check.h"

#include "device/cpu/onednn.h"

#if STK_HAVE_ONEDNN

#include <pthread.h>

TEST(answers_the_same_for_ever)
{
    const stk_onednn *dnn = stk_onednn_get();
    CHECK(dnn == stk_onednn_get());
    if (!dnn) return;
    CHECK(dnn->major == 2 || dnn->major == 3);
    CHECK(dnn->dnnl_sgemm != NULL);
    if (dnn->primitives) CHECK(dnn->dnnl_primitive_execute != NULL);
}

TEST(statuses_become_ours)
{
    stk_error err;
    CHECK_OK(stk_onednn_status(dnnl_success, "dnnl_sgemm", &err));
    CHECK_FAILS(stk_onednn_status(dnnl_out_of_memory, "dnnl_sgemm", &err), STK_ERR_MEMORY,
                "dnnl_sgemm");
    CHECK_FAILS(stk_onednn_status(dnnl_unimplemented, "dnnl_x", &err), STK_ERR_UNSUPPORTED,
                "another kernel");
    CHECK_FAILS(stk_onednn_status(dnnl_invalid_arguments, "dnnl_x", &err), STK_ERR_INTERNAL,
                "dnnl_x");
    CHECK_FAILS(stk_onednn_status(dnnl_runtime_error, "dnnl_x", &err), STK_ERR_DEVICE, "status 5");
}

static void *own_stream(void *out)
{
    stk_error err;
    dnnl_stream_t first = NULL, again = NULL;
    CHECK_OK(stk_onednn_stream(&first, &err));
    CHECK_OK(stk_onednn_stream(&again, &err));
    CHECK(first != NULL && first == again);
    *(dnnl_stream_t *)out = first;
    return NULL;
}

TEST(one_engine_and_a_stream_per_thread)
{
    stk_error err;
    dnnl_engine_t engine = NULL, same = NULL;
    dnnl_stream_t here = NULL, there = NULL;
    pthread_t thread;
    if (!stk_onednn_get()) {
        CHECK_FAILS(stk_onednn_engine(&engine, &err), STK_ERR_UNSUPPORTED, "libdnnl");
        return;
    }
    CHECK_OK(stk_onednn_engine(&engine, &err));
    CHECK_OK(stk_onednn_engine(&same, &err));
    CHECK(engine != NULL && engine == same);
    own_stream(&here);
    REQUIRE(CHECK(!pthread_create(&thread, NULL, own_stream, &there)));
    pthread_join(thread, NULL);
    CHECK(here != there);
}

TEST(leaves_the_threads_setting_of_the_caller)
{
    const stk_onednn *dnn = stk_onednn_get();
    if (!dnn || !dnn->omp_set_num_threads) return;
    dnn->omp_set_num_threads(3);
    int was = stk_onednn_enter(dnn);
    CHECK_EQ_I64(dnn->omp_get_max_threads(), 1);
    stk_onednn_leave(dnn, was);
    CHECK_EQ_I64(dnn->omp_get_max_threads(), 3);
}

#else

#include "device/cpu/cpu.h"

TEST(no_kernel_of_it_is_offered_when_it_was_not_built_in)
{
    stk_error err;
    stk_device *device = NULL;
    int32_t n = 0;
    CHECK_OK(stk_device_open("cpu:0", 1, &device, &err));
    for (int kernel = 0; kernel < STK_KERNEL_COUNT; kernel++) {
        const stk_impl *const *list =
            stk_cpu_impls((const stk_cpu *)device, (stk_kernel)kernel, &n);
        CHECK(n > 0);
        for (int32_t i = 0; i < n; i++) CHECK(!strstr(list[i]->name, "onednn"));
    }
    stk_device_release(device);
}

#endif

TEST_MAIN()
