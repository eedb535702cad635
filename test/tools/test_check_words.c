/* The words of check.h have to be able to fail: each is made to fail once, and counted. */
#include "check.h"

static int expected_failures; /* checks below that have to fail */
#define EXPECT_FAILURE(check)                                                                      \
    do {                                                                                           \
        expected_failures++;                                                                       \
        if (check) {                                                                               \
            fprintf(stderr, "%s:%d: held, but must not: %s\n", __FILE__, __LINE__, #check);        \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static stk_status refuse(stk_error *err, stk_status code, const char *text)
{
    if (err) snprintf(err->message, sizeof err->message, "%s", text);
    return code;
}

TEST(values_that_differ)
{
    const float numbers[3] = {1, NAN, 3}, others[3] = {1, 2, 3};
    EXPECT_FAILURE(CHECK(1 > 2));
    EXPECT_FAILURE(CHECK_EQ_I64(1, 2));
    EXPECT_FAILURE(CHECK_NEAR(1.0, 1.1, 0.01));
    EXPECT_FAILURE(CHECK_NEAR(NAN, 1.0, 1e9));
    EXPECT_FAILURE(CHECK_NEAR(INFINITY, 1.0, 1e9));
    EXPECT_FAILURE(CHECK_NEAR_F32(numbers, others, 3, 1, 1));
    EXPECT_FAILURE(CHECK_STR("a", "b"));
    EXPECT_FAILURE(CHECK_STR(NULL, "b"));
    EXPECT_FAILURE(CHECK_CONTAINS("abc", "d"));
    EXPECT_FAILURE(CHECK_CONTAINS(NULL, "d"));
}

TEST(statuses_that_differ)
{
    stk_error err;
    EXPECT_FAILURE(CHECK_OK(refuse(&err, STK_ERR_IO, "no such file")));
    EXPECT_FAILURE(CHECK_STATUS(refuse(NULL, STK_ERR_IO, ""), STK_ERR_SHAPE));
    EXPECT_FAILURE(CHECK_FAILS(refuse(&err, STK_ERR_IO, "x"), STK_ERR_SHAPE, "x"));
    EXPECT_FAILURE(CHECK_FAILS(refuse(&err, STK_ERR_IO, "x"), STK_ERR_IO, "y"));
    EXPECT_FAILURE(CHECK_FAILS(STK_OK, STK_ERR_IO, ""));
}

TEST(values_that_agree)
{
    stk_error err;
    const float numbers[3] = {1, NAN, INFINITY};
    CHECK_NEAR(NAN, NAN, 0);
    CHECK_NEAR(INFINITY, INFINITY, 0);
    CHECK_NEAR_F32(numbers, numbers, 3, 0, 0);
    CHECK_STR(NULL, NULL);
    CHECK_OK(refuse(&err, STK_OK, ""));
    CHECK_FAILS(refuse(&err, STK_ERR_IO, "no such file"), STK_ERR_IO, "such");
}

static void *lost[64]; /* what the leaking call left behind, so that this program leaks nothing */
static int lost_count;

/* Takes two blocks; forgets the first when it cannot have the second. */
static stk_status leaks_when_refused(void)
{
    void *first = stk_malloc(8);
    if (!first) return STK_ERR_MEMORY;
    void *second = stk_malloc(8);
    if (!second) {
        lost[lost_count++] = first;
        return STK_ERR_MEMORY;
    }
    stk_free(first);
    stk_free(second);
    return STK_OK;
}

static stk_status gives_the_wrong_reason(void)
{
    void *block = stk_malloc(8);
    stk_free(block);
    return block ? STK_OK : STK_ERR_INTERNAL;
}

static stk_status does_without(void)
{
    stk_free(stk_malloc(8));
    return STK_OK;
}

TEST(memory_that_is_refused)
{
    int before = check_failures;
    OOM_LOOP(leaks_when_refused());
    CHECK_EQ_I64(check_failures - before, 2); /* once for a single refusal, once for lasting ones */
    expected_failures += 2;
    before = check_failures;
    OOM_LOOP(gives_the_wrong_reason());
    CHECK_EQ_I64(check_failures - before, 2);
    expected_failures += 2;
    OOM_LOOP(does_without());
    while (lost_count) stk_free(lost[--lost_count]);
}

TEST(required)
{
    expected_failures++;
    REQUIRE(CHECK(1 > 2));
    expected_failures = -1000; /* never reached */
}

int main(int argc, char **argv)
{
    int verdict = check_run(argc, argv);
    return verdict == 1 && check_failures == expected_failures ? 0 : 1;
}
