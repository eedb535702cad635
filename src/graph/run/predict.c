/* predict.c - what follows from a calibration for a program. A task takes as long as others of its kind with as much work; what a
 * device lacks crosses over and is done at the CPU's pace; bodies of loops count once per trip. No clock is read here. */
#include "graph/run/predict.h"

#include "device/kernels_conv.h"
#include "graph/run/control.h"
#include "graph/run/island.h"

#include <math.h>

/* ---- kinds of work --------------------------------------------------------------------------------------- */

static const int8_t kinds[] = {
    [STK_K_CHAIN] = STK_PACE_WALK,
    [STK_K_GEMM] = STK_PACE_PRODUCT,
    [STK_K_COPY] = STK_PACE_MOVE,
    [STK_K_FILL] = STK_PACE_MOVE,
    [STK_K_PAD] = STK_PACE_MOVE,
    [STK_K_CONCAT] = STK_PACE_MOVE,
    [STK_K_IOTA] = STK_PACE_MOVE,
    [STK_K_REDUCE] = STK_PACE_SUM,
    [STK_K_HOST] = STK_PACE_WALK,
    [STK_K_GATHER] = STK_PACE_PICK,
    [STK_K_SCATTER] = STK_PACE_SCATTER,
    [STK_K_TAKE_ALONG] = STK_PACE_PICK,
    [STK_K_PUT_ALONG] = STK_PACE_SCATTER,
    [STK_K_RAVEL_INDEX] = STK_PACE_MOVE,
    [STK_K_ONE_HOT] = STK_PACE_MOVE,
    [STK_K_SORT] = STK_PACE_SCATTER,
    [STK_K_RESIZE] = STK_PACE_POOL,
    [STK_K_PROJECT] = STK_PACE_POOL,
    [STK_K_PROJECT_GRAD] = STK_PACE_POOL,
    [STK_K_CONV] = STK_PACE_CONV,
    [STK_K_CONV_BWD_DATA] = STK_PACE_CONV_DATA,
    [STK_K_CONV_BWD_WEIGHT] = STK_PACE_CONV_WEIGHT,
    [STK_K_MAX_POOL] = STK_PACE_POOL,
    [STK_K_MAX_POOL_GRAD] = STK_PACE_POOL,
    [STK_K_MAX_POOL_PICK] = STK_PACE_POOL,
    [STK_K_AVG_POOL] = STK_PACE_POOL,
    [STK_K_AVG_POOL_GRAD] = STK_PACE_POOL,
    [STK_K_SOFTMAX] = STK_PACE_NORM,
    [STK_K_SOFTMAX_GRAD] = STK_PACE_NORM,
    [STK_K_ATTENTION] = STK_PACE_PRODUCT,
    [STK_K_ATTENTION_GRAD] = STK_PACE_PRODUCT,
    [STK_K_XENT] = STK_PACE_NORM,
    [STK_K_MOMENTS] = STK_PACE_SUM,
    [STK_K_COLUMN_SUMS] = STK_PACE_SUM,
    [STK_K_ROW_NORM] = STK_PACE_NORM,
    [STK_K_ROW_NORM_GRAD] = STK_PACE_NORM,
    [STK_K_GROUP_NORM] = STK_PACE_NORM,
    [STK_K_GROUP_NORM_GRAD] = STK_PACE_NORM,
    [STK_K_RANDOM] = STK_PACE_RANDOM,
    [STK_K_PERMUTATION] = STK_PACE_SCATTER,
    [STK_K_SCAN] = STK_PACE_SUM,
    [STK_K_LSTM] = STK_PACE_CELL,
    [STK_K_LSTM_GRAD] = STK_PACE_CELL_GRAD,
    [STK_K_GRU] = STK_PACE_CELL,
    [STK_K_GRU_GRAD] = STK_PACE_CELL_GRAD,
};
_Static_assert(sizeof kinds == STK_KERNEL_COUNT, "a kind of work for every kernel");

static const bool in_flops[] = {
#define bytes                           false
#define flops                           true
#define STK_PACE(NAME, name, unit, doc) unit,
#include "stoker/paces.def"
#undef bytes
#undef flops
};

/* Pictures with fewer channels than a vector has lanes, and depthwise ones: no fast algorithm takes them. */
static bool is_thin(const stk_conv *c) { return c->ic / c->groups < 8; }

/* A chain whose results are variables works in place, often on several variables in one launch. */
stk_pace_kind stk_task_kind(const stk_plan *p, const stk_task *t)
{
    stk_pace_kind kind = (stk_pace_kind)kinds[t->kernel];
    if (kind == STK_PACE_CONV || kind == STK_PACE_CONV_DATA || kind == STK_PACE_CONV_WEIGHT)
        return is_thin(t->params) ? STK_PACE_CONV_THIN : kind;
    if (t->kernel != STK_K_CHAIN) return kind;
    for (int32_t i = 0; i < t->nargs; i++)
        if (stk_is_output_arg(t, i) && p->home[stk_root(p, t->arg[i])].place != STK_AT_VARIABLE)
            return STK_PACE_WALK;
    return STK_PACE_UPDATE;
}

double stk_task_work(const stk_task *t, stk_pace_kind kind)
{
    return in_flops[kind] ? t->flops : t->bytes;
}

/* ---- seconds --------------------------------------------------------------------------------------------- */

static double seconds_at(const stk_pace *p, double least, double work)
{
    int32_t n = 0;
    while (n < STK_PACE_POINTS && p->work[n] > 0 && p->seconds[n] > 0) n++;
    if (n == 0 || work <= 0) return least;
    if (work <= p->work[0]) return least + fmax(p->seconds[0] - least, 0) * work / p->work[0];
    if (work >= p->work[n - 1]) return p->seconds[n - 1] * work / p->work[n - 1];
    int32_t i = 1;
    while (work > p->work[i]) i++;
    double share = log(work / p->work[i - 1]) / log(p->work[i] / p->work[i - 1]);
    return p->seconds[i - 1] * pow(p->seconds[i] / p->seconds[i - 1], share);
}

double stk_pace_seconds(const stk_calibration *c, stk_pace_kind kind, double work)
{
    return seconds_at(&c->pace[kind], c->launch, work);
}

/* A chain passes over memory or is busy with its operations; a product with few rows only reads its weights. What rows are picked from
 * is not read as a whole. */
double stk_task_seconds(const stk_plan *p, const stk_task *t, const stk_calibration *c)
{
    stk_pace_kind kind = stk_task_kind(p, t);
    double seconds = stk_pace_seconds(c, kind, stk_task_work(t, kind));
    if (kind == STK_PACE_WALK)
        seconds = fmax(seconds, stk_pace_seconds(c, STK_PACE_MATH, t->flops));
    else if (in_flops[kind] && kind != STK_PACE_PICK && c->bytes > 0)
        seconds = fmax(seconds, t->bytes / c->bytes);
    return seconds;
}

/* An island of no bytes costs what the smallest does; a row that joins one costs what its bytes add to that. */
double stk_island_predict(const stk_island *row, bool first, const stk_calibration *c)
{
    const double empty = c->crossing.seconds[0];
    double seconds = seconds_at(&c->crossing, empty, (double)(row->bytes_down + row->bytes_up));
    return first ? seconds : fmax(seconds - empty, 0);
}

/* What is counted: everything, or islands alone. */
typedef struct counting {
    const stk_calibration *c, *host; /* host NULL: without the work of islands */
    bool islands;
} counting;

static double predict_tasks(const stk_program *p, const counting *w);

/* What ran already is known better than any pace: nobody else can say what a function of the host takes. */
static double predict_island(const stk_crossing *k, const counting *w)
{
    if (!w->host) return 0;
    double seconds = stk_crossing_seconds(k);
    if (seconds <= 0) seconds = predict_tasks(stk_crossing_body(k), &(counting){.c = w->host});
    return fmax(seconds - w->host->launch, 0); /* a small one is part of the crossing */
}

static double predict_control(const stk_control *k, const counting *w)
{
    double body[2] = {0};
    if (k->op == STK_OP_ISLAND) return predict_island(k->crossing, w);
    for (int i = 0; i < 2; i++)
        if (k->body[i]) body[i] = (w->islands ? 0 : w->c->run) + predict_tasks(k->body[i], w);
    if (k->op == STK_OP_COND) return fmax(body[0], body[1]);
    return (body[0] + body[1]) * (double)(k->trips > 0 ? k->trips : 1);
}

static double predict_tasks(const stk_program *p, const counting *w)
{
    double seconds = 0;
    for (int64_t k = 0; k < p->plan.ntasks; k++) {
        const stk_task *t = &p->plan.tasks[k];
        if (t->kernel >= 0)
            seconds += w->islands ? 0 : stk_task_seconds(&p->plan, t, w->c);
        else if (p->control && p->control[k])
            seconds += predict_control(p->control[k], w);
    }
    for (int64_t i = 0; i < p->islands.count; i++) {
        const stk_island *row = &p->islands.rows[i];
        seconds += stk_island_predict(row, i == 0 || row->number != row[-1].number, w->c);
    }
    return seconds;
}

double stk_program_predict(const stk_program *p, const stk_calibration *c,
                           const stk_calibration *host)
{
    double input = 0;
    int32_t feeds = 0;
    if (!p || !c || c->run <= 0) return 0;
    for (int32_t i = 0; i < p->nfeeds; i++) {
        if (p->feeds[i].uniform_at >= 0) continue;
        input += (double)stk_type_bytes(&p->feeds[i].type);
        feeds++;
    }
    double seconds = fmax(c->run - c->launch, 0) + c->feed * feeds +
                     predict_tasks(p, &(counting){.c = c, .host = host});
    return c->up_pinned > 0 ? fmax(seconds, input / c->up_pinned) : seconds;
}

double stk_program_predict_islands(const stk_program *p, const stk_calibration *c,
                                   const stk_calibration *host)
{
    if (!p || !c) return 0;
    return predict_tasks(p, &(counting){.c = c, .host = host, .islands = true});
}
