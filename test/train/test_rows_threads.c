/* Batches of arrays: every row once per walk, the same with and without a thread that copies ahead. */
#include "train/problem.h"

#include "train/batches.h"

static stk_batch_options usual(stk_model *m)
{
    return (stk_batch_options){.batch = 16,
                               .rows = -1,
                               .shuffle = true,
                               .seed = 5,
                               .with_y = true,
                               .nx = 1,
                               .ny = 1,
                               .model = m};
}

TEST(a_walk_sees_every_row_once)
{
    problem p;
    stk_error err;
    stk_batches b;
    int seen[100] = {0};
    REQUIRE(open_problem(&p, 100));
    for (int32_t i = 0; i < 100; i++) ((int32_t *)p.y->data)[i] = i;
    stk_batch_options how = usual(p.model);
    how.first = 10;
    how.rows = 70;
    REQUIRE(CHECK_OK(stk_batches_open(&b, &p.data, &how, &err)));
    CHECK_OK(stk_batches_begin(&b, 3, 0, &err));
    int64_t rows = 0, batches = 0;
    while (stk_batches_next(&b, &err) == STK_OK && !b.end) {
        const int32_t *y = b.parts[1]->data;
        for (int64_t i = 0; i < b.rows; i++, rows++) {
            seen[y[i]]++;
            CHECK_NEAR(stk_tensor_at(b.parts[0], i * 8), stk_tensor_at(p.x, y[i] * 8), 0);
        }
        batches++;
    }
    CHECK_EQ_I64(rows, 70);
    CHECK_EQ_I64(batches, 5);
    for (int i = 0; i < 100; i++) CHECK_EQ_I64(seen[i], i >= 10 && i < 80);
    stk_batches_close(&b);
    close_problem(&p);
}

/* The bytes of some epochs, entered in the middle, with more steps than one walk has. */
static uint64_t digest(problem *p, int64_t steps, int way)
{
    stk_error err;
    stk_batches b;
    stk_batch_options how = usual(p->model);
    const double weights[4] = {1, 2, 3, 4};
    how.steps = steps;
    how.class_weights = weights;
    how.classes = 4;
    uint64_t hash = 0;
    if (!CHECK_OK(stk_batches_open(&b, &p->data, &how, &err))) return 0;
    if (way < 2) stk_rows_force(&b, way == 1);
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        CHECK_OK(stk_batches_begin(&b, epoch, epoch, &err));
        while (stk_batches_next(&b, &err) == STK_OK && !b.end)
            for (int32_t i = 0; i < b.n; i++) {
                const unsigned char *at = b.parts[i]->data;
                for (int64_t k = 0; k < stk_tensor_bytes(b.parts[i]); k++)
                    hash = stk_mix64(hash ^ at[k]) + 1;
            }
    }
    stk_batches_close(&b);
    return hash;
}

TEST(ahead_or_not_the_batches_are_the_same)
{
    problem p;
    REQUIRE(open_problem(&p, 200));
    for (int64_t steps = 0; steps <= 150; steps += 50) {
        uint64_t plain = digest(&p, steps, 0);
        CHECK(plain && plain == digest(&p, steps, 1));
        CHECK(plain == digest(&p, steps, 2)); /* with the trial */
    }
    CHECK(digest(&p, 0, 0) != digest(&p, 50, 0));
    close_problem(&p);
}

TEST(copying_ahead_allocates_nothing)
{
    problem p;
    stk_error err;
    stk_batches b;
    REQUIRE(open_problem(&p, 200));
    stk_batch_options how = usual(p.model);
    how.steps = 1000;
    REQUIRE(CHECK_OK(stk_batches_open(&b, &p.data, &how, &err)));
    stk_rows_force(&b, true);
    CHECK_OK(stk_batches_begin(&b, 0, 0, &err));
    for (int i = 0; i < 20; i++) CHECK_OK(stk_batches_next(&b, &err));
    int64_t before = stk_alloc_count();
    for (int i = 0; i < 900; i++) CHECK_OK(stk_batches_next(&b, &err));
    CHECK_EQ_I64(stk_alloc_count(), before);
    stk_batches_close(&b);
    close_problem(&p);
}

TEST_MAIN()
