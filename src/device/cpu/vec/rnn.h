/* rnn.h - one step of one row of a recurrent cell, everything but its matrix products.
 *
 * Widths are in units of n hidden units; the layout of gates is drawn in kernels_rnn.h. A result may be the very
 * same memory as an operand named so below, but must not overlap one in any other way. */
#ifndef STK_DEVICE_CPU_VEC_RNN_H
#define STK_DEVICE_CPU_VEC_RNN_H

#include "device/cpu/vec/vec.h"

typedef struct stk_rnn_row {
    const void *x;  /* input's share: 4n (LSTM), 3n (GRU) */
    const void *hu; /* recurrent product, as wide; in the second half of a reset_before step: n */
    const void *b, *b2; /* biases; b2: of the recurrent product, reset_after only */
    const void *before; /* LSTM: the cell; GRU: h */
    void *gates;        /* 4n; may be hu (LSTM) */
    void *c;            /* LSTM: may be `before` */
    void *h;
} stk_rnn_row;

typedef struct stk_rnn_back {
    const void *gates, *before; /* as they were in the forward step */
    const void *c;              /* LSTM: the cell after the step */
    const void *product;        /* second half of a reset_before step: gradient of r h */
    void *dh;       /* in: gradient of h after the step; out: its part that skips the product */
    void *dc;       /* LSTM, in and out */
    void *dx, *dhu; /* gradients before sigmoid and tanh; dhu: reset_after only */
} stk_rnn_back;

typedef void (*stk_rnn_forward)(int64_t n, const stk_rnn_row *r);
typedef void (*stk_rnn_backward)(int64_t n, const stk_rnn_back *r);

typedef struct stk_vec_rnn_cells {
    stk_rnn_forward lstm, gru_after, gru_before_gates, gru_before_state;
    stk_rnn_backward lstm_back, gru_after_back, gru_before_state_back, gru_before_gates_back;
    void (*add)(int64_t n, void *to, const void *x); /* to += x */
} stk_vec_rnn_cells;

typedef struct stk_vec_rnn {
    const stk_vec_rnn_cells *cells[STK_DTYPE_COUNT]; /* float32 and float64; NULL elsewhere */
} stk_vec_rnn;

#ifdef STK_ISA
extern const stk_vec_rnn STK_VEC(stk_vec_rnn);
#endif

#endif
