/* Mapped files: what is cut off while somebody reads is an error with its place, and faults of others stay theirs. */
#define _GNU_SOURCE
#include "check.h"
#include "temporary.h"

#include "base/map.h"
#include "base/thread.h"
#include "base/spill.h"
#include "base/tensor.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { PAGES = 64 };

static int64_t page_size(void) { return (int64_t)sysconf(_SC_PAGESIZE); }

static void write_pages(const char *path, int64_t pages)
{
    FILE *f = fopen(path, "wb");
    for (int64_t i = 0; f && i < pages * page_size(); i++) fputc(7, f);
    if (f) fclose(f);
}

static int64_t sum_of(const stk_map *m)
{
    int64_t sum = 0;
    for (size_t i = 0; i < m->size; i++) sum += m->data[i];
    return sum;
}

static jmp_buf out_of_handler;
static int foreign;
static void on_foreign(int number)
{
    (void)number;
    foreign++;
    longjmp(out_of_handler, 1);
}

static void *sum_in_thread(void *map) { return (void *)(intptr_t)sum_of(map); }

TEST(a_file_that_becomes_shorter)
{
    stk_error err;
    stk_map m, other;
    struct sigaction own = {.sa_handler = on_foreign, .sa_flags = SA_NODEFER};
    REQUIRE(CHECK(sigaction(SIGBUS, &own, NULL) == 0)); /* of the application, before ours */
    write_pages(temporary("cut"), PAGES);
    write_pages(temporary("whole"), 2);
    REQUIRE(CHECK_OK(stk_map_open(temporary("cut"), true, &m, &err)));
    REQUIRE(CHECK_OK(stk_map_open(temporary("whole"), true, &other, &err)));
    CHECK_OK(stk_map_check(&m, &err));
    REQUIRE(CHECK(truncate(temporary("cut"), 10 * page_size()) == 0));
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        CHECK(!stk_thread_start(&threads[i], sum_in_thread, &m)); /* our own threads */
    for (int i = 0; i < 4; i++) {
        void *sum = NULL;
        pthread_join(threads[i], &sum);
        CHECK_EQ_I64((intptr_t)sum, 7 * 10 * page_size()); /* the rest is zeros */
    }
    char place[64];
    snprintf(place, sizeof place,
             "cut: became shorter while it was read: nothing is left from byte %lld",
             (long long)(10 * page_size()));
    CHECK_FAILS(stk_map_check(&m, &err), STK_ERR_IO, place);
    CHECK_FAILS(stk_maps_check(&err), STK_ERR_IO, place);
    CHECK_OK(stk_map_check(&other, &err));
    CHECK_EQ_I64(sum_of(&other), 7 * 2 * page_size());
    stk_map_close(&m);
    CHECK_OK(stk_maps_check(&err));
    stk_map_close(&other);
    CHECK_EQ_I64(foreign, 0);
}

/* A mapping that is not ours: the application's handler gets it. */
TEST(faults_of_others_are_passed_on)
{
    write_pages(temporary("foreign"), 2);
    FILE *f = fopen(temporary("foreign"), "rb");
    volatile uint8_t *data =
        mmap(NULL, (size_t)(2 * page_size()), PROT_READ, MAP_PRIVATE, fileno(f), 0);
    fclose(f);
    REQUIRE(CHECK((void *)(uintptr_t)data != MAP_FAILED));
    REQUIRE(CHECK(truncate(temporary("foreign"), 0) == 0));
    if (!setjmp(out_of_handler)) CHECK_EQ_I64(data[page_size()], 1); /* never gets that far */
    CHECK_EQ_I64(foreign, 1);
    munmap((void *)(uintptr_t)data, (size_t)(2 * page_size()));
}

/* With little memory left, an array lies on a disk and is an array all the same. */
TEST(large_arrays_find_room)
{
    stk_error err;
    struct rlimit old, small = {(rlim_t)64 << 20, RLIM_INFINITY};
    stk_tensor *t = NULL, *turned = NULL, *copy = NULL;
    REQUIRE(CHECK(getrlimit(RLIMIT_DATA, &old) == 0));
    small.rlim_max = old.rlim_max;
#ifndef __SANITIZE_ADDRESS__ /* whose own memory is far above the limit */
    REQUIRE(CHECK(setrlimit(RLIMIT_DATA, &small) == 0));
#endif
    stk_status status =
        stk_tensor_roomy("numbers", STK_F32, 2, (int64_t[]){5000, 10000}, &t, &err); /* 200 MB */
    if (CHECK_OK(status)) {
        float *x = t->data;
        for (int64_t i = 0; i < 50000000; i += 4999) x[i] = (float)i;
        CHECK_NEAR(stk_tensor_at(t, 4999 * 100), 499900, 0);
        CHECK_OK(stk_tensor_transpose(t, NULL, &turned, &err));
        if (CHECK_OK(stk_tensor_roomy_copy("numbers", turned, &copy, &err)))
            CHECK_NEAR(stk_tensor_at(copy, 4999 * 5000), 4999, 0); /* [4999][0] was [0][4999] */
    }
    CHECK_FAILS(
        stk_tensor_roomy("numbers", STK_F32, 1, &(int64_t){(int64_t)1 << 55}, &turned, &err),
        STK_ERR_MEMORY, "numbers: needs ");
    CHECK_CONTAINS(err.message, ", has ");
    setrlimit(RLIMIT_DATA, &old);
    stk_tensor_release(t);
    stk_tensor_release(turned);
    stk_tensor_release(copy);
}

TEST_MAIN()
