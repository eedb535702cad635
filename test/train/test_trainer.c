/* Training from C: fit, evaluate, predict, single batches, data of all kinds, weights and what must be refused. */
#include "train/problem.h"
#include "temporary.h"

TEST(fit_learns_and_its_history_says_so)
{
    problem p;
    stk_error err;
    stk_history *h = NULL;
    const stk_logs *logs = NULL;
    REQUIRE(open_problem(&p, 500));
    stk_fit_options fit = stk_fit_defaults();
    fit.epochs = 8;
    fit.validation_split = 0.2;
    REQUIRE(CHECK_OK(stk_trainer_fit(p.trainer, &p.data, &fit, &h, &err)));
    CHECK_EQ_I64(stk_history_rows(h), 8);
    CHECK_EQ_I64(stk_trainer_step(p.trainer),
                 8 * 13); /* 400 rows: 12 whole batches and one of 16 */
    CHECK(stk_history_value(h, "loss", 7) < stk_history_value(h, "loss", 0) / 2);
    CHECK(stk_history_value(h, "val_accuracy", -1) > 0.9);
    CHECK(!strcmp(stk_history_name(h, 0), "loss") &&
          !strcmp(stk_history_name(h, 3), "val_accuracy"));
    CHECK_EQ_I64(stk_history_count(h), 4);
    REQUIRE(CHECK_OK(stk_trainer_evaluate(p.trainer, &p.data, 64, 0, &logs, &err)));
    CHECK(stk_logs_get(logs, "accuracy") > 0.9);
    CHECK(isnan(stk_logs_get(logs, "val_loss")));
    stk_history_release(h);
    close_problem(&p);
}

TEST(the_split_is_what_evaluate_says_of_those_rows)
{
    problem p;
    stk_error err;
    stk_history *h = NULL;
    const stk_logs *logs = NULL;
    REQUIRE(open_problem(&p, 100));
    stk_fit_options fit = stk_fit_defaults();
    fit.validation_split = 0.25;
    CHECK_OK(stk_trainer_fit(p.trainer, &p.data, &fit, &h, &err));
    stk_tensor *x = NULL, *y = NULL;
    CHECK_OK(stk_tensor_slice(p.x, (int64_t[]){75, 0}, (int64_t[]){25, 8}, &x, &err));
    CHECK_OK(stk_tensor_slice(p.y, (int64_t[]){75}, (int64_t[]){25}, &y, &err));
    stk_train_data last = {.nx = 1, .x = &x, .ny = 1, .y = &y};
    CHECK_OK(stk_trainer_evaluate(p.trainer, &last, 7, 0, &logs, &err));
    CHECK_NEAR(stk_logs_get(logs, "loss"), stk_history_value(h, "val_loss", 0), 1e-5);
    CHECK_NEAR(stk_logs_get(logs, "accuracy"), stk_history_value(h, "val_accuracy", 0), 1e-6);
    stk_tensor_release(x);
    stk_tensor_release(y);
    stk_history_release(h);
    close_problem(&p);
}

/* Unshuffled arrays, a dataset of the same batches, and single batches give the same bits. */
TEST(arrays_datasets_and_single_batches_agree)
{
    problem a, b, c;
    stk_error err;
    REQUIRE(open_problem(&a, 70) && open_problem(&b, 70) && open_problem(&c, 70));
    stk_fit_options fit = stk_fit_defaults();
    fit.epochs = 2;
    fit.no_shuffle = true;
    CHECK_OK(stk_trainer_fit(a.trainer, &a.data, &fit, NULL, &err));
    stk_dataset *ds = stk_data_slices(2, (stk_tensor *[]){b.x, b.y}, NULL, NULL, &err);
    ds = stk_data_batch(ds, 32, false, &err);
    REQUIRE(CHECK(ds));
    CHECK_OK(stk_trainer_fit(b.trainer, &(stk_train_data){.dataset = ds}, &fit, NULL, &err));
    CHECK_EQ_I64(stk_trainer_step(b.trainer), 6);
    for (int i = 0; i < 6; i++) {
        int64_t at = i % 3 * 32, rows = at + 32 > 70 ? 70 - at : 32;
        stk_tensor *x = NULL, *y = NULL;
        CHECK_OK(stk_tensor_slice(c.x, (int64_t[]){at, 0}, (int64_t[]){rows, 8}, &x, &err));
        CHECK_OK(stk_tensor_slice(c.y, (int64_t[]){at}, (int64_t[]){rows}, &y, &err));
        stk_train_data one = {.nx = 1, .x = &x, .ny = 1, .y = &y};
        const stk_logs *logs = NULL;
        CHECK_OK(stk_trainer_train_on_batch(c.trainer, &one, i % 3 ? NULL : &logs, &err));
        stk_tensor_release(x);
        stk_tensor_release(y);
    }
    CHECK(same_stores(stk_trainer_store(a.trainer), stk_trainer_store(b.trainer)));
    CHECK(same_stores(stk_trainer_store(a.trainer), stk_trainer_store(c.trainer)));
    stk_dataset_release(ds);
    close_problem(&a), close_problem(&b), close_problem(&c);
}

/* Refused with their place before a step is made of them, wherever they come from. */
TEST(labels_must_be_classes)
{
    problem p, good;
    stk_error err;
    REQUIRE(open_problem(&p, 40) && open_problem(&good, 40));
    ((int32_t *)p.y->data)[25] = 9;
    static const char label[] =
        "y 0: loss sparse_categorical_crossentropy: label 25 is 9, but the model has 4 outputs, "
        "for "
        "classes 0 to 3; give the last layer more units, or correct the labels";
    const stk_logs *logs = NULL;
    CHECK_FAILS(stk_trainer_fit(p.trainer, &p.data, NULL, NULL, &err), STK_ERR_SHAPE, label);
    CHECK_FAILS(stk_trainer_evaluate(p.trainer, &p.data, 0, 0, &logs, &err), STK_ERR_SHAPE, label);
    CHECK_FAILS(stk_trainer_train_on_batch(p.trainer, &p.data, NULL, &err), STK_ERR_SHAPE, label);
    CHECK_EQ_I64(stk_trainer_step(p.trainer), 0);

    stk_dataset *ds = stk_data_slices(2, (stk_tensor *[]){p.x, p.y}, NULL, NULL, &err);
    ds = stk_data_batch(ds, 10, false, &err);
    stk_train_data data = {.dataset = ds};
    stk_fit_options fit = stk_fit_defaults();
    fit.epochs = 7;
    fit.initial_epoch = 5;
    CHECK_FAILS(
        stk_trainer_fit(p.trainer, &data, NULL, NULL, &err), STK_ERR_SHAPE,
        "batch 3 of the dataset: y 0: loss sparse_categorical_crossentropy: label 5 is 9, ");
    CHECK_EQ_I64(stk_trainer_step(p.trainer), 2);
    CHECK_FAILS(stk_trainer_fit(p.trainer, &data, &fit, NULL, &err), STK_ERR_SHAPE,
                "batch 3 of the dataset in epoch 6: y 0: ");
    CHECK_FAILS(stk_trainer_evaluate(p.trainer, &data, 0, 0, &logs, &err), STK_ERR_SHAPE,
                "batch 3 of the dataset: y 0: ");
    fit.validation = &data;
    CHECK_FAILS(stk_trainer_fit(good.trainer, &good.data, &fit, NULL, &err), STK_ERR_SHAPE,
                "validation data: batch 3 of the dataset: y 0: ");
    stk_tensor *y = NULL; /* nobody looks at labels to predict */
    CHECK_OK(stk_trainer_predict(p.trainer, &data, 0, &y, &err));
    stk_tensor_release(y);
    stk_dataset_release(ds);
    close_problem(&p), close_problem(&good);
}

TEST(more_steps_than_data_walk_it_again)
{
    problem p;
    stk_error err;
    REQUIRE(open_problem(&p, 64));
    stk_fit_options fit = stk_fit_defaults();
    fit.steps_per_epoch = 5;
    CHECK_OK(stk_trainer_fit(p.trainer, &p.data, &fit, NULL, &err));
    CHECK_EQ_I64(stk_trainer_step(p.trainer), 5);
    stk_dataset *ds = stk_data_slices(2, (stk_tensor *[]){p.x, p.y}, NULL, NULL, &err);
    ds = stk_data_batch(ds, 32, false, &err);
    CHECK_OK(stk_trainer_fit(p.trainer, &(stk_train_data){.dataset = ds}, &fit, NULL, &err));
    CHECK_EQ_I64(stk_trainer_step(p.trainer), 10);
    fit.initial_epoch = 3;
    fit.epochs = 5;
    stk_history *h = NULL;
    CHECK_OK(stk_trainer_fit(p.trainer, &p.data, &fit, &h, &err));
    CHECK_EQ_I64(stk_history_rows(h), 2);
    CHECK_EQ_I64(stk_history_epoch(h, 0), 3);
    stk_history_release(h);
    stk_dataset_release(ds);
    close_problem(&p);
}

TEST(predictions_are_rows_in_order)
{
    problem p;
    stk_error err;
    stk_tensor *all = NULL, *some = NULL, *view = NULL;
    REQUIRE(open_problem(&p, 50));
    CHECK_OK(stk_trainer_predict(p.trainer, &p.data, 16, &all, &err));
    CHECK_EQ_I64(all->shape[0], 50);
    CHECK_EQ_I64(all->shape[1], 4);
    CHECK_OK(stk_tensor_slice(p.x, (int64_t[]){40, 0}, (int64_t[]){10, 8}, &view, &err));
    CHECK_OK(
        stk_trainer_predict(p.trainer, &(stk_train_data){.nx = 1, .x = &view}, 3, &some, &err));
    for (int64_t i = 0; i < 40; i++)
        CHECK_NEAR(stk_tensor_at(some, i), stk_tensor_at(all, 160 + i), 1e-6);
    stk_tensor_release(view);
    stk_tensor_release(all);
    stk_tensor_release(some);
    close_problem(&p);
}

/* Class weights are sample weights by label. */
TEST(class_and_sample_weights_mean_the_same)
{
    problem a, b, plain;
    stk_error err;
    const double by_class[4] = {1, 0.5, 2, 0};
    REQUIRE(open_problem(&a, 96) && open_problem(&b, 96) && open_problem(&plain, 96));
    stk_tensor *w = NULL;
    CHECK_OK(stk_tensor_new(STK_F32, 1, (int64_t[]){96}, &w, &err));
    for (int64_t i = 0; i < 96; i++)
        CHECK_OK(stk_tensor_set(w, i, by_class[(int)stk_tensor_at(a.y, i)], &err));
    stk_fit_options fit = stk_fit_defaults();
    fit.epochs = 2;
    b.data.weights = w;
    CHECK_OK(stk_trainer_fit(b.trainer, &b.data, &fit, NULL, &err));
    CHECK_OK(stk_trainer_fit(plain.trainer, &plain.data, &fit, NULL, &err));
    fit.class_weights = by_class;
    fit.classes = 4;
    CHECK_OK(stk_trainer_fit(a.trainer, &a.data, &fit, NULL, &err));
    CHECK(same_stores(stk_trainer_store(a.trainer), stk_trainer_store(b.trainer)));
    stk_tensor *k = NULL, *other = NULL;
    CHECK_OK(stk_store_get(stk_trainer_store(a.trainer), "dense/kernel", &k, &err));
    CHECK_OK(stk_store_get(stk_trainer_store(plain.trainer), "dense/kernel", &other, &err));
    CHECK(memcmp(k->data, other->data, (size_t)stk_tensor_bytes(k)));
    stk_tensor_release(k);
    stk_tensor_release(other);
    stk_tensor_release(w);
    close_problem(&a), close_problem(&b), close_problem(&plain);
}

TEST(bytes_and_a_missing_axis_are_understood)
{
    stk_error err;
    stk_model *m = make_model("Input(shape=(4, 4, 1))\nRescaling(0.00392)\nFlatten()\nDense(2)");
    stk_trainer_options how = usual_options();
    how.loss = "mse";
    how.metrics = "mae;";
    stk_trainer *t = NULL;
    stk_tensor *x = NULL, *y = NULL;
    REQUIRE(CHECK_OK(stk_trainer_new(m, &how, &t, &err)));
    CHECK_OK(stk_tensor_new(STK_U8, 3, (int64_t[]){10, 4, 4}, &x, &err));
    CHECK_OK(stk_tensor_new(STK_F64, 2, (int64_t[]){10, 2}, &y, &err));
    stk_train_data data = {.nx = 1, .x = &x, .ny = 1, .y = &y};
    CHECK_OK(stk_trainer_fit(t, &data, NULL, NULL, &err));
    stk_tensor_release(x);
    stk_tensor_release(y);
    stk_trainer_release(t);
    stk_model_release(m);
}

TEST(weights_travel_through_files)
{
    problem a, b;
    stk_error err;
    stk_tensor *ya = NULL, *yb = NULL;
    REQUIRE(open_problem(&a, 64));
    stk_trainer_options how = usual_options();
    how.seed = 99;
    REQUIRE(open_problem_with(&b, MLP, &how, 64));
    CHECK_OK(stk_trainer_fit(a.trainer, &a.data, NULL, NULL, &err));
    CHECK_OK(stk_trainer_save_weights(a.trainer, temporary("w.safetensors"), &err));
    CHECK_OK(stk_trainer_load_weights(b.trainer, temporary("w.safetensors"), false, &err));
    CHECK_OK(stk_trainer_predict(a.trainer, &a.data, 64, &ya, &err));
    CHECK_OK(stk_trainer_predict(b.trainer, &a.data, 64, &yb, &err));
    CHECK(!memcmp(ya->data, yb->data, (size_t)stk_tensor_bytes(ya)));
    stk_tensor_release(yb);
    /* A checkpoint has weights, too. */
    CHECK_OK(stk_trainer_save(a.trainer, temporary("a.ckpt"), &err));
    problem c;
    REQUIRE(open_problem_with(&c, MLP, &how, 64));
    CHECK_OK(stk_trainer_load_weights(c.trainer, temporary("a.ckpt"), false, &err));
    CHECK_OK(stk_trainer_predict(c.trainer, &a.data, 64, &yb, &err));
    CHECK(!memcmp(ya->data, yb->data, (size_t)stk_tensor_bytes(ya)));
    CHECK_FAILS(stk_trainer_load(c.trainer, temporary("a.ckpt"), &err), STK_ERR_ARGUMENT, "seed 3");
    CHECK_FAILS(stk_trainer_load(c.trainer, temporary("w.safetensors"), &err), STK_ERR_FORMAT,
                "no checkpoint");
    stk_tensor_release(ya);
    stk_tensor_release(yb);
    close_problem(&a), close_problem(&b), close_problem(&c);
}

TEST(what_does_not_fit_is_refused_with_names)
{
    problem p;
    stk_error err;
    REQUIRE(open_problem(&p, 32));
    stk_tensor *x = NULL, *words = NULL;
    CHECK_OK(stk_tensor_new(STK_F32, 2, (int64_t[]){32, 5}, &x, &err));
    stk_train_data bad = p.data;
    bad.x = &x;
    CHECK_FAILS(stk_trainer_fit(p.trainer, &bad, NULL, NULL, &err), STK_ERR_SHAPE, "[5]");
    bad = p.data;
    bad.ny = 0;
    CHECK_FAILS(stk_trainer_fit(p.trainer, &bad, NULL, NULL, &err), STK_ERR_ARGUMENT, "outputs");
    stk_tensor_release(x);
    CHECK_OK(stk_tensor_new(STK_I32, 1, (int64_t[]){31}, &x, &err));
    bad = p.data;
    bad.y = &x;
    CHECK_FAILS(stk_trainer_fit(p.trainer, &bad, NULL, NULL, &err), STK_ERR_SHAPE, "31 rows");
    CHECK_OK(stk_tensor_strings(1, (int64_t[]){32}, (stk_string[32]){{"a", 1}}, &words, &err));
    bad.y = &words;
    CHECK_FAILS(stk_trainer_fit(p.trainer, &bad, NULL, NULL, &err), STK_ERR_DTYPE, "texts");
    stk_fit_options fit = stk_fit_defaults();
    fit.validation_split = 1;
    CHECK_FAILS(stk_trainer_fit(p.trainer, &p.data, &fit, NULL, &err), STK_ERR_RANGE,
                "validation_split");
    fit = stk_fit_defaults();
    fit.batch = 0;
    CHECK_FAILS(stk_trainer_fit(p.trainer, &p.data, &fit, NULL, &err), STK_ERR_RANGE, "batch");
    stk_trainer *t = NULL;
    stk_trainer_options how = usual_options();
    how.loss = "no_such_loss";
    CHECK(stk_trainer_new(p.model, &how, &t, &err) != STK_OK &&
          strstr(err.message, "no_such_loss"));
    how = usual_options();
    how.loss = NULL;
    CHECK_FAILS(stk_trainer_new(p.model, &how, &t, &err), STK_ERR_ARGUMENT, "no loss");
    stk_tensor_release(words);
    stk_tensor_release(x);
    close_problem(&p);
}

static stk_status a_whole_run(problem *p, stk_error *err)
{
    stk_trainer_options how = usual_options();
    stk_fit_options fit = stk_fit_defaults();
    fit.epochs = 2;
    fit.checkpoint = temporary("oom.ckpt");
    stk_trainer *t = NULL;
    stk_status status = stk_trainer_new(p->model, &how, &t, err);
    if (status == STK_OK) status = stk_trainer_fit(t, &p->data, &fit, NULL, err);
    stk_trainer_release(t);
    return status;
}

/* Every 7th allocation: a run makes thousands of them. */
TEST(out_of_memory_is_an_ordinary_error)
{
    problem p;
    stk_error err;
    REQUIRE(open_problem(&p, 40));
    CHECK_OK(a_whole_run(&p, &err));
    int64_t live = stk_alloc_live(), before = stk_alloc_count();
    CHECK_OK(a_whole_run(&p, &err));
    int64_t total = stk_alloc_count() - before, step = total / 150 + 1;
    for (int64_t n = 1; n < total; n += step) {
        stk_alloc_fail_at(n, n % 2);
        stk_status status = a_whole_run(&p, &err);
        stk_alloc_fail_at(0, false);
        CHECK_MSG(status == STK_OK || status == STK_ERR_MEMORY,
                  "allocation %" PRId64 " gave \"%s\": %s", n, stk_status_name(status),
                  err.message);
        if (!CHECK_EQ_I64(stk_alloc_live(), live)) break;
    }
    close_problem(&p);
}

TEST_MAIN()
