/* Progress as text, and the history: exact, since they are pure functions of numbers. */
#include "check.h"

#include "train/history.h"

static const char *names[] = {"loss", "accuracy"};

#define CHECK_TEXT(actual, expected)                                                               \
    CHECK_MSG(!strcmp((actual), (expected)), "got  \"%s\"\nwant \"%s\"", (actual), (expected))

TEST(the_bar_shows_place_rate_and_numbers)
{
    char text[512];
    stk_progress p = {.epoch = 2,
                      .epochs = 10,
                      .step = 120,
                      .steps = 480,
                      .samples = 3840,
                      .seconds = 0.5,
                      .logs = {2, names, (double[]){0.12345, 0.9612}}};
    CHECK_TEXT(stk_progress_bar(&p, 0, true, text, sizeof text),
               "Epoch 3/10 120/480 [#######.......................] ETA 1.5 s, 7680 samples/s - "
               "loss 0.1235 - "
               "accuracy 0.9612");
    CHECK_TEXT(stk_progress_bar(&p, 0, false, text, sizeof text),
               "Epoch 3/10 120/480 ▕███████▌                      ▏ ETA 1.5 s, 7680 samples/s - "
               "loss 0.1235 - "
               "accuracy 0.9612");
    CHECK_TEXT(
        stk_progress_bar(&p, 100, true, text, sizeof text),
        "Epoch 3/10 120/480 [#####................] ETA 1.5 s, 7680 samples/s - loss 0.1235 - "
        "accuracy 0.9612");
    CHECK_TEXT(stk_progress_bar(&p, 60, true, text, sizeof text),
               "Epoch 3/10 120/480 ETA 1.5 s, 7680 samples/s - loss 0.1235 -");
    p.step = 480;
    p.samples = 15360000;
    p.seconds = 75.4;
    p.logs = (stk_logs){2, names, (double[]){0.00012, NAN}};
    CHECK_TEXT(stk_progress_bar(&p, 0, true, text, sizeof text),
               "Epoch 3/10 480/480 [##############################] 1:15, 203.7k samples/s - loss "
               "1.2000e-04 - "
               "accuracy nan");
}

TEST(without_a_known_end_there_is_no_bar)
{
    char text[512], small[12];
    stk_progress p = {.epochs = 1, .step = 7, .samples = 224, .seconds = 4000};
    CHECK_TEXT(stk_progress_bar(&p, 0, true, text, sizeof text),
               "Epoch 1/1 7 steps 1:06:40, 0 samples/s");
    CHECK_TEXT(stk_progress_bar(&p, 0, true, small, sizeof small), "Epoch 1/1 7");
    p.seconds = 0;
    CHECK_TEXT(stk_progress_epoch(&p, text, sizeof text), "Epoch 1/1 - 0.0 s - 0 samples/s");
}

TEST(one_line_per_epoch)
{
    char text[512];
    stk_progress p = {.epoch = 0,
                      .epochs = 3,
                      .step = 10,
                      .steps = 10,
                      .samples = 25000000,
                      .seconds = 12.4,
                      .logs = {2, names, (double[]){123456, 0}}};
    CHECK_TEXT(stk_progress_epoch(&p, text, sizeof text),
               "Epoch 1/3 - 12 s - 2.02M samples/s - loss 1.2346e+05 - accuracy 0.0000");
}

TEST(history_goes_to_json_and_back)
{
    stk_error err;
    stk_history *h = stk_history_new(), *back = stk_history_new();
    REQUIRE(CHECK(h && back));
    for (int64_t e = 0; e < 40; e++)
        CHECK_OK(stk_history_add(
            h, e, &(stk_logs){e < 2 ? 1 : 2, names, (double[]){1.0 / (double)(e + 1), 0.5}}, &err));
    CHECK_EQ_I64(stk_history_rows(h), 40);
    CHECK_EQ_I64(stk_history_count(h), 2);
    CHECK_NEAR(stk_history_value(h, "loss", -1), 1.0 / 40, 0);
    CHECK(isnan(stk_history_value(h, "accuracy", 1)) && isnan(stk_history_value(h, "mae", 1)));
    char *text = NULL;
    stk_json_document *document = NULL;
    CHECK_OK(stk_history_json(h, 0, &text, &err));
    CHECK_OK(stk_json_parse(text, strlen(text), NULL, &document, &err));
    CHECK_OK(stk_history_read(back, stk_json_root(document), &err));
    for (int64_t e = 0; e < 40; e++) {
        CHECK_NEAR(stk_history_value(back, "loss", e), stk_history_value(h, "loss", e), 0);
        CHECK_NEAR(stk_history_value(back, "accuracy", e), stk_history_value(h, "accuracy", e), 0);
        CHECK_EQ_I64(stk_history_epoch(back, e), e);
    }
    stk_json_release(document);
    stk_text_free(text);
    stk_history_release(h);
    stk_history_release(back);
}

TEST_MAIN()
