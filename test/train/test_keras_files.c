/* Files of Keras: those that the real one wrote (tools/keras_files.py), what is written here and read again, and what
 * must be refused. That Keras reads ours is shown by `tools/keras_files.py check`. */
#include "check.h"
#include "temporary.h"

#include "stoker/keras.h"
#include "stoker/stoker.h"

#ifndef STK_HAVE_HDF5
#define STK_HAVE_HDF5 0
#endif

static const char *const kinds[] = {"keras", "h5", "weights_h5"};
static const char *const ends[] = {".keras", ".h5", ".weights.h5"};

typedef struct files {
    stk_npz *npz;
    char path[3][512];
} files;

static void write_bytes(const char *path, const stk_tensor *bytes, int64_t size)
{
    FILE *file = fopen(path, "wb");
    if (!CHECK(file != NULL)) return;
    CHECK_EQ_I64((int64_t)fwrite(bytes->data, 1, (size_t)size, file), size);
    fclose(file);
}

static bool open_files(files *f)
{
    stk_error err;
    char path[512];
    snprintf(path, sizeof path, "%s/golden/train/keras_files.npz", STK_TEST_DIR);
    if (!CHECK_OK(stk_npz_load(path, &f->npz, &err))) return false;
    for (int i = 0; i < 3; i++) {
        const stk_tensor *bytes = stk_npz_find(f->npz, kinds[i]);
        if (!CHECK(bytes != NULL)) return false;
        snprintf(path, sizeof path, "of-keras%s", ends[i]);
        snprintf(f->path[i], sizeof f->path[i], "%s", temporary(path));
        write_bytes(f->path[i], bytes, stk_tensor_count(bytes));
    }
    return true;
}

static void check_predicts(stk_trainer *t, stk_tensor *x, const stk_tensor *want, double tolerance)
{
    stk_error err;
    stk_tensor *y = NULL;
    stk_train_data data = {.nx = 1, .x = &x};
    if (!CHECK_OK(stk_trainer_predict(t, &data, 0, &y, &err))) return;
    for (int64_t i = 0; i < stk_tensor_count(want); i++)
        CHECK_NEAR(stk_tensor_at(y, i), stk_tensor_at(want, i), tolerance);
    stk_tensor_release(y);
}

/* A trainer of the file, with its numbers. Of weights alone: of the model of `other`. */
static stk_trainer *restore(const char *path, const char *other)
{
    stk_error err;
    stk_keras *file = NULL, *model = NULL;
    stk_trainer *t = NULL;
    bool state = false;
    stk_trainer_options how = stk_trainer_defaults();
    if (!CHECK_OK(stk_keras_open(path, &file, &err))) return NULL;
    bool alone = !stk_keras_model(file);
    CHECK(alone == (strstr(path, ".weights.h5") != NULL));
    if (alone && !CHECK_OK(stk_keras_open(other, &model, &err))) return NULL;
    const stk_keras *of = alone ? model : file;
    CHECK(stk_keras_compiled(of, &how));
    if (CHECK_OK(stk_trainer_new(stk_keras_model(of), &how, &t, &err)))
        CHECK_OK(stk_keras_restore(file, t, &state, &err));
    CHECK(state);
    stk_keras_release(file);
    stk_keras_release(model);
    return t;
}

/* Training goes on as Keras does: moments and the number of steps count. */
static void check_goes_on(stk_trainer *t, const files *f)
{
    stk_error err;
    stk_tensor *x = stk_npz_find(f->npz, "x"), *y = stk_npz_find(f->npz, "y");
    const stk_tensor *losses = stk_npz_find(f->npz, "losses");
    for (int64_t i = 0; i < stk_tensor_count(losses); i++) {
        const stk_logs *logs = NULL;
        stk_train_data data = {.nx = 1, .x = &x, .ny = 1, .y = &y};
        if (!CHECK_OK(stk_trainer_train_on_batch(t, &data, &logs, &err))) return;
        CHECK_NEAR(logs->values[0], stk_tensor_at(losses, i), 1e-5);
        CHECK(stk_logs_get(logs, "mae") > 0);
    }
    check_predicts(t, x, stk_npz_find(f->npz, "after"), 1e-4);
}

TEST(what_keras_wrote_predicts_and_trains_on_alike)
{
    files f = {0};
    REQUIRE(open_files(&f));
    for (int i = 0; i < 3 && STK_HAVE_HDF5; i++) {
        CHECK(stk_keras_is_file(f.path[i]));
        stk_trainer *t = restore(f.path[i], f.path[0]);
        if (!CHECK(t != NULL)) continue;
        CHECK_EQ_I64(stk_trainer_step(t), 3);
        check_predicts(t, stk_npz_find(f.npz, "x"), stk_npz_find(f.npz, "out"), 1e-5);
        check_goes_on(t, &f);
        stk_trainer_release(t);
    }
    stk_npz_release(f.npz);
}

TEST(what_is_written_here_comes_back_with_the_state_of_the_optimizer)
{
    files f = {0};
    stk_error err;
    REQUIRE(open_files(&f));
    for (int i = 0; i < 3 && STK_HAVE_HDF5; i++) {
        char path[512], name[32];
        snprintf(name, sizeof name, "ours%s", ends[i]);
        snprintf(path, sizeof path, "%s", temporary(name));
        stk_trainer *t = restore(f.path[0], NULL), *back = NULL;
        REQUIRE(CHECK(t != NULL));
        CHECK_OK(stk_trainer_save_keras(t, path, &err));
        stk_trainer_release(t);
        back = restore(path, f.path[0]);
        REQUIRE(CHECK(back != NULL));
        check_predicts(back, stk_npz_find(f.npz, "x"), stk_npz_find(f.npz, "out"), 1e-5);
        check_goes_on(back, &f);
        stk_trainer_release(back);
    }
    stk_npz_release(f.npz);
}

TEST(weights_of_any_kind_of_file_are_loaded_by_name_of_the_file_alone)
{
    files f = {0};
    stk_error err;
    stk_keras *file = NULL;
    stk_trainer *t = NULL;
    REQUIRE(open_files(&f));
    if (STK_HAVE_HDF5 && CHECK_OK(stk_keras_open(f.path[0], &file, &err)) &&
        CHECK_OK(stk_trainer_new(stk_keras_model(file), NULL, &t, &err)))
        for (int i = 0; i < 3; i++) {
            CHECK_OK(stk_trainer_load_weights(t, f.path[i], false, &err));
            check_predicts(t, stk_npz_find(f.npz, "x"), stk_npz_find(f.npz, "out"), 1e-5);
        }
    stk_trainer_release(t);
    stk_keras_release(file);
    stk_npz_release(f.npz);
}

TEST(weights_of_another_model_are_refused_by_name)
{
    files f = {0};
    stk_error err = {0};
    stk_model *m = NULL;
    stk_trainer *t = NULL;
    REQUIRE(open_files(&f));
    REQUIRE(CHECK_OK(stk_model_new("other", &m, &err)));
    stk_model_add(m, "Input(shape=(3,))");
    stk_model_add(m, "Dense(2)");
    CHECK_OK(stk_model_build(m, 0, NULL, &err));
    REQUIRE(CHECK_OK(stk_trainer_new(m, NULL, &t, &err)));
    for (int i = 0; i < 3 && STK_HAVE_HDF5; i++) {
        CHECK(stk_trainer_load_weights(t, f.path[i], false, &err) != STK_OK);
        CHECK(strstr(err.message, f.path[i]) && strstr(err.message, "dense"));
    }
    CHECK(stk_trainer_save_keras(t, temporary("model.txt"), &err) == STK_ERR_ARGUMENT);
    CHECK(strstr(err.message, ".keras"));
    stk_trainer_release(t);
    stk_model_release(m);
    stk_npz_release(f.npz);
}

TEST(damaged_and_cut_files_are_refused)
{
    files f = {0};
    stk_error err = {0};
    REQUIRE(open_files(&f));
    for (int i = 0; i < 3; i++) {
        stk_tensor *bytes = stk_npz_find(f.npz, kinds[i]);
        for (int64_t part = 1; part < 8; part++) {
            stk_keras *file = NULL;
            write_bytes(f.path[i], bytes, stk_tensor_count(bytes) * part / 8);
            stk_status status = stk_keras_open(f.path[i], &file, &err);
            if (status != STK_OK) CHECK(strstr(err.message, f.path[i]) != NULL);
            if (part < 4) CHECK(status != STK_OK);
            stk_keras_release(file);
        }
        write_bytes(f.path[i], bytes, 4);
        CHECK(!stk_keras_is_file(f.path[i]));
    }
    stk_keras *none = NULL;
    CHECK(stk_keras_open(temporary("nothing.keras"), &none, &err) == STK_ERR_IO);
    stk_npz_release(f.npz);
}
TEST_MAIN()
