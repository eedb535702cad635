/* The selftest finds nothing wrong here, and looks at every kernel. */
#include "check.h"

#include "device/cpu/vec/vec.h"
#include "device/kernels.h"
#include "stoker/selftest.h"

static stk_selftest_report *run(const char *only, const char *set)
{
    stk_error err;
    stk_selftest_options options = stk_selftest_options_defaults();
    stk_selftest_report *report = NULL;
    options.only = only;
    options.set = set;
    CHECK_OK(stk_selftest_run(&options, &report, &err));
    return report;
}

TEST(every_kernel_is_looked_at_and_right)
{
    stk_selftest_report *r = run(NULL, NULL);
    REQUIRE(CHECK(r != NULL));
    CHECK_EQ_I64(r->failures, 0);
    for (int32_t i = 0; i < r->nrows; i++)
        CHECK_MSG(r->rows[i].failures == 0, "%s:%s with %s: %s", r->rows[i].kernel,
                  r->rows[i].implementation, r->rows[i].set, r->rows[i].where);
    for (int32_t k = 0; k < STK_KERNEL_COUNT; k++) {
        int64_t cases = 0;
        /* One is a function of the caller; the other is made by hand only, no operation leads to it. */
        if (k == STK_K_HOST || k == STK_K_FILL) continue;
        for (int32_t i = 0; i < r->nrows; i++)
            if (!strcmp(r->rows[i].kernel, stk_kernel_name((stk_kernel)k)))
                cases += r->rows[i].cases;
        CHECK_MSG(cases > 0, "no case has the kernel %s", stk_kernel_name((stk_kernel)k));
    }
    for (int32_t i = 0; i < r->nsets; i++)
        if (!r->sets[i].ran)
            printf("NOT RUN: %s, which this %s\n", r->sets[i].name,
                   r->sets[i].built ? "processor has not got" : "build has not got");
    stk_selftest_release(r);
}

TEST(one_kernel_and_one_set)
{
    const stk_vec *before = stk_vec_get();
    stk_selftest_report *r = run("softmax", "base");
    REQUIRE(CHECK(r != NULL));
    CHECK(r->nrows > 0 && r->cases > 0);
    for (int32_t i = 0; i < r->nrows; i++)
        CHECK_MSG(strstr(r->rows[i].kernel, "softmax") && !strcmp(r->rows[i].set, "base"),
                  "%s with %s", r->rows[i].kernel, r->rows[i].set);
    stk_selftest_release(r);
    CHECK(stk_vec_get() == before);
    r = run("no such kernel", NULL);
    CHECK(r && r->cases == 0 && r->nrows == 0);
    stk_selftest_release(r);
}

TEST_MAIN()
