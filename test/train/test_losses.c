/* Losses: values and gradients as Keras gives them, weighted and not, from text and from JSON; masks; labels that are no
 * classes; mistakes. */
#include "fixture.h"

#include "stoker/losses.h"
#include "stoker/nn.h"

static stk_val made_by(stk_graph *g, const char *maker, stk_val x)
{
    if (!strcmp(maker, "softmax")) return stk_g_softmax(g, x, -1);
    if (!strcmp(maker, "sigmoid")) return stk_g_sigmoid(g, x);
    return x;
}

static stk_val input_like(stk_graph *g, const char *name, const stk_tensor *t)
{
    return t ? stk_g_input(g, name, t->dtype, t->rank, t->shape) : 0;
}

static void compare(const fixture *f, int64_t i, const stk_loss *loss)
{
    stk_error err;
    stk_graph *g = NULL;
    stk_program *p = NULL;
    const char *label = fixture_text(f, i, "text");
    stk_tensor *t[3] = {fixture_find(f, "true", i), fixture_find(f, "pred", i),
                        fixture_find(f, "weight", i)};
    static const char *const names[3] = {"true", "pred", "weight"};
    stk_val v[3];
    CHECK_OK(stk_graph_new(&g, &err));
    for (int k = 0; k < 3; k++) v[k] = input_like(g, names[k], t[k]);
    stk_val value =
        stk_g_loss(g, loss, v[0], made_by(g, fixture_text(f, i, "maker"), v[1]), v[2], 0);
    stk_val d = 0;
    stk_g_gradients(g, value, 1, &v[1], &d);
    stk_g_output(g, "value", value);
    stk_g_output(g, "gradient", d);
    if (CHECK_OK(stk_program_new(g, NULL, &p, &err))) {
        stk_tensor *got = NULL;
        for (int k = 0; k < 3; k++)
            if (t[k]) CHECK_OK(stk_program_feed(p, names[k], t[k], &err));
        CHECK_OK(stk_program_run(p, 1, &err));
        CHECK_OK(stk_program_read(p, "value", &got, &err));
        fixture_near(label, "value", got, fixture_find(f, "mean", i), 1e-5);
        stk_tensor_release(got);
        got = NULL;
        CHECK_OK(stk_program_read(p, "gradient", &got, &err));
        fixture_near(label, "gradient", got, fixture_find(f, "grad", i), 1e-5);
        stk_tensor_release(got);
    } else {
        printf("  %s\n", label);
    }
    stk_program_release(p);
    stk_graph_release(g);
}

static void parse_json(const fixture *f, int64_t i, stk_loss *out)
{
    stk_error err;
    stk_json_writer w = {0};
    char *text = NULL;
    size_t size;
    stk_json_put_tree(&w, stk_json_get(stk_json_item(f->cases, i), "json"));
    CHECK_OK(stk_json_finish(&w, &text, &size, &err));
    if (!CHECK_OK(stk_loss_parse(text, out, &err))) printf("  %s\n", text);
    stk_free(text);
}

TEST(values_and_gradients_are_those_of_keras)
{
    stk_error err;
    fixture f;
    if (!fixture_open(&f, "losses.npz")) return;
    for (int64_t i = 0; i < f.cases->count; i++) {
        stk_loss text, json;
        memset(&text, 0, sizeof text), memset(&json, 0, sizeof json);
        if (CHECK_OK(stk_loss_parse(fixture_text(&f, i, "text"), &text, &err)))
            compare(&f, i, &text);
        parse_json(&f, i, &json);
        CHECK_EQ_I64(json.kind, text.kind);
        CHECK_EQ_I64(json.reduction, text.reduction);
        CHECK_EQ_I64(json.from_logits, text.from_logits);
        CHECK_EQ_I64(json.ignore_class, text.ignore_class);
        CHECK_NEAR(json.label_smoothing, text.label_smoothing, 0);
        CHECK_NEAR(json.gamma, text.gamma, 0);
    }
    fixture_close(&f);
}

/* Values of a graph without inputs. */
static double value_of(stk_graph *g, stk_val v)
{
    stk_error err;
    stk_program *p = NULL;
    stk_tensor *t = NULL;
    double value = NAN;
    stk_g_output(g, "v", v);
    if (CHECK_OK(stk_program_new(g, NULL, &p, &err)) && CHECK_OK(stk_program_run(p, 1, &err)) &&
        CHECK_OK(stk_program_read(p, "v", &t, &err)))
        value = stk_tensor_at(t, 0);
    stk_tensor_release(t);
    stk_program_release(p);
    return value;
}

static stk_val row(stk_graph *g, stk_dtype dtype, int64_t n, const double *numbers)
{
    stk_error err;
    stk_tensor *t = NULL;
    CHECK_OK(stk_tensor_new(dtype, 1, &n, &t, &err));
    for (int64_t i = 0; i < n; i++) CHECK_OK(stk_tensor_set(t, i, numbers[i], &err));
    stk_val v = stk_g_const(g, t);
    stk_tensor_release(t);
    return v;
}

TEST(masks_leave_samples_out)
{
    stk_error err;
    stk_loss mse = stk_loss_defaults(STK_LOSS_MEAN_SQUARED_ERROR);
    static const double masks[2][4] = {{1, 0, 1, 0}, {0, 0, 0, 0}};
    static const double want[2] = {(1 + 9) / 2.0, 0};
    for (int k = 0; k < 2; k++) {
        stk_graph *g = NULL;
        CHECK_OK(stk_graph_new(&g, &err));
        stk_val t =
            stk_g_reshape(g, row(g, STK_F32, 4, (double[]){1, 100, 3, 100}), 2, (int64_t[]){4, 1});
        stk_val mask = row(g, STK_BOOL, 4, masks[k]);
        CHECK_NEAR(value_of(g, stk_g_loss(g, &mse, t, stk_g_zeros_like(g, t), 0, mask)), want[k],
                   1e-6);
        stk_graph_release(g);
    }
}

TEST(labels_that_are_no_classes)
{
    stk_error err;
    stk_tensor *t = NULL;
    stk_loss loss = stk_loss_defaults(STK_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY),
             mse = stk_loss_defaults(STK_LOSS_MEAN_SQUARED_ERROR);
    CHECK_OK(stk_tensor_new(STK_I32, 1, (int64_t[]){4}, &t, &err));
    CHECK_OK(stk_tensor_set(t, 2, 10, &err));
    CHECK_OK(stk_loss_check_labels(&loss, 11, t, &err));
    CHECK_FAILS(stk_loss_check_labels(&loss, 10, t, &err), STK_ERR_RANGE,
                "label 2 is 10, but the model has 10 outputs, for classes 0 to 9");
    CHECK_OK(stk_loss_check_labels(&mse, 10, t, &err));
    loss.ignore_class = 10;
    CHECK_OK(stk_loss_check_labels(&loss, 10, t, &err));
    CHECK_OK(stk_tensor_set(t, 0, -1, &err));
    CHECK_FAILS(stk_loss_check_labels(&loss, 10, t, &err), STK_ERR_RANGE, "label 0 is -1");
    stk_tensor_release(t);
    /* All dtypes, dense or not. */
    static const stk_dtype dtypes[] = {STK_I64, STK_U8, STK_F32, STK_I16};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        stk_tensor *all = NULL, *column = NULL;
        CHECK_OK(stk_tensor_new(dtypes[i], 2, (int64_t[]){40, 2}, &all, &err));
        CHECK_OK(stk_tensor_slice(all, (int64_t[]){0, 1}, (int64_t[]){40, 1}, &column, &err));
        CHECK_OK(stk_tensor_set(all, 2 * 37 + 1, 12, &err)); /* row 37 of the column */
        CHECK_OK(stk_loss_check_labels(&loss, 13, all, &err));
        CHECK_FAILS(stk_loss_check_labels(&loss, 12, all, &err), STK_ERR_RANGE, "label 75 is 12,");
        CHECK_FAILS(stk_loss_check_labels(&loss, 12, column, &err), STK_ERR_RANGE, "label 37 is");
        stk_tensor_release(column);
        stk_tensor_release(all);
    }
    /* Inside of a program the row's loss is NaN, which is seen. */
    stk_graph *g = NULL;
    loss.ignore_class = INT64_MIN;
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val logits = stk_g_fill(g, STK_F32, 2, (int64_t[]){2, 3}, 0);
    stk_val labels = row(g, STK_I64, 2, (double[]){0, 7});
    CHECK(isnan(value_of(g, stk_g_loss(g, &loss, labels, logits, 0, 0))));
    stk_graph_release(g);
}

TEST(names_of_all_kinds)
{
    stk_error err;
    stk_loss loss;
    for (int k = 0; k < STK_LOSS_COUNT; k++) {
        CHECK_OK(stk_loss_parse(stk_loss_name((stk_loss_kind)k), &loss, &err));
        CHECK_EQ_I64(loss.kind, k);
    }
    static const struct {
        const char *name;
        stk_loss_kind kind;
    } others[] = {{"MSE", STK_LOSS_MEAN_SQUARED_ERROR},
                  {"MeanAbsoluteError", STK_LOSS_MEAN_ABSOLUTE_ERROR},
                  {"kld", STK_LOSS_KL_DIVERGENCE},
                  {"kullback_leibler_divergence", STK_LOSS_KL_DIVERGENCE},
                  {"logcosh", STK_LOSS_LOG_COSH}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        CHECK_OK(stk_loss_parse(others[i].name, &loss, &err));
        CHECK_EQ_I64(loss.kind, others[i].kind);
    }
}

TEST(mistakes)
{
    stk_error err;
    stk_loss loss;
    stk_graph *g = NULL;
    CHECK_FAILS(stk_loss_parse("mean_square_error", &loss, &err), STK_ERR_ARGUMENT,
                "did you mean 'mean_squared_error'?");
    CHECK_FAILS(stk_loss_parse("mse:delta=1", &loss, &err), STK_ERR_ARGUMENT,
                "it takes: reduction");
    CHECK_FAILS(stk_loss_parse("huber:delta=-1", &loss, &err), STK_ERR_RANGE, "delta is -1");
    CHECK_FAILS(stk_loss_parse("mse:reduction=none", &loss, &err), STK_ERR_ARGUMENT,
                "sum_over_batch_size|sum");
    CHECK_FAILS(
        stk_loss_parse("{\"class_name\": \"Huber\", \"config\": {\"axis\": 1}}", &loss, &err),
        STK_ERR_UNSUPPORTED, "axis");
    loss = stk_loss_defaults(STK_LOSS_CATEGORICAL_CROSSENTROPY);
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val p = stk_g_fill(g, STK_F32, 2, (int64_t[]){4, 3}, 0.5),
            t = stk_g_fill(g, STK_I32, 1, (int64_t[]){4}, 1);
    stk_g_loss(g, &loss, t, p, 0, 0);
    CHECK_FAILS(stk_graph_status(g, &err), STK_ERR_SHAPE, "use sparse_categorical_crossentropy");
    stk_graph_release(g);
    loss = stk_loss_defaults(STK_LOSS_SPARSE_CATEGORICAL_CROSSENTROPY);
    CHECK_OK(stk_graph_new(&g, &err));
    p = stk_g_fill(g, STK_F32, 2, (int64_t[]){4, 3}, 0.5);
    stk_g_loss(g, &loss, p, p, 0, 0);
    CHECK_FAILS(stk_graph_status(g, &err), STK_ERR_SHAPE, "use categorical_crossentropy");
    stk_graph_release(g);
}

static stk_status build_all(void)
{
    stk_error err;
    stk_graph *g = NULL;
    stk_loss loss;
    stk_status status = stk_loss_parse(
        "{\"class_name\": \"CategoricalCrossentropy\", \"config\": {\"label_smoothing\": 0.1}}",
        &loss, &err);
    if (status == STK_OK) status = stk_graph_new(&g, &err);
    if (status == STK_OK) {
        stk_val p = stk_g_fill(g, STK_F32, 2, (int64_t[]){4, 3}, 0.5);
        stk_g_loss(g, &loss, p, p, stk_g_fill(g, STK_F32, 1, (int64_t[]){4}, 1),
                   stk_g_fill(g, STK_BOOL, 1, (int64_t[]){4}, 1));
        status = stk_graph_status(g, &err);
    }
    stk_graph_release(g);
    return status;
}
TEST(out_of_memory) { OOM_LOOP(build_all()); }

TEST_MAIN()
