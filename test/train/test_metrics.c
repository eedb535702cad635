/* Metrics: after every batch the number that Keras gives, weighted and not, from text and from JSON; matrices; resets;
 * classes that never occur; mistakes. */
#include "fixture.h"

#include "stoker/metrics.h"

static stk_val input_like(stk_graph *g, const char *name, const stk_tensor *t)
{
    return t ? stk_g_input(g, name, t->dtype, t->rank - 1, t->shape + 1) : 0;
}

static void compare(const fixture *f, int64_t i, const stk_metric *metric)
{
    stk_error err;
    stk_graph *g = NULL;
    stk_program *p = NULL;
    const char *label = fixture_text(f, i, "text");
    stk_tensor *t[3] = {fixture_find(f, "true", i), fixture_find(f, "pred", i),
                        fixture_find(f, "weight", i)},
               *want = fixture_find(f, "result", i);
    static const char *const names[3] = {"true", "pred", "weight"};
    stk_val v[3];
    CHECK_OK(stk_graph_new(&g, &err));
    for (int k = 0; k < 3; k++) v[k] = input_like(g, names[k], t[k]);
    stk_g_metric(g, metric, "m", v[0], v[1], v[2], 0);
    if (!CHECK_OK(stk_program_new(g, NULL, &p, &err))) printf("  %s\n", label);
    for (int64_t batch = 0; p && batch < want->shape[0]; batch++) {
        stk_tensor *got = NULL, *here = fixture_row(want, batch);
        for (int k = 0; k < 3; k++) {
            stk_tensor *part = t[k] ? fixture_row(t[k], batch) : NULL;
            if (part) CHECK_OK(stk_program_feed(p, names[k], part, &err));
            stk_tensor_release(part);
        }
        CHECK_OK(stk_program_run(p, 1, &err));
        CHECK_OK(stk_metric_result(metric, "m", stk_program_store(p), &got, &err));
        if (!fixture_near(label, "result", got, here, 1e-5))
            printf("  after batch %lld\n", (long long)batch);
        stk_tensor_release(got);
        stk_tensor_release(here);
    }
    stk_program_release(p);
    stk_graph_release(g);
}

TEST(results_are_those_of_keras)
{
    stk_error err;
    fixture f;
    if (!fixture_open(&f, "metrics.npz")) return;
    for (int64_t i = 0; i < f.cases->count; i++) {
        stk_metric text, json;
        stk_json_writer w = {0};
        char *keras = NULL;
        size_t size;
        if (!CHECK_OK(stk_metric_parse(fixture_text(&f, i, "text"), &text, &err))) continue;
        compare(&f, i, &text);
        stk_json_put_tree(&w, stk_json_get(stk_json_item(f.cases, i), "json"));
        CHECK_OK(stk_json_finish(&w, &keras, &size, &err));
        if (CHECK_OK(stk_metric_parse(keras, &json, &err)))
            compare(&f, i, &json);
        else
            printf("  %s\n", keras);
        stk_free(keras);
    }
    fixture_close(&f);
}

TEST(names_are_kept_as_written)
{
    stk_error err;
    stk_metric m;
    CHECK_OK(stk_metric_parse("acc", &m, &err));
    CHECK_STR(m.name, "acc");
    CHECK_EQ_I64(m.kind, STK_METRIC_ACCURACY);
    CHECK_OK(stk_metric_parse("auc:curve=PR", &m, &err));
    CHECK_STR(m.name, "auc");
    CHECK_EQ_I64(m.curve, 1);
    CHECK_OK(stk_metric_parse("mae", &m, &err));
    CHECK_EQ_I64(m.kind, STK_METRIC_MEAN_LOSS);
    CHECK_EQ_I64(m.loss.kind, STK_LOSS_MEAN_ABSOLUTE_ERROR);
    CHECK_OK(
        stk_metric_parse("{\"class_name\": \"AUC\", \"config\": {\"curve\": \"PR\"}}", &m, &err));
    CHECK_STR(m.name, "auc");
    for (int k = 0; k < STK_METRIC_COUNT; k++)
        CHECK(stk_metric_defaults((stk_metric_kind)k).name[0]);
    CHECK_EQ_I64(stk_metric_defaults(STK_METRIC_AUC).num_thresholds, 200);
}

static void fill(stk_tensor *t, const double *numbers)
{
    stk_error err;
    for (int64_t i = 0; i < stk_tensor_count(t); i++)
        CHECK_OK(stk_tensor_set(t, i, numbers[i], &err));
}

TEST(confusion_matrices_count_and_are_reset)
{
    stk_error err;
    stk_graph *g = NULL;
    stk_program *p = NULL;
    stk_metric m;
    stk_tensor *t = NULL, *y = NULL, *got = NULL;
    CHECK_OK(stk_metric_parse("confusion_matrix", &m, &err));
    CHECK_OK(stk_graph_new(&g, &err));
    stk_g_metric(g, &m, "c", stk_g_input(g, "t", STK_I32, 1, (int64_t[]){4}),
                 stk_g_input(g, "p", STK_F32, 2, (int64_t[]){4, 3}), 0, 0);
    CHECK_OK(stk_program_new(g, NULL, &p, &err));
    CHECK_OK(stk_tensor_new(STK_I32, 1, (int64_t[]){4}, &t, &err));
    CHECK_OK(stk_tensor_new(STK_F32, 2, (int64_t[]){4, 3}, &y, &err));
    fill(t, (double[]){0, 1, 1, 9}); /* 9 is no class: left out */
    fill(y, (double[]){1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0});
    CHECK_OK(stk_program_feed(p, "t", t, &err));
    CHECK_OK(stk_program_feed(p, "p", y, &err));
    CHECK_OK(stk_program_run(p, 2, &err));
    CHECK_OK(stk_metric_result(&m, "c", stk_program_store(p), &got, &err));
    CHECK_EQ_I64(got->rank, 2);
    static const double want[9] = {2, 0, 0, 0, 2, 2, 0, 0, 0};
    for (int i = 0; i < 9; i++) CHECK_NEAR(stk_tensor_at(got, i), want[i], 0);
    stk_tensor_release(got);
    got = NULL;
    CHECK_OK(stk_metric_reset("c", stk_program_store(p), &err));
    CHECK_OK(stk_metric_result(&m, "c", stk_program_store(p), &got, &err));
    for (int i = 0; i < 9; i++) CHECK_NEAR(stk_tensor_at(got, i), 0, 0);
    stk_tensor_release(got);
    stk_tensor_release(t), stk_tensor_release(y);
    stk_program_release(p);
    stk_graph_release(g);
}

/* Masked positions and weights of 0 do not count; a mean of nothing is 0, not NaN. */
TEST(masks_and_nothing_at_all)
{
    stk_error err;
    static const double masks[2][4] = {{1, 1, 0, 0}, {0, 0, 0, 0}};
    for (int k = 0; k < 2; k++) {
        stk_graph *g = NULL;
        stk_program *p = NULL;
        stk_metric m;
        stk_tensor *t = NULL, *mask = NULL, *got = NULL;
        CHECK_OK(stk_metric_parse("mae", &m, &err));
        CHECK_OK(stk_graph_new(&g, &err));
        stk_val v = stk_g_input(g, "t", STK_F32, 3, (int64_t[]){2, 2, 1});
        stk_g_metric(g, &m, "m", v, stk_g_zeros_like(g, v), 0,
                     stk_g_input(g, "mask", STK_BOOL, 2, (int64_t[]){2, 2}));
        CHECK_OK(stk_program_new(g, NULL, &p, &err));
        CHECK_OK(stk_tensor_new(STK_F32, 3, (int64_t[]){2, 2, 1}, &t, &err));
        CHECK_OK(stk_tensor_new(STK_BOOL, 2, (int64_t[]){2, 2}, &mask, &err));
        fill(t, (double[]){1, 3, 100, 100});
        fill(mask, masks[k]);
        CHECK_OK(stk_program_feed(p, "t", t, &err));
        CHECK_OK(stk_program_feed(p, "mask", mask, &err));
        CHECK_OK(stk_program_run(p, 1, &err));
        CHECK_OK(stk_metric_result(&m, "m", stk_program_store(p), &got, &err));
        CHECK_NEAR(stk_tensor_at(got, 0), k ? 0 : 2, 1e-6);
        stk_tensor_release(got), stk_tensor_release(t), stk_tensor_release(mask);
        stk_program_release(p);
        stk_graph_release(g);
    }
}

TEST(mistakes)
{
    stk_error err;
    stk_metric m;
    stk_graph *g = NULL;
    CHECK_FAILS(stk_metric_parse("precison", &m, &err), STK_ERR_ARGUMENT,
                "did you mean 'precision'?");
    CHECK_FAILS(stk_metric_parse("auc:curve=XY", &m, &err), STK_ERR_ARGUMENT, "ROC|PR");
    CHECK_FAILS(stk_metric_parse("auc:num_thresholds=1", &m, &err), STK_ERR_RANGE, "from 2");
    CHECK_FAILS(stk_metric_parse("auc:multi_label=true", &m, &err), STK_ERR_RANGE, "multi_label");
    CHECK_FAILS(stk_metric_parse("mean_loss", &m, &err), STK_ERR_ARGUMENT, "name of the loss");
    CHECK_OK(stk_metric_parse("mean_io_u", &m, &err));
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val v = stk_g_fill(g, STK_F32, 1, (int64_t[]){4}, 0.5);
    stk_g_metric(g, &m, "m", v, v, 0, 0);
    CHECK_FAILS(stk_graph_status(g, &err), STK_ERR_ARGUMENT, "num_classes must be given");
    stk_graph_release(g);
    CHECK_OK(stk_metric_parse("f1_score", &m, &err));
    CHECK_OK(stk_graph_new(&g, &err));
    v = stk_g_fill(g, STK_F32, 1, (int64_t[]){4}, 0.5);
    stk_g_metric(g, &m, "m", v, v, 0, 0);
    CHECK_FAILS(stk_graph_status(g, &err), STK_ERR_SHAPE, "[samples, classes]");
    stk_graph_release(g);
}

static stk_program *oom_program;
static stk_status all_results(void)
{
    static const char *const texts[] = {"auc", "f1_score", "accuracy", "confusion_matrix",
                                        "recall"};
    stk_error err;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        stk_metric m;
        stk_tensor *t = NULL;
        STK_TRY(stk_metric_parse(texts[i], &m, &err));
        STK_TRY(stk_metric_result(&m, texts[i], stk_program_store(oom_program), &t, &err));
        stk_tensor_release(t);
    }
    return stk_metric_reset("auc", stk_program_store(oom_program), &err);
}

static stk_status build_all(void)
{
    static const char *const texts[] = {"auc", "f1_score", "accuracy", "confusion_matrix",
                                        "recall"};
    stk_error err;
    stk_graph *g = NULL;
    STK_TRY(stk_graph_new(&g, &err));
    stk_val v = stk_g_input(g, "v", STK_F32, 2, (int64_t[]){4, 3});
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        stk_metric m = {.kind = STK_METRIC_ACCURACY};
        if (stk_metric_parse(texts[i], &m, &err) == STK_OK)
            stk_g_metric(g, &m, texts[i], v, v, 0, 0);
    }
    stk_status status = stk_graph_status(g, &err);
    if (status == STK_OK && !oom_program) status = stk_program_new(g, NULL, &oom_program, &err);
    stk_graph_release(g);
    return status;
}

TEST(out_of_memory)
{
    CHECK(build_all() == STK_OK);
    OOM_LOOP(build_all());
    OOM_LOOP(all_results());
    stk_program_release(oom_program);
}

TEST_MAIN()
