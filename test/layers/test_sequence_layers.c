/* Embeddings, masks, recurrent layers, wrappers, attention, norms and preprocessing: names and shapes of weights, states,
 * masks, directions, mistakes. Their numbers are compared with Keras in test/train. */
#include "model_run.h"

static void has_weight(const fixture *f, const char *name, int32_t rank, const int64_t *shape)
{
    int32_t i = stk_model_find_weight(f->model, name);
    if (!CHECK_MSG(i >= 0, "there is no weight %s", name)) return;
    stk_weight w = stk_model_weight(f->model, i);
    CHECK_EQ_I64(w.rank, rank);
    for (int32_t k = 0; k < rank && k < w.rank; k++) CHECK_EQ_I64(w.shape[k], shape[k]);
}

static void gives(const fixture *f, int32_t i, int32_t rank, const int64_t *shape)
{
    stk_spec s = stk_model_output(f->model, i);
    if (!CHECK_EQ_I64(s.rank, rank)) return;
    for (int32_t k = 0; k < rank; k++) CHECK_EQ_I64(s.shape[k], shape[k]);
}

TEST(weights_are_named_as_in_keras)
{
    fixture f = sequential("Input((6,), dtype=int32)", "Embedding(9, 4, mask_zero=True)",
                           "Bidirectional(LSTM(3, return_sequences=True))", "GRU(5)",
                           "BatchNormalization()", "LayerNormalization()", NULL);
    has_weight(&f, "embedding/embeddings", 2, L(9, 4));
    has_weight(&f, "bidirectional/forward_lstm/lstm_cell/kernel", 2, L(4, 12));
    has_weight(&f, "bidirectional/backward_lstm/lstm_cell/recurrent_kernel", 2, L(3, 12));
    has_weight(&f, "bidirectional/backward_lstm/lstm_cell/bias", 1, L(12));
    has_weight(&f, "gru/gru_cell/kernel", 2, L(6, 15));
    has_weight(&f, "gru/gru_cell/bias", 2, L(2, 15));
    has_weight(&f, "batch_normalization/gamma", 1, L(5));
    has_weight(&f, "batch_normalization/moving_variance", 1, L(5));
    has_weight(&f, "layer_normalization/beta", 1, L(5));
    int32_t moving = stk_model_find_weight(f.model, "batch_normalization/moving_mean");
    CHECK(!stk_model_weight(f.model, moving).trainable);
    CHECK_EQ_I64(stk_model_params(f.model).fixed, 10);
    gives(&f, 0, 2, L(-1, 5));
    discard(&f);
}

TEST(the_forget_gate_starts_with_ones)
{
    stk_error err = {0};
    fixture f = sequential("Input((6, 2))", "LSTM(3, return_sequences=True)",
                           "LSTM(3, unit_forget_bias=False)", NULL);
    stk_tensor *a = NULL, *b = NULL;
    CHECK_OK(stk_store_get(f.store, "lstm/lstm_cell/bias", &a, &err));
    CHECK_OK(stk_store_get(f.store, "lstm_1/lstm_cell/bias", &b, &err));
    for (int64_t i = 0; i < 12; i++) {
        CHECK_NEAR(stk_tensor_at(a, i), i >= 3 && i < 6, 0);
        CHECK_NEAR(stk_tensor_at(b, i), 0, 0);
    }
    stk_tensor_release(a), stk_tensor_release(b);
    discard(&f);
}

/* Keras' rule: -1 is the last row; what is outside of the table ends the run on the CPU and names the layer. */
TEST(numbers_of_an_embedding_are_in_its_table)
{
    stk_error err = {0};
    fixture f = sequential("Input((2,), dtype=int32)", "Embedding(3, 4, name=words)", NULL);
    stk_tensor *table = NULL, *x = NULL, *y = NULL;
    CHECK_OK(stk_store_get(f.store, "words/embeddings", &table, &err));
    CHECK_OK(stk_tensor_from(STK_I32, 2, L(1, 2), (int32_t[]){0, -1}, &x, &err));
    y = run_model(&f, x, false, 0);
    for (int64_t k = 0; y && table && k < 4; k++)
        CHECK_NEAR(stk_tensor_at(y, 4 + k), stk_tensor_at(table, 8 + k), 0);
    stk_device *cpu = NULL;
    stk_program *p = NULL;
    stk_graph *g = NULL;
    stk_program_options o = stk_program_options_defaults();
    CHECK_OK(stk_device_open("cpu:0", 0, &cpu, &err));
    CHECK_OK(stk_graph_new(&g, &err));
    stk_val in = stk_g_input(g, "x", STK_I32, 2, L(1, 2)), out = 0;
    stk_model_call(f.model, g, &in, &(stk_call){0}, &out);
    stk_g_output(g, "y", out);
    o.device = cpu;
    ((int32_t *)x->data)[1] = 3;
    if (CHECK_OK(stk_program_new(g, &o, &p, &err))) {
        CHECK_OK(stk_program_feed(p, "x", x, &err));
        CHECK_FAILS(stk_program_run(p, 1, &err), STK_ERR_RANGE,
                    "gather of layer 'words': indices[0,1] = 3 is not in [0, 3)");
    }
    stk_tensor_release(table), stk_tensor_release(x), stk_tensor_release(y);
    stk_program_release(p);
    stk_graph_release(g);
    stk_device_release(cpu);
    discard(&f);
}

static fixture functional(void)
{
    stk_error err = {0};
    fixture f = {0};
    CHECK_OK(stk_model_new(NULL, &f.model, &err));
    return f;
}

TEST(states_come_out_and_go_in)
{
    fixture f = functional();
    stk_model *m = f.model;
    stk_sym x = stk_m_input(m, "x", STK_F32, 2, L(5, 3));
    stk_sym all = stk_m_apply(m, "LSTM(4, return_sequences=True, return_state=True)", 1, &x);
    stk_sym next =
        stk_m_apply(m, "LSTM(4, return_state=True)", 3, (stk_sym[]){x, all + 1, all + 2});
    stk_m_output(m, all);
    stk_m_output(m, all + 1);
    stk_m_output(m, next);
    stk_m_output(m, next + 1);
    finish(&f);
    gives(&f, 0, 3, L(-1, 5, 4));
    gives(&f, 1, 2, L(-1, 4));
    stk_tensor *t = filled(3, L(2, 5, 3), a_wave), *y[4];
    if (run_outputs(&f, 1, &t, false, 0, 0, y)) {
        for (int64_t n = 0; n < 2; n++)
            for (int64_t k = 0; k < 4; k++) {
                CHECK_NEAR(stk_tensor_at(y[0], (n * 5 + 4) * 4 + k), stk_tensor_at(y[1], n * 4 + k),
                           1e-6);
                CHECK_NEAR(stk_tensor_at(y[2], n * 4 + k), stk_tensor_at(y[3], n * 4 + k), 0);
            }
        for (int32_t i = 0; i < 4; i++) stk_tensor_release(y[i]);
    }
    stk_tensor_release(t);
    discard(&f);
}

/* go_backwards on x is forwards on x turned round, with the sequence in the order of the steps taken. */
TEST(backwards_is_forwards_on_a_sequence_turned_round)
{
    static const char *const layers[] = {
        "LSTM(4, return_sequences=True", "GRU(4, return_sequences=True",
        "SimpleRNN(4, return_sequences=True", "LSTM(4, activation=relu, return_sequences=True"};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        char forth[96], back[96];
        stk_error err = {0};
        snprintf(forth, sizeof forth, "%s, name=walk)", layers[i]);
        snprintf(back, sizeof back, "%s, name=walk, go_backwards=True)", layers[i]);
        fixture f = sequential("Input((5, 3))", forth, NULL);
        fixture b = sequential("Input((5, 3))", back, NULL);
        stk_tensor *x = filled(3, L(2, 5, 3), a_wave), *turned = NULL;
        CHECK_OK(stk_tensor_new(STK_F32, 3, L(2, 5, 3), &turned, &err));
        for (int64_t k = 0; k < 30; k++)
            CHECK_OK(stk_tensor_set(turned, k / 15 * 15 + (4 - k / 3 % 5) * 3 + k % 3,
                                    stk_tensor_at(x, k), &err));
        stk_tensor *y = run_model(&f, x, false, 0), *z = run_model(&b, turned, false, 0);
        for (int64_t k = 0; y && z && k < 40; k++)
            CHECK_NEAR(stk_tensor_at(y, k), stk_tensor_at(z, k), 1e-6);
        CHECK(deviation_of(y) > 0.01);
        stk_tensor_release(x), stk_tensor_release(turned), stk_tensor_release(y),
            stk_tensor_release(z);
        discard(&f), discard(&b);
    }
}

TEST(attention_takes_queries_values_and_masks)
{
    fixture f = functional();
    stk_model *m = f.model;
    stk_sym q = stk_m_input(m, "q", STK_F32, 2, L(4, 6)),
            v = stk_m_input(m, "v", STK_F32, 2, L(7, 5));
    stk_layer mha = stk_m_layer(m, "MultiHeadAttention(num_heads=2, key_dim=3)");
    stk_sym y = stk_m_call_with(m, mha, 2, (stk_sym[]){q, v}, "return_attention_scores=True");
    stk_m_output(m, y);
    stk_m_output(m, y + 1);
    finish(&f);
    has_weight(&f, "multi_head_attention/query/kernel", 3, L(6, 2, 3));
    has_weight(&f, "multi_head_attention/value/bias", 2, L(2, 3));
    has_weight(&f, "multi_head_attention/attention_output/kernel", 3, L(2, 3, 6));
    gives(&f, 0, 3, L(-1, 4, 6));
    gives(&f, 1, 4, L(-1, 2, 4, 7));
    stk_tensor *t[2] = {filled(3, L(2, 4, 6), a_wave), filled(3, L(2, 7, 5), a_wave)}, *out[2];
    if (run_outputs(&f, 2, t, false, 0, 0, out)) {
        for (int64_t row = 0; row < 2 * 2 * 4; row++) { /* weights of values sum to 1 */
            double sum = 0;
            for (int64_t k = 0; k < 7; k++) sum += stk_tensor_at(out[1], row * 7 + k);
            CHECK_NEAR(sum, 1, 1e-5);
        }
        stk_tensor_release(out[0]), stk_tensor_release(out[1]);
    }
    stk_tensor_release(t[0]), stk_tensor_release(t[1]);
    discard(&f);
}

TEST(a_causal_mask_hides_what_comes_later)
{
    fixture f = functional();
    stk_model *m = f.model;
    stk_sym x = stk_m_input(m, "x", STK_F32, 2, L(5, 4));
    stk_layer mha = stk_m_layer(m, "MultiHeadAttention(2, 3)");
    stk_m_output(m, stk_m_call_with(m, mha, 2, (stk_sym[]){x, x}, "use_causal_mask=True"));
    finish(&f);
    stk_tensor *t = filled(3, L(1, 5, 4), a_wave), *before = run_model(&f, t, false, 0);
    stk_error err = {0};
    for (int64_t k = 16; k < 20; k++) CHECK_OK(stk_tensor_set(t, k, 3, &err)); /* the last step */
    stk_tensor *after = run_model(&f, t, false, 0);
    for (int64_t k = 0; k < 16; k++)
        CHECK_NEAR(stk_tensor_at(before, k), stk_tensor_at(after, k), 1e-6);
    CHECK(fabs(stk_tensor_at(before, 16) - stk_tensor_at(after, 16)) > 1e-4);
    stk_tensor_release(t), stk_tensor_release(before), stk_tensor_release(after);
    discard(&f);
}

TEST(batch_norm_follows_the_batch_only_in_training)
{
    stk_error err = {0};
    fixture f = sequential("Input((3,))", "BatchNormalization(momentum=0.5)", NULL);
    stk_tensor *x = filled(2, L(8, 3), a_wave), *y = run_model(&f, x, false, 0), *mean = NULL;
    CHECK_OK(stk_store_get(f.store, "batch_normalization/moving_mean", &mean, &err));
    for (int64_t k = 0; k < 3; k++) CHECK_NEAR(stk_tensor_at(mean, k), 0, 0);
    stk_tensor_release(mean), stk_tensor_release(y);
    y = run_model(&f, x, true, 0);
    CHECK_NEAR(mean_of(y), 0, 1e-5);
    CHECK_OK(stk_store_get(f.store, "batch_normalization/moving_mean", &mean, &err));
    for (int64_t k = 0; k < 3; k++) {
        double sum = 0;
        for (int64_t n = 0; n < 8; n++) sum += stk_tensor_at(x, n * 3 + k) / 8;
        CHECK_NEAR(stk_tensor_at(mean, k), sum / 2, 1e-6);
    }
    stk_tensor_release(mean), stk_tensor_release(y), stk_tensor_release(x);
    discard(&f);
}

TEST(normalization_adapts)
{
    stk_error err = {0};
    fixture f = sequential("Input((3,))", "Normalization()", NULL);
    fixture g = sequential("Input((3,))", "Normalization(mean=1, variance=4)", NULL);
    stk_tensor *x = filled(2, L(40, 3), a_wave);
    CHECK_OK(stk_model_adapt(f.model, "normalization", f.store, x, &err));
    stk_tensor *y = run_model(&f, x, false, 0);
    for (int64_t k = 0; k < 3; k++) {
        double sum = 0, square = 0;
        for (int64_t n = 0; n < 40; n++) {
            sum += stk_tensor_at(y, n * 3 + k) / 40;
            square += pow(stk_tensor_at(y, n * 3 + k), 2) / 40;
        }
        CHECK_NEAR(sum, 0, 1e-5);
        CHECK_NEAR(square, 1, 1e-4);
    }
    stk_tensor *count = NULL;
    CHECK_OK(stk_store_get(f.store, "normalization/count", &count, &err));
    CHECK_EQ_I64(stk_tensor_at(count, 0), 40);
    CHECK_FAILS(stk_model_adapt(f.model, "normalisation", f.store, x, &err), STK_ERR_ARGUMENT,
                "no Normalization layer");
    CHECK_FAILS(stk_model_adapt(g.model, "normalization", g.store, x, &err), STK_ERR_ARGUMENT,
                "were given");
    stk_tensor *z = run_model(&g, x, false, 0);
    CHECK_NEAR(stk_tensor_at(z, 7), (stk_tensor_at(x, 7) - 1) / 2, 1e-6);
    stk_tensor_release(x), stk_tensor_release(y), stk_tensor_release(z), stk_tensor_release(count);
    discard(&f), discard(&g);
}

TEST(wrappers_check_what_they_wrap)
{
    fixture f = sequential("Input((4, 6, 6, 1))", "TimeDistributed(Dense(3))",
                           "TimeDistributed(BatchNormalization())", NULL);
    has_weight(&f, "time_distributed/dense/kernel", 2, L(1, 3));
    gives(&f, 0, 5, L(-1, 4, 6, 6, 3));
    discard(&f);
    refuses("Input((4, 6))", "Bidirectional(Dense(3))", "SimpleRNN, LSTM or GRU");
    refuses("Input((4, 6))", "Bidirectional(LSTM(3), merge_mode=max)", "merge_mode");
    refuses("Input((4, 6))", "Bidirectional(LSTM(3), backward_layer=LSTM(3))", "same way");
    refuses("Input((4, 6))", "LSTM(3, stateful=True)", "stateful");
    refuses("Input((4,))", "LSTM(3)", "axes");
    refuses("Input((4, 6))", "GroupNormalization(4)", "divide");
    refuses("Input((4, 6))", "BatchNormalization(renorm=True, renorm_clipping={rmin: 2, rmax: 1})",
            "rmax");
    refuses("Input((4, 6))", "SpectralNormalization(Flatten())", "kernel");
    refuses("Input((4, 6))", "RNN(Dense(3))", "StackedRNNCells");
    refuses("Input((4, 6))", "RNN(StackedRNNCells([LSTMCell(3), Dense(2)]))", "among the cells");
    refuses("Input((4, 6))", "Normalization(mean=1)", "together");
    refuses("Input((4, 6))", "Rescaling((1, 2, 3))", "scale");
    refuses("Input((4, 6))", "Embedding(0, 3)", "input_dim");
    refuses("Input((4,), dtype=int64)", "StringLookup(vocabulary=[a, b])", "no tensors of strings");
    refuses("Input((4,), dtype=int64)", "IntegerLookup()", "get_vocabulary");
    refuses("Input((4,), dtype=int64)", "IntegerLookup(vocabulary=[a, 1])", "no whole number");
    refuses("Input((4,), dtype=int64)", "Hashing(0)", "num_bins");
}

/* Refused memory anywhere leaves nothing behind. */
static stk_status build_and_call(void)
{
    stk_error err = {0};
    stk_model *m = NULL;
    stk_graph *g = NULL;
    stk_status status = stk_model_new(NULL, &m, &err);
    if (status == STK_OK) {
        stk_model_add(m, "Input((4,), dtype=int32)");
        stk_model_add(m, "Embedding(5, 3, mask_zero=True)");
        stk_model_add(m, "Bidirectional(SimpleRNN(2, return_sequences=True))");
        stk_model_add(m, "GRU(2, recurrent_dropout=0.5)");
        stk_model_add(m, "BatchNormalization()");
        stk_model_add(m, "Rescaling((1, 2), offset=1)");
        status = stk_model_build(m, 0, NULL, &err);
    }
    if (status == STK_OK) status = stk_graph_new(&g, &err);
    if (status == STK_OK) {
        stk_val x = stk_g_input(g, "x", STK_I32, 2, L(2, 4)), y = 0;
        stk_model_call(m, g, &x, &(stk_call){.training = true}, &y);
        status = stk_graph_status(g, &err);
    }
    stk_graph_release(g);
    stk_model_release(m);
    return status;
}
TEST(refused_memory_leaks_nothing) { OOM_LOOP(build_and_call()); }

TEST_MAIN()
