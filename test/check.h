/* check.h - the words tests are written in. One test file is one program:
 *
 *     #include "check.h"
 *
 *     TEST(vectors_are_made)
 *     {
 *         stk_error err;
 *         stk_tensor *t = NULL;
 *         CHECK_OK(stk_tensor_new(STK_F32, 1, (int64_t[]){3}, &t, &err));
 *         CHECK_EQ_I64(stk_tensor_count(t), 3);
 *         CHECK_NEAR(stk_tensor_at(t, 0), 0.0, 1e-9);
 *         stk_tensor_release(t);
 *         CHECK_FAILS(stk_tensor_new(STK_F32, -1, NULL, &t, &err), STK_ERR_SHAPE, "rank");
 *     }
 *
 *     TEST_MAIN()
 *
 * A failing check prints file:line with both values and the test goes on; the exit code of the
 * program is the verdict. REQUIRE leaves the function when going on makes no sense. Checks work in
 * helper functions too. A program given arguments runs only the tests whose names contain one. */
#ifndef STK_TEST_CHECK_H
#define STK_TEST_CHECK_H

#include "base/memory.h"
#include "stoker/status.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A sanitizer looks at memory and threads, several times slower: there, tests that only compare numbers may take
 * fewer of them. The plain run takes all. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { INSTRUMENTED = 1 };
#else
enum { INSTRUMENTED = 0 };
#endif

typedef struct check_test {
    const char *name;
    void (*run)(void);
    struct check_test *next;
} check_test;

static check_test *check_first;
static check_test **check_end __attribute__((unused)) = &check_first; /* a bench has no tests */
static atomic_int check_failures; /* of the whole program; worker threads may check as well */

/* Tests enter the list in file order, before main. */
#define TEST(title)                                                                                \
    static void test_##title(void);                                                                \
    static check_test check_entry_##title = {#title, test_##title, NULL};                          \
    __attribute__((constructor)) static void check_enter_##title(void)                             \
    {                                                                                              \
        *check_end = &check_entry_##title;                                                         \
        check_end = &check_entry_##title.next;                                                     \
    }                                                                                              \
    static void test_##title(void)

#define TEST_MAIN()                                                                                \
    int main(int argc, char **argv) { return check_run(argc, argv); }

static inline bool check_wanted(const char *name, int argc, char **argv)
{
    if (argc < 2) return true;
    for (int i = 1; i < argc; i++)
        if (strstr(name, argv[i])) return true;
    return false;
}

static inline int check_run(int argc, char **argv)
{
    int ran = 0, failed = 0;
    for (check_test *test = check_first; test; test = test->next) {
        if (!check_wanted(test->name, argc, argv)) continue;
        int before = check_failures;
        test->run();
        stk_alloc_fail_at(0, false);
        ran++;
        if (check_failures != before) {
            failed++;
            printf("FAILED %s\n", test->name);
        }
    }
    printf("%d tests, %d failed, %d failed checks\n", ran, failed, (int)check_failures);
    return failed != 0 || ran == 0;
}

static inline bool check_report(bool good, const char *file, int line, const char *format, ...)
    STK_PRINTF(4, 5);
static inline bool check_report(bool good, const char *file, int line, const char *format, ...)
{
    if (good) return true;
    if (atomic_fetch_add(&check_failures, 1) < 200) { /* the first ones tell, the rest would bury */
        va_list args;
        va_start(args, format);
        flockfile(stdout);
        printf("%s:%d: ", file, line);
        vprintf(format, args);
        printf("\n");
        fflush(stdout);
        funlockfile(stdout);
        va_end(args);
    }
    return false;
}

/* Each check is an expression: true when it held. */
#define CHECK(condition)                                                                           \
    check_report((condition) ? true : false, __FILE__, __LINE__, "not true: %s", #condition)
#define CHECK_MSG(condition, ...)                                                                  \
    check_report((condition) ? true : false, __FILE__, __LINE__, __VA_ARGS__)
#define REQUIRE(check)                                                                             \
    do {                                                                                           \
        if (!(check)) return;                                                                      \
    } while (0)

#define CHECK_EQ_I64(actual, expected)                                                             \
    check_i64((int64_t)(actual), (int64_t)(expected), #actual, __FILE__, __LINE__)
static inline bool check_i64(int64_t actual, int64_t expected, const char *text, const char *file,
                             int line)
{
    return check_report(actual == expected, file, line, "%s is %" PRId64 ", expected %" PRId64,
                        text, actual, expected);
}

/* |actual - expected| <= tolerance; two NaN are near, and so are two equal infinities. */
#define CHECK_NEAR(actual, expected, tolerance)                                                    \
    check_near((double)(actual), (double)(expected), (double)(tolerance), #actual, __FILE__,       \
               __LINE__)
static inline bool check_near(double actual, double expected, double tolerance, const char *text,
                              const char *file, int line)
{
    bool near = actual == expected || (isnan(actual) && isnan(expected)) ||
                fabs(actual - expected) <= tolerance;
    return check_report(near, file, line, "%s is %.9g, expected %.9g within %g (off by %g)", text,
                        actual, expected, tolerance, actual - expected);
}

/* Arrays of float: tolerance + relative * |expected| for each element; names the worst one. */
#define CHECK_NEAR_F32(actual, expected, count, tolerance, relative)                               \
    check_near_f32((actual), (expected), (int64_t)(count), (double)(tolerance),                    \
                   (double)(relative), #actual, __FILE__, __LINE__)
static inline bool check_near_f32(const float *actual, const float *expected, int64_t count,
                                  double tolerance, double relative, const char *text,
                                  const char *file, int line)
{
    int64_t worst = -1, bad = 0;
    double worst_excess = 0;
    for (int64_t i = 0; i < count; i++) {
        double a = (double)actual[i], e = (double)expected[i];
        if (a == e || (isnan(a) && isnan(e))) continue;
        double excess = fabs(a - e) - (tolerance + relative * fabs(e));
        if (excess <= 0) continue;
        bad++;
        if (worst < 0 || isnan(excess) || excess > worst_excess) worst = i, worst_excess = excess;
    }
    if (worst < 0) return true;
    return check_report(false, file, line,
                        "%s: %" PRId64 " of %" PRId64 " elements off, worst [%" PRId64
                        "] is %.9g, expected %.9g",
                        text, bad, count, worst, (double)actual[worst], (double)expected[worst]);
}

#define CHECK_STR(actual, expected) check_str((actual), (expected), #actual, __FILE__, __LINE__)
static inline bool check_str(const char *actual, const char *expected, const char *text,
                             const char *file, int line)
{
    bool same = actual == expected || (actual && expected && strcmp(actual, expected) == 0);
    return check_report(same, file, line, "%s is \"%s\", expected \"%s\"", text,
                        actual ? actual : "(null)", expected ? expected : "(null)");
}

#define CHECK_CONTAINS(text, fragment) check_contains((text), (fragment), #text, __FILE__, __LINE__)
static inline bool check_contains(const char *actual, const char *fragment, const char *text,
                                  const char *file, int line)
{
    return check_report(actual && strstr(actual, fragment), file, line,
                        "%s is \"%s\", expected it to contain \"%s\"", text,
                        actual ? actual : "(null)", fragment);
}

/* The call is expected to succeed; its message is shown when it does not. Uses a local `err`. */
#define CHECK_OK(call) (err.message[0] = '\0', check_ok((call), &err, #call, __FILE__, __LINE__))
static inline bool check_ok(stk_status status, const stk_error *error, const char *text,
                            const char *file, int line)
{
    return check_report(status == STK_OK, file, line, "%s failed: %s: %s", text,
                        stk_status_name(status), error->message);
}

#define CHECK_STATUS(call, expected) check_status((call), (expected), #call, __FILE__, __LINE__)
static inline bool check_status(stk_status status, stk_status expected, const char *text,
                                const char *file, int line)
{
    return check_report(status == expected, file, line, "%s gave \"%s\", expected \"%s\"", text,
                        stk_status_name(status), stk_status_name(expected));
}

/* The call is expected to fail with this code and a message that contains the fragment. Uses a
 * local `err`, which has to be the one given to the call. */
#define CHECK_FAILS(call, expected, fragment)                                                      \
    (err.message[0] = '\0',                                                                        \
     check_fails((call), (expected), &err, (fragment), #call, __FILE__, __LINE__))
static inline bool check_fails(stk_status status, stk_status expected, const stk_error *error,
                               const char *fragment, const char *text, const char *file, int line)
{
    if (!check_status(status, expected, text, file, line)) return false;
    return check_report(strstr(error->message, fragment), file, line,
                        "%s: message is \"%s\", expected it to contain \"%s\"", text,
                        error->message, fragment);
}

/* Runs `call` (an expression of type stk_status that gives back all it takes, also when it
 * succeeds) with the 1st, 2nd, 3rd ... allocation refused, until it gets through without meeting
 * the refusal. Each refused run has to end in STK_ERR_MEMORY, or in STK_OK where the code can do
 * without that memory, and leave as many live blocks as before. Both a single refusal and "no
 * memory from here on" are tried. One free run goes first, so that what is made once per process
 * is not taken for a leak. */
#define OOM_LOOP(call)                                                                             \
    do {                                                                                           \
        check_status((call), STK_OK, #call, __FILE__, __LINE__);                                   \
        for (int check_all_ = 0; check_all_ < 2; check_all_++) {                                   \
            for (int64_t check_n_ = 1;; check_n_++) {                                              \
                int64_t check_live_ = stk_alloc_live(), check_count_ = stk_alloc_count();          \
                stk_alloc_fail_at(check_n_, check_all_ == 1);                                      \
                stk_status check_status_ = (call);                                                 \
                stk_alloc_fail_at(0, false);                                                       \
                bool check_met_ = stk_alloc_count() - check_count_ >= check_n_;                    \
                if (!check_oom(check_status_, check_met_, check_n_, check_live_, #call, __FILE__,  \
                               __LINE__) ||                                                        \
                    !check_met_)                                                                   \
                    break;                                                                         \
            }                                                                                      \
        }                                                                                          \
    } while (0)
static inline bool check_oom(stk_status status, bool met, int64_t n, int64_t live_before,
                             const char *text, const char *file, int line)
{
    bool fits = status == STK_OK || (met && status == STK_ERR_MEMORY);
    bool good = check_report(fits, file, line, "%s: refused allocation %" PRId64 " gave \"%s\"",
                             text, n, stk_status_name(status));
    int64_t live = stk_alloc_live();
    good &= check_report(live == live_before, file, line,
                         "%s: refused allocation %" PRId64 " left %" PRId64 " blocks, was %" PRId64,
                         text, n, live, live_before);
    return good && check_report(n < 1000000, file, line, "%s: allocates without end", text);
}

#endif
