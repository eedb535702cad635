/* The experiments of `stoker paradox`: the cure computes what the original computes, and what is told is what was measured. */
#include "check.h"
#include "temporary.h"

#include "base/json.h"
#include "watch/paradox/paradox.h"

/* ---- the same numbers ---------------------------------------------------------------------------------------- */

static stk_tensor *outcome_after(const stk_experiment *e, bool cured, stk_device *device,
                                 int64_t units)
{
    stk_error err;
    stk_contender c;
    stk_tensor *out = NULL;
    if (!CHECK_OK(e->open(device, cured, &c, &err))) return NULL;
    CHECK_EQ_I64(units % c.units, 0);
    /* in two stretches, as turns are: the pipeline goes on where it was */
    int64_t steps = units / c.units, first = steps / 2;
    if (first) CHECK_OK(c.run(c.self, first, &err));
    CHECK_OK(c.run(c.self, steps - first, &err));
    CHECK_OK(c.outcome(c.self, &out, &err));
    c.close(c.self);
    return out;
}

/* Work that is whole steps of both. */
static int64_t common_work(const stk_experiment *e, stk_device *device)
{
    enum { STEPS = 6 };
    stk_error err;
    int64_t most = 1;
    for (int i = 0; i < 2; i++) {
        stk_contender c;
        if (!CHECK_OK(e->open(device, i, &c, &err))) return 0;
        if (c.units > most) most = c.units;
        c.close(c.self);
    }
    /* the one that makes a new model each time has made one step of it, whatever it ran */
    return most * (strcmp(e->row.id, "2") ? STEPS : 1);
}

static void check_pair(const stk_experiment *e, stk_device *device)
{
    int64_t units = common_work(e, device);
    stk_tensor *a = outcome_after(e, false, device, units);
    stk_tensor *b = outcome_after(e, true, device, units);
    bool exact = strcmp(e->row.id, "6a") != 0; /* expf there, a polynomial here */
    double worst = 0, size = 0;
    if (a && b && CHECK_EQ_I64(stk_tensor_count(a), stk_tensor_count(b)))
        for (int64_t i = 0; i < stk_tensor_count(a); i++) {
            worst = fmax(worst, fabs(stk_tensor_at(a, i) - stk_tensor_at(b, i)));
            size = fmax(size, fabs(stk_tensor_at(a, i)));
        }
    CHECK_MSG(size > 0, "%s: its outcome is nothing but zeros", e->row.id);
    CHECK_MSG(worst <= (exact ? 0 : 1e-5), "%s: as written and cured differ by %g", e->row.id,
              worst);
    stk_tensor_release(a);
    stk_tensor_release(b);
}

TEST(a_cure_computes_the_same)
{
    stk_error err;
    stk_device *device = NULL;
    REQUIRE(CHECK_OK(stk_device_open("default", 0, &device, &err)));
    for (int32_t i = 0; i < stk_paradox_row_count(); i++)
        if (!stk_experiment_at(i)->row.changes_mathematics)
            check_pair(stk_experiment_at(i), device);
    stk_device_release(device);
}

/* ---- choosing ---------------------------------------------------------------------------------------------------- */

TEST(rows_have_names_and_words)
{
    CHECK_EQ_I64(stk_paradox_row_count(), 9);
    for (int32_t i = 0; i < stk_paradox_row_count(); i++) {
        stk_paradox_row r = stk_paradox_row_at(i);
        CHECK(r.id[0] >= '1' && r.id[0] <= '6' && r.name[0] && r.per[0] && r.cause[0] && r.cure[0]);
    }
    CHECK_STR(stk_paradox_row_at(99).id, "");
}

static stk_status run_only(const char *only, const char *device, stk_paradox **p, stk_error *err)
{
    stk_paradox_options o = stk_paradox_options_defaults();
    o.only = only;
    o.devices = &device;
    o.ndevices = device ? 1 : 0;
    o.seconds = 0.2;
    return stk_paradox_run(&o, p, err);
}

TEST(what_is_not_there_is_refused)
{
    stk_error err;
    stk_paradox *p = NULL;
    CHECK_FAILS(run_only("7", NULL, &p, &err), STK_ERR_ARGUMENT,
                "no experiment '7'; there are 1a, 1b, 2");
    CHECK_FAILS(run_only("5c", NULL, &p, &err), STK_ERR_ARGUMENT, "'5c'");
    CHECK_FAILS(run_only("5a", "gpu:77", &p, &err), STK_ERR_DEVICE, "no device \"gpu:77\"");
    CHECK(!p);
    stk_paradox_release(NULL);
}

/* ---- measuring ----------------------------------------------------------------------------------------------------- */

typedef struct seen {
    int asked, rows, stop_at;
} seen;

static bool count_asked(void *context, double share, const char *doing)
{
    seen *s = context;
    CHECK(share >= 0 && share <= 1 && doing[0]);
    return ++s->asked != s->stop_at;
}

static void count_rows(void *context, const stk_paradox *p, const stk_paradox_cell *cells,
                       int32_t n)
{
    seen *s = context;
    CHECK_EQ_I64(n, stk_paradox_device_count(p));
    CHECK(cells[0].gain.best > 0);
    s->rows++;
}

TEST(it_ends_when_asked)
{
    stk_error err;
    stk_paradox *p = NULL;
    seen s = {.stop_at = 2};
    stk_paradox_options o = stk_paradox_options_defaults();
    o.only = "6b,3";
    o.progress = count_asked;
    o.context = &s;
    CHECK_FAILS(stk_paradox_run(&o, &p, &err), STK_ERR_CANCELLED, "interrupted");
    CHECK(!p && s.asked == 2);
}

/* Books are shares of a whole; times and gain belong together. */
static void check_cell(const stk_paradox_cell *c)
{
    const stk_paradox_side *sides[] = {&c->written, &c->cured};
    CHECK_MSG(!c->trouble[0], "%s: %s", stk_paradox_row_at(c->row).id, c->trouble);
    CHECK(c->gain.low <= c->gain.best && c->gain.best <= c->gain.high && c->gain.low > 0);
    CHECK_NEAR(c->written.seconds / c->cured.seconds / c->gain.best, 1, 1e-9);
    for (int i = 0; i < 2; i++) {
        double sum = 0;
        for (int b = 0; b < STK_BOOK_COUNT; b++) sum += sides[i]->book[b];
        CHECK_MSG(fabs(sum - 1) < 0.01, "%s: its books add up to %g", stk_paradox_row_at(c->row).id,
                  sum);
    }
}

TEST(every_row_is_measured_and_leaves_no_file)
{
    stk_error err;
    stk_paradox *p = NULL;
    seen s = {0};
    temporary(""); /* makes the folder */
    setenv("TMPDIR", temporary_folder, 1);
    stk_paradox_options o = stk_paradox_options_defaults();
    const char *device = "default";
    o.devices = &device, o.ndevices = 1;
    o.seconds = 0.2;
    o.row = count_rows;
    o.context = &s;
    REQUIRE(CHECK_OK(stk_paradox_run(&o, &p, &err)));
    CHECK_EQ_I64(temporary_count(), 0);
    CHECK_EQ_I64(s.rows, stk_paradox_row_count());
    CHECK_EQ_I64(stk_paradox_cell_count(p), stk_paradox_row_count());
    for (int32_t i = 0; i < stk_paradox_cell_count(p); i++) check_cell(stk_paradox_cell_at(p, i));
    CHECK(!stk_paradox_cell_at(p, 99) && !stk_paradox_device(p, 1));
    stk_paradox_release(p);
    unsetenv("TMPDIR");
}

TEST(it_is_told_in_three_ways)
{
    stk_error err;
    stk_paradox *p = NULL;
    char *text = NULL;
    stk_json_document *doc = NULL;
    REQUIRE(CHECK_OK(run_only("5,6b", NULL, &p, &err)));
    if (CHECK_OK(stk_paradox_render(p, STK_REPORT_TEXT, &text, &err))) {
        CHECK_CONTAINS(text, "5a   a million tiny adds\n     cpu:0, per million adds");
        CHECK_CONTAINS(text, "\n6b   results read after every step\n");
        for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
            CHECK_MSG(strcspn(line, "\n") <= 100, "a line of %zu letters", strcspn(line, "\n"));
    }
    stk_text_free(text);
    if (CHECK_OK(stk_paradox_render(p, STK_REPORT_JSON, &text, &err)))
        CHECK_OK(stk_json_parse(text, strlen(text), NULL, &doc, &err));
    stk_text_free(text);
    stk_json_release(doc);
    if (CHECK_OK(stk_paradox_render(p, STK_REPORT_HTML, &text, &err))) {
        CHECK_CONTAINS(text, "<b>5b</b> a million tiny matrix products");
        CHECK_CONTAINS(text, "</html>");
    }
    stk_text_free(text);
    CHECK_STATUS(stk_paradox_render(p, STK_REPORT_CHROME, &text, &err), STK_ERR_ARGUMENT);
    stk_paradox_release(p);
}

TEST_MAIN()
