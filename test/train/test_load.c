/* Data files for a model, by their kind: which array or column is what, and the loss that fits. */
#include "check.h"
#include "temporary.h"

#include "stoker/files.h"
#include "stoker/load.h"

static stk_model *dense(int64_t in, const char *last)
{
    stk_model *m = NULL;
    stk_error err;
    char input[64];
    snprintf(input, sizeof input, "Input(shape=(%lld,))", (long long)in);
    CHECK_OK(stk_model_new("m", &m, &err));
    stk_model_add(m, input);
    stk_model_add(m, last);
    CHECK_OK(stk_model_build(m, 0, NULL, &err));
    return m;
}

static stk_tensor *array(stk_dtype dtype, int64_t rows, int64_t columns)
{
    stk_tensor *t = NULL;
    stk_error err;
    CHECK_OK(stk_tensor_new(dtype, columns ? 2 : 1, (int64_t[]){rows, columns}, &t, &err));
    return t;
}

static void save_npz(const char *path, const char *const *names, stk_tensor **t, int32_t n)
{
    stk_error err;
    CHECK_OK(stk_npz_save(path, n, names, t, &err));
    for (int32_t i = 0; i < n; i++) stk_tensor_release(t[i]);
}

TEST(columns_of_tables)
{
    stk_model *m = dense(2, "Dense(1)");
    stk_loaded_data d;
    stk_error err;
    const char *path = temporary("t.csv");
    CHECK_OK(stk_text_save(path, "price,a,b\n1.5,2,3\n4.5,5,6\n", &err));
    stk_load_options o = stk_load_defaults();
    o.target = "price";
    REQUIRE(CHECK_OK(stk_load_data(m, 1, &path, &o, &d, &err)));
    CHECK(d.view.nx == 1 && d.view.ny == 1 && d.view.x == d.x && !d.view.dataset);
    CHECK_EQ_I64(d.x[0]->shape[1], 2);
    CHECK_NEAR(stk_tensor_at(d.x[0], 2), 5, 0); /* row by row: 2 3, 5 6 */
    CHECK_NEAR(stk_tensor_at(d.y[0], 1), 4.5, 0);
    CHECK(!strcmp(stk_default_goal(m, &d.view).loss, "mse"));
    stk_loaded_data_release(&d);
    CHECK(!d.x[0] && !d.view.nx);

    o.target = NULL; /* the last one: whole numbers, so a choice between two */
    REQUIRE(CHECK_OK(stk_load_data(m, 1, &path, &o, &d, &err)));
    CHECK_NEAR(stk_tensor_at(d.y[0], 1), 6, 0);
    CHECK(!strcmp(stk_default_goal(m, &d.view).loss, "binary_crossentropy"));
    stk_loaded_data_release(&d);

    o.no_targets = true;
    REQUIRE(CHECK_OK(stk_load_data(m, 1, &path, &o, &d, &err)));
    CHECK(d.view.ny == 0 && d.x[0]->shape[1] == 3);
    stk_loaded_data_release(&d);

    o.target = "cost";
    CHECK_FAILS(stk_load_data(m, 1, &path, &o, &d, &err), STK_ERR_ARGUMENT, "price, a, b");
    CHECK_OK(stk_text_save(path, "a,b\n1,red\n", &err));
    o = stk_load_defaults();
    CHECK_FAILS(stk_load_data(m, 1, &path, &o, &d, &err), STK_ERR_DTYPE, "holds texts");
    stk_model_release(m);
}

TEST(arrays_by_name)
{
    stk_model *m = dense(3, "Dense(4)");
    stk_loaded_data d;
    stk_error err;
    const char *path = temporary("t.npz");
    static const char *const names[] = {"x_train", "y_train", "w", "other"};
    stk_tensor *t[] = {array(STK_F32, 5, 3), array(STK_I64, 5, 0), array(STK_F32, 5, 0),
                       array(STK_F32, 5, 3)};
    save_npz(path, names, t, 4);
    stk_load_options o = stk_load_defaults();
    o.sample_weight = "w";
    REQUIRE(CHECK_OK(stk_load_data(m, 1, &path, &o, &d, &err)));
    CHECK(d.view.weights == d.weights && d.weights);
    stk_goal goal = stk_default_goal(m, &d.view);
    CHECK(!strcmp(goal.loss, "sparse_categorical_crossentropy") &&
          !strcmp(goal.metrics, "accuracy"));
    stk_loaded_data_release(&d);
    o.x = "nothing";
    CHECK_FAILS(stk_load_data(m, 1, &path, &o, &d, &err), STK_ERR_ARGUMENT,
                "has no array 'nothing'; it has: x_train, y_train, w, other");
    o.x = "other";
    CHECK_OK(stk_load_data(m, 1, &path, &o, &d, &err));
    stk_loaded_data_release(&d);
    o.sample_weight = "v";
    CHECK_FAILS(stk_load_data(m, 1, &path, &o, &d, &err), STK_ERR_ARGUMENT, "has no array 'v'");
    stk_model_release(m);
}

TEST(one_array_a_file)
{
    stk_model *m = dense(3, "Dense(1)");
    stk_loaded_data d;
    stk_error err;
    const char *paths[] = {temporary("x.npy"), temporary("y.npy")};
    for (int i = 0; i < 2; i++) {
        stk_tensor *t = array(STK_F32, 6, i ? 1 : 3);
        CHECK_OK(stk_npy_save(paths[i], t, &err));
        stk_tensor_release(t);
    }
    REQUIRE(CHECK_OK(stk_load_data(m, 2, paths, NULL, &d, &err)));
    CHECK(d.view.nx == 1 && d.view.ny == 1 && d.x[0]->shape[1] == 3);
    stk_loaded_data_release(&d);
    CHECK_FAILS(stk_load_data(m, 1, paths, NULL, &d, &err), STK_ERR_ARGUMENT, "the model needs 2");
    stk_model_release(m);
}

TEST(what_is_no_data)
{
    stk_model *m = dense(3, "Dense(1)");
    stk_loaded_data d;
    stk_error err;
    const char *text = temporary("t.txt"), *none = temporary("none.txt"), *folder = "/tmp";
    const char *two[] = {"a.csv", "b.csv"};
    CHECK_OK(stk_text_save(text, "hello\n", &err));
    CHECK_FAILS(stk_load_data(m, 1, &text, NULL, &d, &err), STK_ERR_UNSUPPORTED, "no kind of data");
    CHECK_FAILS(stk_load_data(m, 1, &none, NULL, &d, &err), STK_ERR_IO, "cannot read it");
    CHECK_FAILS(stk_load_data(m, 1, &folder, NULL, &d, &err), STK_ERR_SHAPE, "one input of known");
    CHECK_FAILS(stk_load_data(m, 2, two, NULL, &d, &err), STK_ERR_ARGUMENT, "2 data files");
    CHECK_FAILS(stk_load_data(m, 0, NULL, NULL, &d, &err), STK_ERR_ARGUMENT, "0 data files");
    CHECK_FAILS(stk_load_data(NULL, 1, &text, NULL, &d, &err), STK_ERR_ARGUMENT, "needs a model");
    CHECK(stk_load_data(m, 1, &none, NULL, &d, NULL) == STK_ERR_IO); /* nobody listens */
    CHECK(stk_is_folder(folder) && !stk_is_folder(text) && !stk_is_folder(NULL));
    stk_loaded_data_release(NULL);
    stk_model_release(m);
}

TEST_MAIN()
