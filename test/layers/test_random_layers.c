/* Layers that draw at random: what they draw has the right statistics and range, depends on seed and step alone, and
 * stops when training does. */
#include "model_run.h"

static void quiet_when_not_training(const fixture *f, stk_tensor *x)
{
    stk_tensor *y = run_model(f, x, false, 0);
    CHECK(same_tensor(x, y));
    stk_tensor_release(y);
}

TEST(dropout_keeps_the_mean_and_drops_its_share)
{
    fixture f = sequential("Input((500,))", "Dropout(0.3)", NULL);
    stk_tensor *x = filled(2, L(100, 500), always_one), *y = run_model(&f, x, true, 0);
    int64_t zeros = 0;
    for (int64_t i = 0; i < stk_tensor_count(y); i++) {
        double v = stk_tensor_at(y, i);
        CHECK(v == 0 || fabs(v - 1 / 0.7) < 1e-6);
        zeros += v == 0;
    }
    CHECK_NEAR((double)zeros / 50000, 0.3, 0.01);
    CHECK_NEAR(mean_of(y), 1, 0.02);
    quiet_when_not_training(&f, x);
    stk_tensor_release(x), stk_tensor_release(y);
    discard(&f);
}

TEST(bits_depend_on_seed_step_and_layer)
{
    fixture f = sequential("Input((50,))", "Dropout(0.5)", NULL);
    fixture g = sequential("Input((50,))", "Dropout(0.5, name=other)", NULL);
    fixture h = sequential("Input((50,))", "Dropout(0.5, seed=9)", NULL);
    stk_tensor *x = filled(2, L(8, 50), always_one), *y[7], *again;
    run_outputs(&f, 1, &x, true, 3, 5, &y[0]);
    run_outputs(&f, 1, &x, true, 3, 5, &again);
    CHECK(same_tensor(y[0], again));
    stk_tensor_release(again);
    run_outputs(&f, 1, &x, true, 4, 5, &y[1]);
    run_outputs(&f, 1, &x, true, 3, 6, &y[2]);
    run_outputs(&g, 1, &x, true, 3, 5, &y[3]);
    for (int32_t i = 1; i < 4; i++) CHECK_MSG(!same_tensor(y[0], y[i]), "draw %d is the same", i);
    run_outputs(&h, 1, &x, true, 3, 5, &y[4]);
    run_outputs(&h, 1, &x, true, 3, 6, &y[5]);
    CHECK(same_tensor(y[4], y[5])); /* a layer with its own seed does not ask the model's */
    run_outputs(&h, 1, &x, true, 4, 6, &y[6]);
    CHECK(!same_tensor(y[5], y[6]));
    for (int32_t i = 0; i < 7; i++) stk_tensor_release(y[i]);
    stk_tensor_release(x);
    discard(&f), discard(&g), discard(&h);
}

TEST(spatial_dropout_drops_whole_channels)
{
    fixture f = sequential("Input((6, 7, 40))", "SpatialDropout2D(0.5)", NULL);
    fixture s = sequential("Input((42, 40))", "SpatialDropout1D(0.5)", NULL);
    stk_tensor *x = filled(4, L(3, 6, 7, 40), always_one), *y = run_model(&f, x, true, 0);
    stk_tensor *x1 = filled(3, L(3, 42, 40), always_one), *y1 = run_model(&s, x1, true, 0);
    for (int64_t n = 0; n < 3; n++)
        for (int64_t pixel = 1; pixel < 42; pixel++)
            for (int64_t c = 0; c < 40; c++) {
                int64_t at = (n * 42 + pixel) * 40 + c, first = n * 42 * 40 + c;
                CHECK(stk_tensor_at(y, at) == stk_tensor_at(y, first));
                CHECK(stk_tensor_at(y1, at) == stk_tensor_at(y1, first));
            }
    CHECK_NEAR(mean_of(y), 1, 0.3);
    CHECK(deviation_of(y) > 0.5);
    quiet_when_not_training(&f, x);
    stk_tensor_release(x), stk_tensor_release(y), stk_tensor_release(x1), stk_tensor_release(y1);
    discard(&f), discard(&s);
}

TEST(noise_has_the_asked_deviation)
{
    fixture a = sequential("Input((500,))", "GaussianNoise(0.4)", NULL);
    fixture b = sequential("Input((500,))", "GaussianDropout(0.2)", NULL);
    fixture c = sequential("Input((500,))", "AlphaDropout(0.1)", NULL);
    stk_tensor *x = filled(2, L(80, 500), always_one), *y;
    y = run_model(&a, x, true, 0);
    CHECK_NEAR(mean_of(y), 1, 0.01);
    CHECK_NEAR(deviation_of(y), 0.4, 0.01);
    stk_tensor_release(y);
    y = run_model(&b, x, true, 0);
    CHECK_NEAR(mean_of(y), 1, 0.01);
    CHECK_NEAR(deviation_of(y), 0.5, 0.01); /* sqrt(rate / (1 - rate)) */
    stk_tensor_release(y);
    y = run_model(&c, x, true, 0);
    CHECK(deviation_of(y) > 0.3);
    stk_tensor_release(y);
    quiet_when_not_training(&a, x);
    quiet_when_not_training(&b, x);
    quiet_when_not_training(&c, x);
    stk_tensor_release(x);
    discard(&a), discard(&b), discard(&c);
}

TEST(dropout_inside_recurrent_layers)
{
    fixture f = sequential("Input((5, 30))", "LSTM(8, dropout=0.5, return_sequences=True)",
                           "GRU(8, recurrent_dropout=0.5)", NULL);
    stk_tensor *x = filled(3, L(4, 5, 30), a_wave), *rest = run_model(&f, x, false, 0);
    stk_tensor *y = run_model(&f, x, true, 0), *again = run_model(&f, x, true, 0);
    stk_tensor *later = run_model(&f, x, true, 1);
    CHECK(same_tensor(y, again));
    CHECK(!same_tensor(y, rest));
    CHECK(!same_tensor(y, later));
    stk_tensor_release(x), stk_tensor_release(rest), stk_tensor_release(y);
    stk_tensor_release(again), stk_tensor_release(later);
    discard(&f);
}

TEST(rates_are_checked)
{
    refuses("Input((4,))", "Dropout(1.5)", "0 to 1");
    refuses("Input((4,))", "Dropout(-0.1)", "0 to 1");
    refuses("Input((4,))", "GaussianNoise(-1)", "0 or more");
    refuses("Input((4,))", "SpatialDropout1D(0.5)", "axes");
}

TEST_MAIN()
