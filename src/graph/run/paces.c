/* paces.c - how fast a device is at each kind of work, from small to large: a program with little else in it is run, and what else is in
 * it is taken off by what is known already; so the order of the table matters. */
#include "graph/run/predict.h"
#include "stoker/nn.h"
#include "stoker/recurrent.h"

#include <math.h>
#include <stdio.h>

/* ---- programs -------------------------------------------------------------------------------------------- */

/* Several of the same side by side, so that small work stands out against what a run costs anyway. Updates would be joined. */
static int copies_of(stk_pace_kind kind, int i)
{
    static const int copies[STK_PACE_POINTS] = {16, 16, 4, 1};
    return kind == STK_PACE_UPDATE ? 1 : copies[i];
}

/* Names are made: no two copies share anything. */
static stk_val variable(stk_graph *g, stk_dtype dtype, int32_t rank, const int64_t *shape)
{
    char name[24];
    snprintf(name, sizeof name, "v%d", (int)g->nvalues);
    return stk_g_variable(g, name, dtype, rank, shape);
}

static void output(stk_graph *g, stk_val y)
{
    char name[24];
    snprintf(name, sizeof name, "y%d", (int)y);
    stk_g_output(g, name, y);
}

static stk_val array(stk_graph *g, int64_t rows, int64_t columns)
{
    return variable(g, STK_F32, 2, (int64_t[]){rows, columns});
}

static const int64_t rows_of[STK_PACE_POINTS] = {16, 512, 8192, 65536};
enum { WIDE = 32 };

static void build_walk(stk_graph *g, int i)
{
    stk_val a = array(g, rows_of[i], WIDE), b = array(g, rows_of[i], WIDE);
    output(g, stk_g_add(g, stk_g_mul(g, a, b), a));
}

/* About what an adaptive update does to each weight. */
static void build_math(stk_graph *g, int i)
{
    stk_val a = array(g, rows_of[i], WIDE), b = array(g, rows_of[i], WIDE), y = a;
    for (int k = 0; k < 3; k++) {
        y = stk_g_add(g, stk_g_mul(g, y, b), a);
        y = stk_g_div(g, y, stk_g_add(g, stk_g_sqrt(g, stk_g_mul(g, y, y)), b));
    }
    output(g, y);
}

/* Two weights after Adam. */
static void build_update(stk_graph *g, int i)
{
    stk_val slow = stk_g_scalar(g, STK_F32, 0.1), small = stk_g_scalar(g, STK_F32, 1e-3);
    for (int k = 0; k < 2; k++) {
        stk_val d = array(g, rows_of[i] / 2, WIDE), m = array(g, rows_of[i] / 2, WIDE),
                v = array(g, rows_of[i] / 2, WIDE), w = array(g, rows_of[i] / 2, WIDE);
        stk_val mean = stk_g_lerp(g, m, d, slow), square = stk_g_lerp_square(g, v, d, small);
        stk_g_assign(g, m, mean);
        stk_g_assign(g, v, square);
        stk_g_assign(g, w, stk_g_fnma(g, stk_g_div_sqrt(g, mean, square, small), small, w));
    }
}

static void build_move(stk_graph *g, int i)
{
    output(g, stk_g_transpose(g, array(g, rows_of[i], WIDE), NULL));
}

static stk_val picked(stk_graph *g, int i, stk_val *from)
{
    stk_val where = variable(g, STK_I32, 1, (int64_t[]){rows_of[i] / 4});
    *from = array(g, rows_of[i], WIDE);
    return stk_g_gather(g, *from, where, 0);
}

static void build_pick(stk_graph *g, int i)
{
    stk_val from;
    output(g, picked(g, i, &from));
}

/* The gradient of sum(y * v) for x: only what hangs on v is computed. */
static void put_gradient(stk_graph *g, stk_val y, stk_val v, stk_val x)
{
    stk_val d = 0;
    stk_g_gradients(g, stk_g_sum(g, stk_g_mul(g, y, v), 0, NULL, false), 1, &x, &d);
    output(g, d);
}

static void build_scatter(stk_graph *g, int i)
{
    stk_val from, y = picked(g, i, &from);
    put_gradient(g, y, array(g, rows_of[i] / 4, WIDE), from);
}

static void build_sum(stk_graph *g, int i)
{
    output(g, stk_g_sum(g, array(g, rows_of[i], WIDE), 1, (int32_t[]){0}, false));
}

static void build_norm(stk_graph *g, int i)
{
    output(g, stk_g_softmax(g, array(g, rows_of[i], WIDE), -1));
}

static void build_random(stk_graph *g, int i)
{
    output(g, stk_g_random_bernoulli(g, STK_F32, 2, (int64_t[]){rows_of[i], WIDE}, 0.5, NULL));
}

/* Pictures, channels in, channels out. */
static const int64_t pictures[STK_PACE_POINTS][4] = {
    {1, 8, 8, 8}, {1, 16, 16, 16}, {8, 20, 16, 32}, {16, 28, 32, 64}};

static stk_val picture(stk_graph *g, int i, int64_t side, int64_t channels)
{
    return variable(g, STK_F32, 4, (int64_t[]){pictures[i][0], side, side, channels});
}

static void build_pool(stk_graph *g, int i)
{
    int64_t side = pictures[i][1], channels = pictures[i][3];
    stk_val x = picture(g, i, side, channels);
    stk_pool_options o = stk_pool_options_defaults();
    stk_val y = stk_g_max_pool(g, x, &o);
    output(g, y);
    put_gradient(g, y, picture(g, i, side / 2, channels), x);
}

static void build_product(stk_graph *g, int i)
{
    static const int64_t sides[STK_PACE_POINTS] = {16, 64, 160, 512};
    stk_val a = array(g, sides[i], sides[i]), b = array(g, sides[i], sides[i]);
    output(g, stk_g_matmul(g, a, b));
}

static stk_val convolution(stk_graph *g, const int64_t size[4], stk_val *x, stk_val *w)
{
    stk_conv_options o = stk_conv_options_defaults();
    o.padding = STK_PADDING_SAME;
    *x = variable(g, STK_F32, 4, (int64_t[]){size[0], size[1], size[1], size[2]});
    *w = variable(g, STK_F32, 4, (int64_t[]){3, 3, size[2], size[3]});
    return stk_g_conv(g, *x, *w, &o);
}

static void build_conv(stk_graph *g, int i)
{
    stk_val x, w;
    output(g, convolution(g, pictures[i], &x, &w));
}

static void build_conv_data(stk_graph *g, int i)
{
    stk_val x, w, y = convolution(g, pictures[i], &x, &w);
    put_gradient(g, y, picture(g, i, pictures[i][1], pictures[i][3]), x);
}

static void build_conv_weight(stk_graph *g, int i)
{
    stk_val x, w, y = convolution(g, pictures[i], &x, &w);
    put_gradient(g, y, picture(g, i, pictures[i][1], pictures[i][3]), w);
}

static void build_conv_thin(stk_graph *g, int i)
{
    static const int64_t size[STK_PACE_POINTS][4] = {
        {1, 8, 3, 8}, {1, 24, 3, 16}, {16, 24, 3, 32}, {64, 32, 3, 32}};
    stk_val x, w, y = convolution(g, size[i], &x, &w);
    output(g, y);
    put_gradient(
        g, y, variable(g, STK_F32, 4, (int64_t[]){size[i][0], size[i][1], size[i][1], size[i][3]}),
        w);
}

/* Batch, time, units. */
static const int64_t sentences[STK_PACE_POINTS][3] = {
    {1, 4, 8}, {8, 16, 32}, {32, 16, 64}, {64, 16, 128}};

static stk_val cell(stk_graph *g, int i, stk_val *x)
{
    const int64_t *size = sentences[i], gates = 4 * size[2];
    *x = variable(g, STK_F32, 3, (int64_t[]){size[0], size[1], size[2]});
    stk_val w = array(g, size[2], gates), u = array(g, size[2], gates);
    return stk_g_lstm(g, *x, w, u, 0, NULL).h;
}

static void build_cell(stk_graph *g, int i)
{
    stk_val x;
    output(g, cell(g, i, &x));
}

static void build_cell_grad(stk_graph *g, int i)
{
    stk_val x, y = cell(g, i, &x);
    put_gradient(g, y, array(g, sentences[i][0], sentences[i][2]), x);
}

static void (*const builders[STK_PACES])(stk_graph *g, int i) = {
#define STK_PACE(NAME, name, unit, doc) build_##name,
#include "stoker/paces.def"
};

/* ---- measuring ------------------------------------------------------------------------------------------- */

/* What is left of a run's time when everything else in it is taken off, for each task of this kind. */
static void note(const stk_program *p, const stk_calibration *c, stk_pace_kind kind, double seconds,
                 double *work, double *each)
{
    int32_t own = 0;
    double all = 0;
    seconds -= fmax(c->run - c->launch, 0);
    for (int64_t k = 0; k < p->plan.ntasks; k++) {
        const stk_task *t = &p->plan.tasks[k];
        if (t->kernel < 0) continue;
        stk_pace_kind of = stk_task_kind(&p->plan, t);
        if (of == kind || (kind == STK_PACE_MATH && of == STK_PACE_WALK)) {
            own++;
            all += stk_task_work(t, kind);
        } else {
            seconds -= stk_task_seconds(&p->plan, t, c);
        }
    }
    *work = own ? all / own : 0;
    *each = own ? fmax(seconds / own, c->launch / 4) : 0;
}

static stk_status measure(stk_device *d, stk_pace_kind kind, int i, stk_calibration *c,
                          stk_error *err)
{
    stk_graph *g = NULL;
    stk_program *p = NULL;
    double seconds = 0;
    stk_program_options o = {.device = d};
    STK_TRY(stk_graph_new(&g, err));
    for (int k = 0; k < copies_of(kind, i); k++) builders[kind](g, i);
    stk_status status = stk_program_new(g, &o, &p, err);
    stk_graph_release(g);
    if (status == STK_OK && p->islands.count == 0) { /* what it lacks has no pace */
        status = stk_fill_variables(p, err);
        if (status == STK_OK) status = stk_time_runs(p, &seconds, err);
        stk_pace *to = &c->pace[kind];
        if (status == STK_OK) note(p, c, kind, seconds, &to->work[i], &to->seconds[i]);
        if (i && to->seconds[i] > 0) /* more work never takes less */
            to->seconds[i] = fmax(to->seconds[i], to->seconds[i - 1]);
    }
    stk_program_release(p);
    return status;
}

/* What is slow already is not measured with more: from there on it is in proportion. */
stk_status stk_paces_measure(stk_device *d, stk_calibration *c, stk_error *err)
{
    static const double SLOW = 2e-3;
    for (int kind = 0; kind < STK_PACES; kind++)
        for (int i = 0; i < STK_PACE_POINTS; i++) {
            if (i && c->pace[kind].seconds[i - 1] > SLOW) break;
            STK_TRY(measure(d, (stk_pace_kind)kind, i, c, err));
        }
    return STK_OK;
}
