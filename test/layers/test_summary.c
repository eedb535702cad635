/* The table of a model: text to the letter, in boxes and in ASCII. */
#include "check.h"
#include "stoker/layers.h"

#define L(...) ((int64_t[]){__VA_ARGS__})

static void check_summary(const stk_model *m, const stk_summary_options *options, const char *want)
{
    stk_error err = {0};
    char *text = NULL;
    CHECK_OK(stk_model_summary(m, options, &text, &err));
    CHECK_STR(text, want);
    stk_text_free(text);
}

TEST(a_sequential_model_is_a_table_of_three_columns)
{
    stk_error err = {0};
    stk_model *m = NULL;
    CHECK_OK(stk_model_new("digits", &m, &err));
    stk_model_add(m, "Input((28, 28))");
    stk_model_add(m, "Flatten()");
    stk_model_add(m, "Dense(128)");
    CHECK_OK(stk_model_build(m, 0, NULL, &err));
    check_summary(m, NULL,
                  "Model: \"digits\"\n"
                  "┏━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━━━━━━━━━━┳━━━━━━━━━━━━━━━┓\n"
                  "┃ Layer (type)                    ┃ Output Shape           ┃       Param # ┃\n"
                  "┡━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━━━━━━━━━━╇━━━━━━━━━━━━━━━┩\n"
                  "│ flatten (Flatten)               │ (None, 784)            │             0 │\n"
                  "├─────────────────────────────────┼────────────────────────┼───────────────┤\n"
                  "│ dense (Dense)                   │ (None, 128)            │       100,480 │\n"
                  "└─────────────────────────────────┴────────────────────────┴───────────────┘\n"
                  " Total params: 100,480 (392.50 KB)\n"
                  " Trainable params: 100,480 (392.50 KB)\n"
                  " Non-trainable params: 0 (0.00 B)\n");
    stk_model_release(m);
}

TEST(a_graph_says_what_is_connected_and_ascii_is_plain)
{
    stk_error err = {0};
    stk_model *m = NULL, *inner = NULL;
    CHECK_OK(stk_model_new("inner", &inner, &err));
    stk_model_add(inner, "Input((4,))");
    stk_model_add(inner, "Dense(4)");
    CHECK_OK(stk_model_build(inner, 0, NULL, &err));
    CHECK_OK(stk_model_new(NULL, &m, &err));
    stk_sym a = stk_m_input(m, "a", STK_F32, 1, L(4)), b = stk_m_input(m, "b", STK_F32, 1, L(4));
    stk_layer layer = stk_m_model(m, inner);
    stk_sym both[2] = {stk_m_call(m, layer, 1, &a), stk_m_call(m, layer, 1, &b)};
    stk_m_output(m, stk_m_apply(m, "Add()", 2, both));
    CHECK_OK(stk_model_build(m, 0, NULL, &err));
    CHECK_OK(stk_model_set_trainable(m, "inner", false, &err));
    stk_summary_options options = {.ascii = true, .nested = true, .trainable = true};
    check_summary(m, &options,
                  "Model: \"functional\"\n"
                  "+---------------------+-------------------+------------+------------------"
                  "-+-----------+\n"
                  "| Layer (type)        | Output Shape      |    Param # | Connected to     "
                  " | Trainable |\n"
                  "+=====================+===================+============+=================="
                  "=+===========+\n"
                  "| a (InputLayer)      | (None, 4)         |          0 | -                "
                  " | -         |\n"
                  "+---------------------+-------------------+------------+------------------"
                  "-+-----------+\n"
                  "| b (InputLayer)      | (None, 4)         |          0 | -                "
                  " | -         |\n"
                  "+---------------------+-------------------+------------+------------------"
                  "-+-----------+\n"
                  "| inner (Sequential)  | (None, 4)         |         20 | a[0][0],         "
                  " | N         |\n"
                  "|                     |                   |            | b[0][0]          "
                  " |           |\n"
                  "+---------------------+-------------------+------------+------------------"
                  "-+-----------+\n"
                  "|     - dense (Dense) | (None, 4)         |         20 | -                "
                  " | N         |\n"
                  "+---------------------+-------------------+------------+------------------"
                  "-+-----------+\n"
                  "| add (Add)           | (None, 4)         |          0 | inner[0][0],     "
                  " | -         |\n"
                  "|                     |                   |            | inner[1][0]      "
                  " |           |\n"
                  "+---------------------+-------------------+------------+------------------"
                  "-+-----------+\n"
                  " Total params: 20 (80.00 B)\n"
                  " Trainable params: 0 (0.00 B)\n"
                  " Non-trainable params: 20 (80.00 B)\n");
    stk_model_release(inner);
    stk_model_release(m);
}

TEST(a_model_without_shapes_says_so)
{
    stk_error err = {0};
    stk_model *m = NULL;
    char *text = NULL;
    CHECK_OK(stk_model_new(NULL, &m, &err));
    stk_model_add(m, "Dense(4)");
    CHECK_OK(stk_model_summary(m, NULL, &text, &err));
    CHECK_CONTAINS(text, "0 (unbuilt)");
    stk_text_free(text);
    CHECK_FAILS(stk_model_summary(NULL, NULL, &text, &err), STK_ERR_ARGUMENT, "NULL");
    stk_model_release(m);
}

TEST_MAIN()
