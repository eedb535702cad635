/* Books that add up, and what is written about them: read back, parsed, as wide as promised. */
#include "planted.h"
#include "temporary.h"

#include "base/crc32c.h"
#include "base/file.h"
#include "base/json.h"
#include "watch/report.h"

static const plant job_plant = {
    "books",           .net = NET_MLP,  .batch = 64,        .in = 64,
    .hidden = 64,      .map_ms = 0.5,   .callback_ms = 0.3, .callback_every = 1,
    .metrics_ms = 0.2, .read_every = 1, .host_ms = 0.2};

static stk_report *record(const plant *p, int64_t steps, int64_t sample)
{
    stk_error err;
    planted job;
    stk_watch *watch = NULL;
    stk_report *r = NULL;
    void *variant = NULL;
    stk_job_settings s = stk_job_settings_defaults();
    stk_watch_settings o = stk_watch_settings_defaults();
    o.title = "a <job> & its \"books\"";
    o.batch = p->batch;
    o.sample = sample;
    if (!CHECK_OK(planted_job(p, &job, &err))) return NULL;
    CHECK_OK(stk_watch_start(&o, &watch, &err));
    CHECK_OK(job.job.open(&job, &s, &variant, &err));
    CHECK_OK(job.job.run(&job, variant, steps, &err));
    CHECK_OK(stk_watch_stop(watch, &r, &err));
    stk_watch_stage stages[8];
    int32_t n = job.job.stages(&job, variant, stages, 8);
    for (int32_t i = 0; r && i < n; i++) CHECK_OK(stk_report_add_stage(r, &stages[i], &err));
    job.job.close(&job, variant);
    planted_release(&job);
    return r;
}

TEST(books_close)
{
    stk_report *r = record(&job_plant, 60, 0);
    REQUIRE(CHECK(r));
    double wall = stk_report_seconds(r, STK_BOOK_COUNT), sum = 0;
    for (int b = 0; b < STK_BOOK_COUNT; b++) {
        CHECK(r->book[b] >= 0);
        sum += r->book[b];
    }
    CHECK_NEAR(sum, wall, 1e-12);
    CHECK_NEAR(wall * (double)r->book_steps, r->phase_seconds[STK_PHASE_STEADY], 1e-6);
    CHECK_EQ_I64(r->phase_steps[STK_PHASE_WARM_UP] + r->phase_steps[STK_PHASE_STEADY], 60);
    CHECK(r->book[STK_BOOK_INPUT] > 0.45e-3); /* sleeps cannot be shorter than asked for */
    CHECK(r->book[STK_BOOK_CALLBACKS] > 0.28e-3);
    CHECK(r->book[STK_BOOK_SYNC] > 0.18e-3);
    CHECK(r->book[STK_BOOK_HOST] > 0.18e-3);
    CHECK(r->book[STK_BOOK_KERNELS] > 0);
    CHECK(r->phase_seconds[STK_PHASE_BUILD] > 0);
    stk_report_release(r);
}

/* Time is no book's only because it lies beside that book's. */
TEST(what_nobody_claims_is_the_residual)
{
    stk_error err;
    stk_watch *watch = NULL;
    stk_report *r = NULL;
    REQUIRE(CHECK_OK(stk_watch_start(NULL, &watch, &err)));
    for (int i = 0; i < 20; i++) {
        stk_watch_step(1);
        stk_watch_begin(STK_BOOK_INPUT);
        usleep(200);
        stk_watch_begin(STK_BOOK_HOST);
        usleep(100);
        stk_watch_end(STK_BOOK_HOST);
        stk_watch_end(STK_BOOK_INPUT);
        usleep(400);
    }
    stk_watch_step(1);
    REQUIRE(CHECK_OK(stk_watch_stop(watch, &r, &err)));
    CHECK(r->book[STK_BOOK_RESIDUAL] >= 395e-6);
    CHECK(r->book[STK_BOOK_INPUT] >= 195e-6 && r->book[STK_BOOK_HOST] >= 95e-6);
    double three = r->book[STK_BOOK_RESIDUAL] + r->book[STK_BOOK_INPUT] + r->book[STK_BOOK_HOST];
    CHECK_NEAR(three, stk_report_seconds(r, STK_BOOK_COUNT), 1e-12);
    CHECK_NEAR(three * (double)r->book_steps, r->phase_seconds[STK_PHASE_STEADY], 1e-6);
    stk_report_release(r);
}

/* Another process may take the processor just where nobody claims the time: the best of a few runs counts. */
TEST(little_is_left_unexplained)
{
    double least = 1;
    for (int attempt = 0; attempt < 5 && least >= 0.02; attempt++) {
        stk_report *r = record(&job_plant, 60, 0);
        REQUIRE(CHECK(r));
        least = fmin(least, r->book[STK_BOOK_RESIDUAL] / stk_report_seconds(r, STK_BOOK_COUNT));
        stk_report_release(r);
    }
    CHECK_MSG(least < 0.02, "residual %.2f %%", 100 * least);
}

static double seconds_of_ops(const stk_report *r)
{
    double sum = 0;
    for (int64_t i = 0; i < r->nops; i++) sum += r->ops[i].seconds;
    return sum;
}

TEST(ops_have_names_work_and_a_roof)
{
    stk_report *r = record(&job_plant, 40, 0);
    REQUIRE(CHECK(r && r->nops > 2));
    bool matmul = false;
    for (int64_t i = 0; i < r->nops; i++) {
        const stk_report_op *o = &r->ops[i];
        if (!strcmp(o->label, "matmul")) {
            matmul = true;
            CHECK(o->flops > 0 && o->bytes > 0 && o->roof > 0);
            CHECK(strcmp(o->impl, "-") != 0);
        }
        CHECK(i == 0 || o->seconds <= r->ops[i - 1].seconds);
    }
    CHECK(matmul);
    CHECK(r->roof.gflops[0] > 1 && r->roof.gbs[0][2] > 0.5);
    CHECK_EQ_I64(r->limiting_stage, 1); /* the map sleeps */
    stk_report_release(r);
}

/* Forward and both gradients of every convolution, whichever kernel computes them; their share is their work over their time. */
TEST(convolutions_stand_beside_the_peak)
{
    const plant conv = {"conv", .net = NET_CONV, .batch = 32, .in = 16, .hidden = 16};
    stk_report *r = record(&conv, 20, 0);
    REQUIRE(CHECK(r));
    double flops = 0, seconds = 0, of_ops = 0, peak = 0;
    int64_t ways[3] = {0};
    for (int64_t i = 0; i < r->nconvs; i++) {
        const stk_conv_cost *c = &r->convs[i];
        flops += c->flops, seconds += c->seconds;
        if (i == 0) peak = c->flops / c->seconds / c->share;
        CHECK_NEAR(c->flops / c->seconds / c->share, peak, 1e-6 * peak);
        CHECK(i == 0 || c->seconds <= r->convs[i - 1].seconds);
        ways[0] += !strcmp(c->op, "conv");
        ways[1] += !strcmp(c->op, "conv_bwd_data");
        ways[2] += !strcmp(c->op, "conv_bwd_weight");
    }
    for (int64_t i = 0; i < r->nops; i++)
        if (!strncmp(r->ops[i].label, "conv", 4) && r->ops[i].flops > 0) of_ops += r->ops[i].flops;
    if (!CHECK(r->nconvs || strcmp(stk_report_device(r), "cpu:0"))) printf("    none told\n");
    if (r->nconvs) {
        CHECK(ways[0] > 0 && ways[2] > 0);
        CHECK_NEAR(of_ops, flops, 1e-6 * flops);
        CHECK_NEAR(stk_report_conv_share(r), flops / seconds / peak, 1e-6);
        CHECK(peak >= 1e9 * r->roof.gflops[0] * 0.99);
    }
    stk_report_release(r);
}

/* On the host's own processor the books hold all of it. A thread that is put aside in the middle of an operation is on one
   account only: one of a few runs counts. */
static void ops_are_in_the_books(void)
{
    double share = 0;
    for (int attempt = 0; attempt < 5 && !(share > 0.8 && share < 1.25); attempt++) {
        stk_report *r = record(&job_plant, 40, 0);
        REQUIRE(CHECK(r));
        share = seconds_of_ops(r) /
                ((r->book[STK_BOOK_KERNELS] + r->book[STK_BOOK_OPTIMIZER]) * (double)r->book_steps);
        stk_report_release(r);
    }
    CHECK_MSG(share > 0.8 && share < 1.25, "ops take %.3g of what the books say", share);
}

/* Books of another device hold only what the host waited for, and the host sleeps meanwhile in this job. But an operation takes
   no longer than some thread was at it, and no less than its threads' share of what they did together. */
static void ops_are_what_the_device_did(const stk_report *r)
{
    double busy = r->device_busy * r->phase_seconds[STK_PHASE_STEADY], ops = seconds_of_ops(r);
    double least = busy * r->device_threads / (double)r->nthreads;
    CHECK_MSG(ops > 0.9 * least && ops < 1.1 * busy, "ops take %.3g s, the device %.3g to %.3g",
              ops, least, busy);
}

TEST(ops_add_up)
{
    stk_report *r = record(&job_plant, 40, 0);
    REQUIRE(CHECK(r));
    if (strcmp(stk_report_device(r), "cpu:0") != 0)
        ops_are_what_the_device_did(r);
    else
        ops_are_in_the_books();
    stk_report_release(r);
}

/* No two buffers share a byte at the same time, and all of them fit into the arena. */
TEST(the_memory_plan_holds)
{
    stk_report *r = record(&job_plant, 20, 0);
    REQUIRE(CHECK(r && r->nbuffers > 2 && r->nbuffers < STK_BUFFERS_KEPT));
    int64_t sum = 0;
    for (int64_t i = 0; i < r->nbuffers; i++) {
        const stk_buffer_row *a = &r->buffers[i];
        CHECK(a->at >= 0 && a->bytes > 0 && a->at + a->bytes <= r->memory.arena);
        CHECK(a->first <= a->last && a->last <= r->program.regions);
        for (int64_t k = 0; k < i; k++) {
            const stk_buffer_row *b = &r->buffers[k];
            bool apart = a->last < b->first || b->last < a->first || a->at + a->bytes <= b->at ||
                         b->at + b->bytes <= a->at;
            CHECK_MSG(apart, "buffers %lld and %lld", (long long)i, (long long)k);
        }
    }
    for (int k = 0; k < STK_MEMORY_KINDS; k++) sum += r->memory.peak[k];
    CHECK(sum > 0 && sum <= r->memory.arena);
    CHECK(r->memory.peak[STK_MEMORY_GRADIENTS] > 0);
    CHECK(r->memory.weights > 0 && r->memory.inputs > 0);
    stk_report_release(r);
}

TEST(threads_over_time)
{
    stk_report *r = record(&job_plant, 40, 0);
    REQUIRE(CHECK(r && r->nthreads >= 1));
    CHECK_EQ_I64(r->threads[0].nover, STK_SLICES);
    for (int64_t i = 0; i < r->nthreads; i++)
        for (int64_t k = 0; k < r->threads[i].nover; k++)
            CHECK(r->threads[i].over[k] >= 0 && r->threads[i].over[k] <= 1);
    CHECK(r->device_busy > 0 && r->device_busy < 1 && r->device_threads >= 0.99);
    stk_report_release(r);
}

TEST(sampled_steps_are_whole_steps)
{
    stk_report *r = record(&job_plant, 64, 8);
    REQUIRE(CHECK(r));
    int64_t steps = r->phase_steps[STK_PHASE_WARM_UP] + r->phase_steps[STK_PHASE_STEADY];
    CHECK_MSG(steps >= 6 && steps <= 9, "%lld of 64 steps", (long long)steps);
    CHECK(r->book[STK_BOOK_INPUT] > 0.45e-3);
    stk_report_release(r);
}

TEST(only_one_watch)
{
    stk_error err;
    stk_watch *a = NULL, *b = NULL;
    CHECK_OK(stk_watch_start(NULL, &a, &err));
    CHECK_FAILS(stk_watch_start(NULL, &b, &err), STK_ERR_STATE, "already");
    stk_report *r = NULL;
    CHECK_OK(stk_watch_stop(a, &r, &err));
    CHECK_EQ_I64(r ? r->book_steps : -1,
                 0); /* nothing ran: an empty report, which can be written */
    char *text = NULL;
    for (int k = 0; r && k < STK_REPORT_KINDS; k++) {
        CHECK_OK(stk_report_render(r, (stk_report_kind)k, &text, NULL, &err));
        stk_text_free(text);
    }
    stk_report_release(r);
}

/* ---- writers -------------------------------------------------------------------------------------------------- */

/* A report with a doctor's part, so that every corner is written. */
static stk_report *full_report(void)
{
    stk_report *r = record(&job_plant, 40, 0);
    if (!r) return NULL;
    static stk_ceiling ceiling = {"if input were free", {1.9, 1.8, 2.0}};
    static stk_advice advice[2];
    static stk_curve_point curve[3] = {{64, 1e-3, 64000, {1, 1, 1}},
                                       {128, 1.5e-3, 85333, {1.33, 1.3, 1.36}},
                                       {256, 2.9e-3, 88275, {1.38, 1.3, 1.4}}};
    static stk_device_row devices[2] = {{"cpu:0", "measured", 1e-3, 1e-3, ""},
                                        {"NVIDIA T4", "model", 1e-4, 6e-4, "faster"}};
    static stk_conv_cost convs[2] = {{"a/place/whose/name/is/longer/than/its/column",
                                      "conv_bwd_weight", "conv_bwd_weight", "winograd6", 10, 0.3,
                                      6e9, 0.2},
                                     {"conv2d", "conv", "gemm", "own", 10, 0.1, 9e9, 0.9}};
    r->convs = convs, r->nconvs = 2;
    advice[0] = (stk_advice){"prefetch 2", STK_KNOB_PREFETCH,          2, {1.42, 1.38, 1.45},
                             false,        stk_job_settings_defaults()};
    advice[1] = (stk_advice){"batch 128",       STK_KNOB_BATCH, 128,
                             {1.33, 1.3, 1.36}, true,           stk_job_settings_defaults()};
    stk_watch_stage wide = {.name = "shuffle of a name that is longer than its column is",
                            .workers = 64,
                            .elements = 1,
                            .depth = 99999.5,
                            .depth_least = 12345,
                            .depth_most = 99999,
                            .capacity = 100000,
                            .bytes = 123456789,
                            .seconds = 1};
    (void)!stk_report_add_stage(r, &wide, NULL);
    wide.depth = 998.5, wide.depth_least = 997, wide.depth_most = 999, wide.capacity = 999;
    (void)!stk_report_add_stage(r, &wide, NULL);
    r->verdict = "input-bound";
    r->headline = "The step waits for its batches. Make batches ahead.";
    r->evidence = "waiting for batches: 41 % of a step\nslowest stage: map\n";
    r->noise = 0.03;
    r->ceilings = &ceiling, r->nceilings = 1;
    r->advice = advice, r->nadvice = 2;
    r->curve = curve, r->ncurve = 3, r->knee = 128;
    r->devices = devices, r->ndevices = 2;
    r->epoch = (stk_epoch_rows){.steps = 100,
                                .validation_steps = 10,
                                .validation_every = 1,
                                .training = 0.4,
                                .validation = 0.1,
                                .callbacks = 0.05,
                                .checkpoint = 0.01};
    r->left_out = 2;
    if (!r->scaling.npoints) /* of the CPU's threads only: another device has none */
        r->scaling = (stk_scaling){.cut = 1e-3,
                                   .regions = 1,
                                   .point = {{1, 1e-3, 1e-3}},
                                   .npoints = 1,
                                   .limit = {{"matmul", "dense", 1, 1e-3, 1e-3}},
                                   .nlimits = 1};
    return r;
}

TEST(text_fits_100_columns)
{
    stk_error err;
    char *text = NULL;
    stk_report *r = full_report();
    REQUIRE(CHECK(r) && CHECK_OK(stk_report_render(r, STK_REPORT_TEXT, &text, NULL, &err)));
    for (char *line = text; *line;) {
        size_t n = strcspn(line, "\n");
        CHECK_MSG(n <= 100, "%zu columns: %.*s", n, (int)n, line);
        line += n + (line[n] == '\n');
    }
    CHECK_CONTAINS(text, "input-bound");
    CHECK_CONTAINS(text, "1.42x (1.38-1.45)");
    CHECK_CONTAINS(text, "residual");
    CHECK_CONTAINS(text, "38 % of the peak of multiply-adds over all 2 of them"); /* by time */
    CHECK_CONTAINS(text, "callbacks at its end");
    CHECK_CONTAINS(text, "2 comparisons were left out");
    stk_text_free(text);
    stk_report_release(r);
}

TEST(json_is_read_back)
{
    stk_error err;
    char *first = NULL, *second = NULL;
    stk_report *r = full_report(), *back = NULL;
    const char *path = temporary("report.json");
    REQUIRE(CHECK(r) && CHECK_OK(stk_report_save(r, STK_REPORT_JSON, path, &err)));
    REQUIRE(CHECK_OK(stk_report_load(path, &back, &err)));
    CHECK_OK(stk_report_render(r, STK_REPORT_JSON, &first, NULL, &err));
    CHECK_OK(stk_report_render(back, STK_REPORT_JSON, &second, NULL, &err));
    CHECK(!strcmp(first, second));
    stk_job_settings s = stk_report_settings(back);
    CHECK_EQ_I64(s.value[STK_KNOB_PREFETCH], 2);
    CHECK(s.value[STK_KNOB_BATCH] == STK_AS_IS); /* never without being asked */
    char *text = NULL;
    CHECK_OK(stk_report_compare(r, back, &text, &err));
    CHECK_CONTAINS(text, "1.00x");
    stk_text_free(text);
    stk_text_free(first);
    stk_text_free(second);
    stk_report_release(back);
    stk_report_release(r);
    CHECK_FAILS(stk_report_load(temporary("absent.json"), &back, &err), STK_ERR_IO, "absent.json");
}

/* ---- the documented schema ---- */

static bool is_book(const char *name)
{
    for (int b = 0; b < STK_BOOK_COUNT; b++)
        if (!strcmp(stk_book_name((stk_book)b), name)) return true;
    return false;
}

/* Every member below v has its name in the text, in backquotes. */
static void check_members(const stk_json *v, const char *text)
{
    for (int64_t i = 0; v && v->items && i < v->count; i++) {
        const stk_json *item = &v->items[i];
        char quoted[80], list[80];
        if (item->name) {
            snprintf(quoted, sizeof quoted, "`%s`", item->name);
            snprintf(list, sizeof list, "`%s[]`", item->name);
            CHECK_MSG(strstr(text, quoted) || strstr(text, list) || is_book(item->name),
                      "doc/watch.md says nothing about %s", quoted);
        }
        check_members(item, text);
    }
}

static bool has_member(const stk_json *v, const char *name, size_t length)
{
    for (int64_t i = 0; v && v->items && i < v->count; i++) {
        const char *own = v->items[i].name;
        if (own && strlen(own) == length && !strncmp(own, name, length)) return true;
        if (has_member(&v->items[i], name, length)) return true;
    }
    return false;
}

/* Every name in backquotes is that of a member. */
static void check_names(const char *text, const stk_json *root)
{
    for (const char *at = strchr(text, '`'); at; at = strchr(at, '`')) {
        size_t length = strcspn(++at, "`");
        size_t name = length > 2 && !strncmp(at + length - 2, "[]", 2) ? length - 2 : length;
        CHECK_MSG(has_member(root, at, name), "doc/watch.md has a member %.*s, reports have not",
                  (int)length, at);
        at += length + 1;
    }
}

TEST(json_is_as_documented)
{
    stk_error err;
    char *json = NULL, *doc = NULL;
    size_t size = 0;
    stk_json_document *d = NULL;
    stk_report *r = full_report();
    REQUIRE(CHECK(r) && CHECK_OK(stk_report_render(r, STK_REPORT_JSON, &json, &size, &err)));
    REQUIRE(CHECK_OK(stk_json_parse(json, size, NULL, &d, &err)));
    REQUIRE(CHECK_OK(stk_file_read(STK_TEST_DIR "/../doc/watch.md", 1 << 20, &doc, &size, &err)));
    char *table = strstr(doc, "## The JSON report");
    char *last = table ? strstr(table, "A gain has") : NULL,
         *rest = last ? strchr(last, '\n') : NULL;
    if (CHECK(table && rest)) {
        *rest = '\0';
        check_members(stk_json_root(d), table);
        check_names(table, stk_json_root(d));
    }
    stk_free(doc);
    stk_json_release(d);
    stk_text_free(json);
    stk_report_release(r);
}

/* Two convolutions run by two implementations: each is compared with itself, in whatever order they stand. */
TEST(compare_tells_implementations_apart)
{
    stk_error err;
    char *text = NULL;
    stk_report_op one[] = {{.label = "conv", .kernel = "conv", .impl = "own", .seconds = 5},
                           {.label = "conv", .kernel = "conv", .impl = "onednn", .seconds = 1}};
    stk_report_op two[] = {one[1], one[0]};
    stk_report a = {.nops = 2, .ops = one, .book_steps = 1},
               b = {.nops = 2, .ops = two, .book_steps = 1};
    a.book[STK_BOOK_KERNELS] = b.book[STK_BOOK_KERNELS] = 6;
    REQUIRE(CHECK_OK(stk_report_compare(&a, &b, &text, &err)));
    CHECK(!strstr(text, "ops that changed"));
    stk_text_free(text);
    two[1].impl = "xsmm";
    two[1].seconds = 2;
    REQUIRE(CHECK_OK(stk_report_compare(&a, &b, &text, &err)));
    CHECK_CONTAINS(text, "conv own *");
    CHECK_CONTAINS(text, "* another implementation");
    CHECK(!strstr(text, "conv onednn"));
    stk_text_free(text);
}

TEST(compare_says_what_is_different_and_where_it_costs)
{
    stk_error err;
    char *text = NULL;
    stk_layer_cost layers[2][2] = {
        {{.place = "conv2d", .seconds = 4}, {.place = "dense", .seconds = 1}},
        {{.place = "conv2d", .seconds = 2}, {.place = "lstm", .seconds = 3}}};
    stk_report_op op[2] = {
        {.label = "conv", .kernel = "conv", .impl = "own", .seconds = 5, .threads = 2},
        {.label = "conv", .kernel = "conv", .impl = "own", .seconds = 5, .threads = 1}};
    stk_watch_stage stages[2][2] = {
        {{.name = "map decode", .workers = 1, .capacity = 4}, {.name = "shuffle", .workers = 1}},
        {{.name = "map decode", .workers = 3, .capacity = 4}, {.name = "prefetch", .workers = 1}}};
    stk_report r[2];
    for (int i = 0; i < 2; i++) {
        r[i] = (stk_report){.nops = 1,
                            .ops = &op[i],
                            .nplaces = 2,
                            .places = layers[i],
                            .nstages = 2,
                            .stages = stages[i],
                            .book_steps = 1};
        r[i].book[STK_BOOK_KERNELS] = 5;
        r[i].memory.arena = (int64_t)(i + 1) << 20;
        r[i].memory.weights = 1 << 20;
    }
    REQUIRE(CHECK_OK(stk_report_compare(&r[0], &r[1], &text, &err)));
    CHECK_CONTAINS(text, "threads used   2 -> 1");
    CHECK_CONTAINS(text, "map decode: workers 1 -> 3, room 4 -> 4");
    CHECK_CONTAINS(text, "stage          shuffle -> -");
    CHECK_CONTAINS(text, "stage          - -> prefetch");
    CHECK_CONTAINS(text, "1.00 MiB -> 2.00 MiB");
    CHECK(!strstr(text, "weights"));
    const char *changed = strstr(text, "layers that changed");
    if (CHECK(changed)) {
        CHECK_CONTAINS(changed, "conv2d");
        CHECK_CONTAINS(changed, "dense");
        CHECK_CONTAINS(changed, "lstm");
    }
    stk_text_free(text);
}

TEST(html_stands_alone)
{
    stk_error err;
    char *text = NULL;
    stk_report *r = full_report();
    REQUIRE(CHECK(r) && CHECK_OK(stk_report_render(r, STK_REPORT_HTML, &text, NULL, &err)));
    CHECK_CONTAINS(text, "a &lt;job&gt; &amp; its &quot;books&quot;");
    CHECK_CONTAINS(text, "prefers-color-scheme:dark");
    CHECK_CONTAINS(text, "class=\"box hot\"");
    CHECK(!strstr(text, "http:") && !strstr(text, "https:") && !strstr(text, "<script"));
    CHECK(!strstr(text, "nan") && !strstr(text, "inf\""));
    stk_text_free(text);
    stk_report_release(r);
}

TEST(chrome_trace_is_json)
{
    stk_error err;
    char *text = NULL;
    size_t size = 0;
    stk_json_document *d = NULL;
    stk_report *r = full_report();
    REQUIRE(CHECK(r) && CHECK_OK(stk_report_render(r, STK_REPORT_CHROME, &text, &size, &err)));
    if (CHECK_OK(stk_json_parse(text, size, NULL, &d, &err))) {
        const stk_json *events = stk_json_get(stk_json_root(d), "traceEvents");
        CHECK(events && events->count > 20);
        CHECK_STR(stk_json_text(stk_json_get(stk_json_item(events, events->count - 1), "ph"), ""),
                  "X");
    }
    stk_json_release(d);
    stk_text_free(text);
    stk_report_release(r);
}

/* Frame by frame, as TensorBoard reads it; the wheel itself is tried by test/watch/tensorboard_test.py. */
TEST(event_files_have_whole_frames)
{
    stk_error err;
    stk_events *e = NULL;
    char *data = NULL, path[1100];
    size_t size = 0;
    REQUIRE(CHECK_OK(stk_events_new(temporary("logs"), &e, &err)));
    for (int64_t i = 0; i < 5; i++) CHECK_OK(stk_events_scalar(e, "loss", i * 300, 1.0 / 3, &err));
    snprintf(path, sizeof path, "%s", stk_events_path(e));
    CHECK_OK(stk_events_close(e, &err));
    REQUIRE(CHECK_OK(stk_file_read(path, 1 << 20, &data, &size, &err)));
    int frames = 0;
    for (size_t at = 0; at + 16 <= size; frames++) {
        uint64_t length;
        uint32_t crc[2];
        memcpy(&length, data + at, 8);
        memcpy(&crc[0], data + at + 8, 4);
        REQUIRE(CHECK(length < 1000 && at + 16 + length <= size));
        memcpy(&crc[1], data + at + 12 + length, 4);
        CHECK_EQ_I64(crc[0], stk_crc32c_mask(stk_crc32c(0, data + at, 8)));
        CHECK_EQ_I64(crc[1], stk_crc32c_mask(stk_crc32c(0, data + at + 12, length)));
        at += 16 + length;
    }
    CHECK_EQ_I64(frames, 6);
    unlink(path);
    stk_free(data);
}

TEST(settings_are_stored)
{
    stk_error err;
    stk_job_settings s = stk_job_settings_defaults(), back = s;
    const char *path = temporary("advice.json");
    s.value[STK_KNOB_PREFETCH] = 2;
    s.value[STK_KNOB_WORKERS] = 4;
    s.value[STK_KNOB_FREE_INPUT] = 1; /* for measuring only: not stored */
    CHECK_OK(stk_job_settings_save(&s, path, &err));
    CHECK_OK(stk_job_settings_load(path, &back, &err));
    CHECK_EQ_I64(back.value[STK_KNOB_PREFETCH], 2);
    CHECK_EQ_I64(back.value[STK_KNOB_WORKERS], 4);
    CHECK(back.value[STK_KNOB_FREE_INPUT] == STK_AS_IS);
    FILE *file = fopen(path, "w");
    REQUIRE(CHECK(file));
    fputs("{\"warp\": 9}", file);
    fclose(file);
    CHECK_FAILS(stk_job_settings_load(path, &back, &err), STK_ERR_FORMAT, "warp");
}

static stk_status write_all(const stk_report *r)
{
    for (int k = 0; k < STK_REPORT_KINDS; k++) {
        char *text = NULL;
        STK_TRY(stk_report_render(r, (stk_report_kind)k, &text, NULL, NULL));
        stk_text_free(text);
    }
    return STK_OK;
}

TEST(every_allocation_may_fail)
{
    stk_report *r = full_report();
    REQUIRE(CHECK(r));
    OOM_LOOP(write_all(r));
    stk_report_release(r);
}

TEST_MAIN()
