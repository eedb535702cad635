/* Every transform once, held against what tf.data gives for the same pipeline where that is fixed. */
#include "pipelines.h"
#include "temporary.h"

static stk_dataset *range(int64_t n) { return stk_data_range(0, n, 1, NULL); }

/* A source without random access: 0 .. n - 1. */
typedef struct counter {
    int64_t n, fail_at;
} counter;
static stk_status count_open(void *context, void **walk, stk_error *err)
{
    (void)context;
    (void)err;
    *walk = calloc(1, sizeof(int64_t));
    return STK_OK;
}
static stk_status count_next(void *context, void *walk, stk_tensor **parts, bool *end,
                             stk_error *err)
{
    counter *c = context;
    int64_t value = (*(int64_t *)walk)++;
    *end = value >= c->n;
    if (*end) return STK_OK;
    if (value == c->fail_at) {
        if (err) *err = (stk_error){STK_ERR_FORMAT, "element 3 is bad"};
        return STK_ERR_FORMAT;
    }
    return stk_tensor_from(STK_I64, 0, NULL, &value, &parts[0], err);
}
static void count_close(void *context, void *walk)
{
    (void)context;
    free(walk);
}
static stk_dataset *counting(int64_t n, int64_t fail_at)
{
    static const stk_field field = {.dtype = STK_I64};
    static const stk_schema schema = {1, &field, "0"};
    counter *c = calloc(1, sizeof *c);
    *c = (counter){n, fail_at};
    stk_generator g = {"counting",  c,    &schema,     count_open, count_next,
                       count_close, free, STK_UNKNOWN, 0};
    return stk_data_generator(&g, NULL);
}

#define GIVES(dataset, expected)                                                                   \
    do {                                                                                           \
        for (int threads_ = 1; threads_ <= 3; threads_ += 2) {                                     \
            static collect c_;                                                                     \
            stk_stream_options o_ = stk_stream_options_defaults();                                 \
            o_.threads = threads_;                                                                 \
            run_all((dataset), &o_, &c_);                                                          \
            CHECK_STR(c_.text, (expected));                                                        \
        }                                                                                          \
    } while (0)

static stk_status answer_i64(stk_tensor **out, int64_t value, stk_error *err)
{
    if (!out[0]) return stk_tensor_from(STK_I64, 0, NULL, &value, &out[0], err);
    return stk_tensor_set(out[0], 0, (double)value, err);
}
static stk_status call_even(void *x, const stk_map_info *i, stk_tensor *const *in, stk_tensor **out,
                            stk_error *err)
{
    (void)x;
    (void)i;
    bool yes = (int64_t)stk_tensor_at(in[0], 0) % 2 == 0;
    return stk_tensor_from(STK_BOOL, 0, NULL, &yes, &out[0], err);
}
static const stk_map_fn even = {.name = "even", .call = call_even};
static stk_status call_below_four(void *x, const stk_map_info *i, stk_tensor *const *in,
                                  stk_tensor **out, stk_error *err)
{
    (void)x;
    (void)i;
    bool yes = stk_tensor_at(in[0], 0) < 4;
    return stk_tensor_from(STK_BOOL, 0, NULL, &yes, &out[0], err);
}
static const stk_map_fn below_four = {.name = "below_four", .call = call_below_four};
static stk_status call_mod3(void *x, const stk_map_info *i, stk_tensor *const *in, stk_tensor **out,
                            stk_error *err)
{
    (void)x;
    (void)i;
    return answer_i64(out, (int64_t)stk_tensor_at(in[0], 0) % 3, err);
}
static const stk_map_fn mod3 = {.name = "mod3", .call = call_mod3};
static stk_status call_value(void *x, const stk_map_info *i, stk_tensor *const *in,
                             stk_tensor **out, stk_error *err)
{
    (void)x;
    (void)i;
    return answer_i64(out, (int64_t)stk_tensor_count(in[0]), err);
}
static const stk_map_fn length_of = {.name = "length", .call = call_value};

/* n -> [n, n, ..., n], n of them */
static const stk_field vector_field = {.dtype = STK_I64, .rank = 1, .shape = {-1}};
static const stk_schema vector_schema = {1, &vector_field, "0"};
static stk_status call_vector(void *x, const stk_map_info *i, stk_tensor *const *in,
                              stk_tensor **out, stk_error *err)
{
    (void)x;
    (void)i;
    int64_t n = (int64_t)stk_tensor_at(in[0], 0);
    if (stk_tensor_new(STK_I64, 1, &n, &out[0], err) != STK_OK) return STK_ERR_MEMORY;
    for (int64_t k = 0; k < n; k++) ((int64_t *)out[0]->data)[k] = n;
    return STK_OK;
}
static const stk_map_fn vector = {.name = "vector", .call = call_vector, .output = &vector_schema};

/* n -> 10n, 10n + 1, ... 10n + n - 1 */
static const stk_field scalar_field = {.dtype = STK_I64};
static const stk_schema scalar_schema = {1, &scalar_field, "0"};
static stk_dataset *call_tens(void *x, const stk_map_info *i, stk_tensor *const *in, stk_error *err)
{
    (void)x;
    (void)i;
    int64_t n = (int64_t)stk_tensor_at(in[0], 0);
    return stk_data_range(10 * n, 10 * n + n, 1, err);
}
static const stk_flat_fn tens = {.name = "tens", .call = call_tens, .output = &scalar_schema};

TEST(index_nodes)
{
    GIVES(stk_data_take(range(9), 3, NULL), "0|1|2|");
    GIVES(stk_data_take(counting(9, -1), 3, NULL), "0|1|2|");
    GIVES(stk_data_take(range(3), -1, NULL), "0|1|2|");
    GIVES(stk_data_skip(range(5), 3, NULL), "3|4|");
    GIVES(stk_data_skip(counting(5, -1), 3, NULL), "3|4|");
    GIVES(stk_data_skip(range(5), -1, NULL), "");
    GIVES(stk_data_shard(range(8), 3, 1, NULL), "1|4|7|");
    GIVES(stk_data_shard(counting(8, -1), 3, 1, NULL), "1|4|7|");
    GIVES(stk_data_repeat(range(2), 3, NULL), "0|1|0|1|0|1|");
    GIVES(stk_data_repeat(counting(2, -1), 3, NULL), "0|1|0|1|0|1|");
    GIVES(stk_data_repeat(counting(0, -1), -1, NULL), "");
    GIVES(stk_data_take(stk_data_repeat(range(2), -1, NULL), 5, NULL), "0|1|0|1|0|");
    GIVES(stk_data_batch(stk_data_repeat(range(3), 2, NULL), 4, false, NULL), "0,1,2,0|1,2|");
    GIVES(stk_data_enumerate(stk_data_skip(range(4), 2, NULL), 5, NULL), "5;2|6;3|");
    stk_dataset *both[2] = {range(3), counting(2, -1)};
    for (int i = 0; i < 2; i++) stk_dataset_retain(both[i]);
    GIVES(stk_data_zip(2, both, NULL), "0;0|1;1|");
    GIVES(stk_data_concatenate(range(2), counting(2, -1), NULL), "0|1|0|1|");
    GIVES(stk_data_batch(stk_data_concatenate(range(3), range(2), NULL), 4, false, NULL),
          "0,1,2,0|1|");
}

TEST(filters)
{
    GIVES(stk_data_filter(range(7), &even, NULL), "0|2|4|6|");
    GIVES(stk_data_take_while(range(9), &below_four, NULL), "0|1|2|3|");
    GIVES(stk_data_unique(stk_data_map(range(9), &mod3, NULL, NULL), NULL), "0|1|2|");
    GIVES(stk_data_ignore_errors(counting(6, 3), NULL), "0|1|2|4|5|");
    GIVES(counting(6, 3), "0|1|2|!|4|5|");
    GIVES(stk_data_batch(counting(6, 3), 2, false, NULL), "0,1|!|4,5|");
    GIVES(stk_data_prefetch(stk_data_map(counting(6, 3), &times_ten, NULL, NULL), 2, NULL),
          "0|10|20|!|40|50|");
}

TEST(batches)
{
    GIVES(stk_data_unbatch(stk_data_batch(range(5), 2, false, NULL), NULL), "0|1|2|3|4|");
    GIVES(stk_data_rebatch(stk_data_batch(range(5), 2, false, NULL), 3, false, NULL), "0,1,2|3,4|");
    GIVES(stk_data_window(range(7), 3, 2, 1, true, NULL), "0,1,2|2,3,4|4,5,6|");
    GIVES(stk_data_window(counting(7, -1), 3, 2, 1, true, NULL), "0,1,2|2,3,4|4,5,6|");
    GIVES(stk_data_window(range(7), 3, 2, 2, false, NULL), "0,2,4|2,4,6|4,6|6|");
    GIVES(stk_data_window(counting(7, -1), 3, 2, 2, false, NULL), "0,2,4|2,4,6|4,6|6|");
    GIVES(stk_data_window(counting(7, -1), 2, 3, 1, false, NULL), "0,1|3,4|6|");
    GIVES(stk_data_padded_batch(stk_data_map(range(4), &vector, NULL, NULL), 2, false, NULL, NULL,
                                NULL),
          "0,1|2,2,0,3,3,3|");
    GIVES(stk_data_padded_batch(stk_data_map(counting(4, -1), &vector, NULL, NULL), 3, false,
                                (const int64_t[1][STK_MAX_RANK]){{4}}, (double[]){-1}, NULL),
          "-1,-1,-1,-1,1,-1,-1,-1,2,2,-1,-1|3,3,3,-1|");
    stk_bucket_options o = {.n = 1, .boundaries = (int64_t[]){3}, .sizes = (int64_t[]){2, 2}};
    GIVES(stk_data_bucket_by_sequence_length(stk_data_map(range(6), &vector, NULL, NULL),
                                             &length_of, &o, NULL),
          "0,1|3,3,3,0,4,4,4,4|2,2|5,5,5,5,5|");
}

TEST(datasets_of_datasets)
{
    GIVES(stk_data_flat_map(range(4), &tens, NULL), "10|20|21|30|31|32|");
    stk_interleave_options o = {.cycle = 2, .block = 1, .parallel = STK_AUTOTUNE};
    /* as tf.data: lanes 1 and 2, an emptied lane takes the next dataset when its turn comes */
    GIVES(stk_data_interleave(stk_data_range(1, 5, 1, NULL), &tens, &o, NULL),
          "10|20|21|30|31|40|32|41|42|43|");
    o.block = 2;
    GIVES(stk_data_interleave(stk_data_range(1, 5, 1, NULL), &tens, &o, NULL),
          "10|20|21|30|31|32|40|41|42|43|");
}

/* Windows as datasets: batches of each part side by side, the second without its first element. */
static const stk_field pair_fields[2] = {{.dtype = STK_I64, .rank = 1, .shape = {-1}},
                                         {.dtype = STK_I64, .rank = 1, .shape = {-1}}};
static const stk_schema pairs = {2, pair_fields, "(0,1)"};
static stk_dataset *call_shifted(void *x, const stk_map_info *i, stk_tensor *const *in,
                                 stk_error *err)
{
    (void)x;
    stk_dataset *both[2];
    for (int k = 0; k < 2; k++) {
        both[k] = stk_dataset_retain(stk_tensor_dataset(in[i->inputs == 2 ? k : 0]));
        if (k) both[k] = stk_data_skip(both[k], 1, err);
        both[k] = stk_data_batch(both[k], 10, false, err);
    }
    return stk_data_zip(2, both, err);
}
static const stk_flat_fn shifted = {.name = "shifted", .call = call_shifted, .output = &pairs};

static stk_dataset *nested(bool random, bool two)
{
    stk_dataset *in[2] = {random ? range(7) : counting(7, -1),
                          two ? stk_data_map(range(7), &times_ten, NULL, NULL) : NULL};
    return stk_data_window_nested(two ? stk_data_zip(2, in, NULL) : in[0], 3, 2, 1, false, NULL);
}

TEST(windows_are_datasets)
{
    for (int random = 0; random < 2; random++) {
        GIVES(stk_data_flat_map(nested(random, false), &shifted, NULL),
              "0,1,2;1,2|2,3,4;3,4|4,5,6;5,6|");
        GIVES(stk_data_flat_map(stk_data_take(nested(random, true), 2, NULL), &shifted, NULL),
              "0,1,2;10,20|2,3,4;30,40|");
    }
    stk_error err;
    stk_dataset *ds = nested(true, false);
    stk_tensor *window = NULL, *first = NULL;
    CHECK(stk_dataset_schema(ds)->fields[0].dataset);
    CHECK_OK(stk_dataset_get(ds, 0, 1, &window, &err));
    CHECK_EQ_I64(stk_dataset_cardinality(stk_tensor_dataset(window)), 3);
    CHECK_OK(stk_dataset_get(stk_tensor_dataset(window), 0, 0, &first, &err));
    CHECK_EQ_I64(stk_tensor_at(first, 0), 2);
    CHECK(!stk_tensor_dataset(first));
    stk_tensor_release(first);
    stk_tensor_release(window);
    CHECK(!stk_data_batch(stk_dataset_retain(ds), 2, false, &err));
    CHECK_CONTAINS(err.message, "flat_map");
    CHECK(!stk_data_window_nested(stk_dataset_retain(ds), 2, 0, 1, false, &err));
    CHECK(!stk_data_unique(ds, &err));
}

static stk_dataset *call_batch_window(void *x, int64_t key, stk_dataset *window, stk_error *err)
{
    (void)x;
    (void)key;
    return stk_data_batch(window, 10, false, err);
}
static const stk_field batch_field = {.dtype = STK_I64, .rank = 1, .shape = {-1}};
static const stk_schema batch_schema = {1, &batch_field, "0"};
static const stk_group_fn batch_window = {
    .name = "batch", .call = call_batch_window, .output = &batch_schema};

TEST(groups_and_choices)
{
    GIVES(stk_data_group_by_window(range(8), &mod3, &batch_window, 2, NULL), "0,3|1,4|2,5|6|7|");
    stk_dataset *in[2];
    for (int i = 0; i < 2; i++) in[i] = range(3);
    for (int i = 0; i < 2; i++) stk_dataset_retain(in[i]);
    stk_dataset *choice = stk_data_map(range(5), &mod3, NULL, NULL);
    stk_dataset_release(choice);
    int64_t order[5] = {1, 1, 0, 1, 0};
    stk_tensor *t = NULL;
    CHECK(stk_tensor_from(STK_I64, 1, (int64_t[]){5}, order, &t, NULL) == STK_OK);
    for (int i = 0; i < 2; i++) {
        static collect c;
        choice = stk_data_slices(1, &t, NULL, NULL, NULL);
        run_all(stk_data_choose_from(2, in, choice, true, NULL), NULL, &c);
        CHECK_STR(c.text, "0|1|0|2|1|");
    }
    stk_tensor_release(t);
}

TEST(samples_follow_their_weights)
{
    static collect c;
    stk_error err;
    stk_dataset *in[2] = {stk_data_repeat(stk_data_range(0, 1, 1, &err), -1, &err),
                          stk_data_repeat(stk_data_range(1, 2, 1, &err), -1, &err)};
    stk_dataset *ds = stk_data_sample_from(2, in, (double[]){3, 1}, 5, false, &err);
    run_all(stk_data_take(ds, 4000, &err), NULL, &c);
    int64_t ones = 0;
    for (const char *s = c.text; *s; s++) ones += *s == '1';
    CHECK_MSG(ones > 880 && ones < 1120, "%d of 4000 drawn with weight 1/4", (int)ones);
    double target[3] = {0.2, 0.2, 0.6}, initial[3] = {1 / 3., 1 / 3., 1 / 3.};
    run_all(stk_data_rejection_resample(range(3000), &mod3, 3, target, initial, 1, &err), NULL, &c);
    int64_t twos = 0, all = c.elements;
    for (const char *s = c.text; *s; s++)
        twos += s[0] == '2' && s[1] == ';' && (s == c.text || s[-1] == '|');
    CHECK_MSG(fabs((double)twos / (double)all - 0.6) < 0.05, "%d of %d", (int)twos, (int)all);
}

static stk_status call_sum(void *x, const stk_map_info *i, stk_tensor *const *in, stk_tensor **out,
                           stk_error *err)
{
    (void)x;
    int64_t sum = (int64_t)(stk_tensor_at(in[0], 0) + stk_tensor_at(in[1], 0));
    if (i->inputs != 2) return STK_ERR_STATE;
    for (int k = 0; k < 2; k++)
        if (!out[k] && stk_tensor_from(STK_I64, 0, NULL, &sum, &out[k], err) != STK_OK)
            return STK_ERR_MEMORY;
    return STK_OK;
}
static const stk_field two_fields[2] = {{.dtype = STK_I64}, {.dtype = STK_I64}};
static const stk_schema two = {2, two_fields, "(0,1)"};
static stk_status call_reduce(void *x, const stk_map_info *i, stk_tensor *const *in,
                              stk_tensor **out, stk_error *err)
{
    (void)x;
    (void)i;
    int64_t sum = (int64_t)(stk_tensor_at(in[0], 0) + stk_tensor_at(in[1], 0));
    return stk_tensor_from(STK_I64, 0, NULL, &sum, &out[0], err);
}

TEST(scans_and_reductions)
{
    stk_error err;
    stk_tensor *zero = NULL, *sum = NULL;
    CHECK_OK(stk_tensor_scalar(STK_I64, 0, &zero, &err));
    stk_map_fn fn = {.name = "sum", .call = call_sum, .output = &two};
    GIVES(stk_data_scan(range(5), 1, &zero, &fn, NULL), "0|1|3|6|10|");
    stk_dataset *ds = range(101);
    stk_map_fn fold = {.name = "fold", .call = call_reduce, .output = &scalar_schema};
    GIVES(stk_data_reduce(range(101), 1, &zero, &fold, NULL), "5050|");
    CHECK_OK(stk_dataset_reduce(ds, NULL, 1, &zero, &fold, &sum, &err));
    CHECK_EQ_I64(stk_tensor_at(sum, 0), 5050);
    stk_tensor_release(sum);
    stk_dataset_release(ds);
    stk_tensor_release(zero);
}

static int compare(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }

/* Sorted it must be 0 .. n - 1; returns how many elements are not at their own place. */
static int check_permutation(const char *text, int n)
{
    int values[256], count = 0, moved = 0;
    for (const char *s = text; *s && count < 256; s = strchr(s, '|') + 1) {
        values[count] = atoi(s);
        moved += values[count] != count;
        count++;
    }
    CHECK_EQ_I64(count, n);
    qsort(values, (size_t)count, sizeof *values, compare);
    for (int i = 0; i < count; i++) CHECK_EQ_I64(values[i], i);
    return moved;
}

TEST(shuffles)
{
    static collect c, d;
    stk_stream_options o = stk_stream_options_defaults();
    for (int kind = 0; kind < 3; kind++) { /* exact, through a buffer, all through a buffer */
        stk_dataset *in = kind ? counting(100, -1) : range(100);
        stk_dataset *ds = stk_data_shuffle(in, kind == 1 ? 10 : STK_SHUFFLE_ALL, 3, true, NULL);
        stk_dataset_retain(ds);
        stk_dataset_retain(ds);
        run_all(ds, NULL, &c);
        CHECK(check_permutation(c.text, 100) > 70);
        run_all(ds, NULL, &d);
        CHECK_STR(c.text, d.text);
        o.epoch = 1;
        run_all(ds, &o, &d);
        CHECK(check_permutation(d.text, 100) > 70);
        CHECK(strcmp(c.text, d.text) != 0);
    }
    run_all(stk_data_shuffle(counting(50, -1), 5, 1, true, NULL), NULL, &c);
    int place = 0; /* nothing comes more than the buffer too early */
    for (const char *s = c.text; *s; s = strchr(s, '|') + 1, place++) CHECK(atoi(s) < place + 5);
    run_all(stk_data_repeat(stk_data_shuffle(range(20), -1, 1, true, NULL), 2, NULL), NULL, &c);
    char *middle = c.text;
    for (int i = 0; i < 20; i++) middle = strchr(middle, '|') + 1;
    CHECK(strncmp(c.text, middle, strlen(middle)) != 0);
    check_permutation(middle, 20);
}

static int32_t calls;
static stk_status call_counted(void *x, const stk_map_info *i, stk_tensor *const *in,
                               stk_tensor **out, stk_error *err)
{
    __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
    return call_times_ten(x, i, in, out, err);
}

TEST(caches_call_once)
{
    static collect c;
    stk_map_fn counted = {.name = "counted", .call = call_counted};
    for (int kind = 0; kind < 3; kind++) {
        const char *path = kind == 2 ? temporary("cache") : NULL;
        stk_dataset *in = kind ? counting(5, -1) : range(5);
        calls = 0;
        stk_dataset *ds = stk_data_cache(stk_data_map(in, &counted, NULL, NULL), path, NULL);
        ds = stk_data_repeat(ds, 3, NULL);
        stk_dataset_retain(ds);
        run_all(ds, NULL, &c);
        CHECK_STR(c.text, "0|10|20|30|40|0|10|20|30|40|0|10|20|30|40|");
        run_all(ds, NULL, &c);
        CHECK_STR(c.text, "0|10|20|30|40|0|10|20|30|40|0|10|20|30|40|");
        CHECK_EQ_I64(calls, 5);
    }
}

TEST(snapshots_come_back)
{
    static collect c;
    stk_error err;
    stk_dataset *ds = stk_data_map(range(4), &vector, NULL, &err);
    CHECK_OK(stk_dataset_save(ds, temporary("snapshot"), NULL, &err));
    stk_dataset_release(ds);
    ds = stk_data_load(temporary("snapshot"), &err);
    REQUIRE(CHECK(ds != NULL));
    CHECK_EQ_I64(stk_dataset_cardinality(ds), 4);
    CHECK(stk_dataset_random_access(ds));
    run_all(ds, NULL, &c);
    CHECK_STR(c.text, "|1|2,2|3,3,3|");
    FILE *f = fopen(temporary("snapshot"), "r+");
    fseek(f, 150, SEEK_SET);
    fputc(77, f);
    fclose(f);
    ds = stk_data_load(temporary("snapshot"), &err);
    if (ds) {
        run_all(ds, NULL, &c);
        CHECK(c.status == STK_ERR_FORMAT);
        CHECK_CONTAINS(c.error.message, "offset");
    }
}

TEST(files_are_listed)
{
    static collect c;
    stk_error err;
    fclose(fopen(temporary("b.txt"), "w"));
    fclose(fopen(temporary("a.txt"), "w"));
    const char *pattern = temporary("*.txt");
    run_all(stk_data_list_files(1, &pattern, false, 0, &err), NULL, &c);
    CHECK_EQ_I64(c.elements, 2);
    CHECK(strstr(c.text, "a.txt") < strstr(c.text, "b.txt"));
    const char *none = temporary("*.nothing");
    CHECK(!stk_data_list_files(1, &none, false, 0, &err));
    CHECK_CONTAINS(err.message, "nothing matches");
}

TEST(budgets_are_kept)
{
    static collect c;
    stk_stream_options o = stk_stream_options_defaults();
    o.ram_budget = 1000;
    run_all(stk_data_shuffle(counting(100, -1), 50, 0, true, NULL), &o, &c);
    CHECK(c.status == STK_ERR_MEMORY);
    CHECK_CONTAINS(c.error.message, "budget");
}

static stk_dataset *pipeline(const char *json, stk_error *err)
{
    return stk_data_pipeline(json, strlen(json), NULL, err);
}

TEST(pipelines_are_read)
{
    stk_error err;
    GIVES(
        pipeline("{\"ops\": [{\"op\": \"range\", \"stop\": 7}, {\"op\": \"batch\", \"size\": 3}]}",
                 NULL),
        "0,1,2|3,4,5|6|");
    GIVES(pipeline("[{\"op\": \"range\", \"stop\": 2}, {\"op\": \"concatenate\", \"inputs\": "
                   "[[{\"op\": \"range\", "
                   "\"start\": 5, \"stop\": 7}]]}, {\"op\": \"repeat\", \"times\": 2}]",
                   NULL),
          "0|1|5|6|0|1|5|6|");
    CHECK(!pipeline("[{\"op\": \"rnage\"}]", &err));
    CHECK_CONTAINS(err.message, "there is no op \"rnage\"");
    CHECK(!pipeline("[{\"op\": \"range\", \"stopp\": 2}]", &err));
    CHECK_CONTAINS(err.message, "no option \"stopp\"; it knows start stop step");
    CHECK(!pipeline("[{\"op\": \"batch\", \"size\": 2}]", &err));
    CHECK_CONTAINS(err.message, "begin with a source");
    CHECK(!pipeline("[{\"op\": \"range\", \"stop\": 2}, {\"op\": \"batch\", \"size\": 0}]", &err));
    CHECK_CONTAINS(err.message, "it takes 1..");
}

static stk_status all_nodes_once(void)
{
    static const char json[] = "[{\"op\": \"zip\", \"inputs\": [[{\"op\": \"range\", \"stop\": "
                               "9}], [{\"op\": \"random\", \"count\": 9}]]}, "
                               "{\"op\": \"shuffle\", \"buffer\": 3}, {\"op\": \"repeat\", "
                               "\"times\": 2}, {\"op\": \"window\", \"size\": 2}, "
                               "{\"op\": \"unbatch\"}, {\"op\": \"unique\"}, {\"op\": \"cache\"}, "
                               "{\"op\": \"padded_batch\", \"size\": 3}, "
                               "{\"op\": \"enumerate\"}, {\"op\": \"prefetch\"}]";
    stk_error err;
    stk_dataset *ds = pipeline(json, &err);
    if (!ds) return err.code;
    stk_stream_options o = stk_stream_options_defaults();
    o.threads = 1;
    stk_stream *s = NULL;
    stk_status status = stk_dataset_stream(ds, &o, &s, &err);
    void *bytes = NULL;
    size_t size = 0;
    stk_tensor *parts[4];
    for (bool end = false; status == STK_OK && !end;) {
        status = stk_stream_next(s, parts, &end, &err);
        for (int i = 0; status == STK_OK && !end && i < 3; i++) stk_tensor_release(parts[i]);
        if (status == STK_OK && !bytes) status = stk_stream_save(s, &bytes, &size, &err);
    }
    if (status == STK_OK) status = stk_stream_restore(s, bytes, size, &err);
    stk_state_free(bytes);
    stk_stream_release(s);
    stk_dataset_release(ds);
    return status;
}

TEST(without_memory_nothing_leaks) { OOM_LOOP(all_nodes_once()); }

TEST_MAIN()
