/* Trainings on up to 64 threads, far more than there are processors: the same bits as on one, in a time that ends. And what a plan leaves to
 * one thread alone must not grow with the model. */
#include "problem.h"

#include "graph/run/program.h"
#include "stoker/layers.h"
#include "train/step.h"

enum { MOST_WEIGHTS = 32 };

static stk_error err; /* of the last call */

typedef struct kind {
    const char *name;
    const char *lines; /* with one place for a size */
    int size, large, batch;
} kind;

/* Large enough that most launches are cut. */
static const kind KINDS[] = {
    {"dense", "Input((256,))|Dense(%d, activation=relu)|Dropout(0.2, seed=3)|Dense(64)", 256, 1024,
     96},
    {"convolutions",
     "Input((24, 24, 3))|Conv2D(%d, 3, padding=same, "
     "use_bias=False)|BatchNormalization()|Activation(relu)|MaxPooling2D()|"
     "Conv2D(24, 3, padding=same)|DepthwiseConv2D(3, "
     "activation=relu)|GlobalAveragePooling2D()|Dense(10, activation=softmax)",
     16, 64, 16},
    {"recurrent",
     "Input((24, 12))|LSTM(%d, return_sequences=True)|LayerNormalization()|GRU(24)|Dense(5)", 32,
     128, 32},
    {"sequence",
     "Input((80, 16))|Dense(%d, activation=gelu)|LayerNormalization()|Softmax()|Conv1D(32, "
     "3)|GlobalMaxPooling1D()|Dense(3)",
     64, 256, 32},
};
enum { NKINDS = sizeof KINDS / sizeof *KINDS };

static stk_model *model_of(const kind *k, int size)
{
    char text[1024];
    stk_model *m = NULL;
    snprintf(text, sizeof text, k->lines,
             size); /* check: allow format, one place in each of the texts above */
    if (!CHECK_OK(stk_model_new(NULL, &m, &err))) return NULL;
    for (char *rest = text, *line; (line = strsep(&rest, "|"));) stk_model_add(m, line);
    if (CHECK_OK(stk_model_build(m, 0, NULL, &err))) return m;
    stk_model_release(m);
    return NULL;
}

typedef struct training {
    stk_optimizer *adam;
    stk_step *step;
    stk_store *store;
    stk_function *f;
    stk_program *program; /* borrowed */
    stk_tensor *x, *y;
} training;

static bool open_training(training *t, stk_model *m, int64_t batch, int32_t threads)
{
    stk_program_options how = {.threads = threads, .deterministic = true};
    *t = (training){.x = noise(stk_model_input(m, 0), batch, 1),
                    .y = noise(stk_model_output(m, 0), batch, 2)};
    if (!t->x || !t->y || !CHECK_OK(stk_optimizer_parse("adam:lr=1e-2", &t->adam, &err)) ||
        !CHECK_OK(stk_store_new(NULL, &t->store, &err)))
        return false;
    how.store = t->store;
    stk_step_config c = {.model = m, .optimizer = t->adam, .nlosses = 1, .seed = 5};
    c.losses = (const char *const[]){"mean_squared_error"};
    return CHECK_OK(stk_step_new(&c, &t->step, &err)) &&
           CHECK_OK(stk_step_init(t->step, t->store, &err)) &&
           CHECK_OK(stk_step_function(t->step, STK_STEP_TRAIN, false, &how, &t->f, &err)) &&
           CHECK_OK(stk_function_call(t->f, (stk_tensor *[]){t->x, t->y}, &t->program, &err));
}

static void close_training(training *t)
{
    stk_function_release(t->f);
    stk_step_release(t->step);
    stk_store_release(t->store);
    stk_optimizer_release(t->adam);
    stk_tensor_release(t->x);
    stk_tensor_release(t->y);
}

/* ---- the same bits ------------------------------------------------------------------------------------------- */

/* More steps than a program takes to try one thread and all by turns (trial.c). */
static int32_t train(stk_model *m, int64_t batch, int32_t threads, stk_tensor **weights)
{
    enum { STEPS = 40 };
    training t;
    int32_t n = stk_model_weight_count(m);
    bool good = CHECK(n <= MOST_WEIGHTS) && open_training(&t, m, batch, threads) &&
                CHECK_OK(stk_program_run(t.program, STEPS, &err));
    for (int32_t i = 0; good && i < n; i++)
        good = CHECK_OK(stk_store_get(t.store, stk_model_weight(m, i).name, &weights[i], &err));
    close_training(&t);
    return good ? n : 0;
}

static void compare(const kind *k, stk_model *m, int32_t threads, stk_tensor **want, int32_t n)
{
    stk_tensor *got[MOST_WEIGHTS] = {0};
    CHECK_EQ_I64(train(m, k->batch, threads, got), n);
    for (int32_t i = 0; i < n; i++) {
        CHECK_MSG(got[i] && !memcmp(got[i]->data, want[i]->data, (size_t)stk_tensor_bytes(want[i])),
                  "%s: %s has other bits on %d threads than on one", k->name,
                  stk_model_weight(m, i).name, threads);
        stk_tensor_release(got[i]);
    }
}

TEST(the_same_bits_on_1_to_64_threads)
{
    static const int32_t threads[] = {2, 4, 16, 64};
    for (int k = 0; k < NKINDS; k++) {
        stk_tensor *one[MOST_WEIGHTS] = {0};
        stk_model *m = model_of(&KINDS[k], KINDS[k].size);
        REQUIRE(CHECK(m));
        int32_t n = train(m, KINDS[k].batch, 1, one);
        for (int i = 0; i < 4 && CHECK(n); i++) compare(&KINDS[k], m, threads[i], one, n);
        for (int32_t i = 0; i < n; i++) stk_tensor_release(one[i]);
        stk_model_release(m);
    }
}

/* ---- what one thread does alone ---------------------------------------------------------------------------------- */

typedef struct found {
    uint32_t serial; /* the program's */
    double all, alone, worst;
    char name[64];
} found;

/* As the plan estimates it (groups.c). */
static double work_of(const stk_launch_facts *l)
{
    double arithmetic = l->flops / 40, traffic = l->bytes / 16;
    return arithmetic > traffic ? arithmetic : traffic;
}

static void look(void *context, const stk_program_facts *facts)
{
    found *f = context;
    if (facts->serial != f->serial) return;
    for (int64_t i = 0; i < facts->nlaunches; i++) {
        const stk_launch_facts *l = &facts->launches[i];
        double ns = work_of(l);
        f->all += ns;
        if (l->parts > 1) continue;
        f->alone += ns;
        if (ns <= f->worst) continue;
        f->worst = ns;
        snprintf(f->name, sizeof f->name, "%.24s by %.12s of %.20s", l->label, l->impl, l->place);
    }
}

static found look_at(const kind *k, int size)
{
    training t;
    found f = {0};
    stk_model *m = model_of(k, size);
    if (!CHECK(m)) return f;
    if (CHECK(open_training(&t, m, k->batch, 64))) {
        f.serial = t.program->serial;
        CHECK_OK(stk_program_visit(look, &f, &err));
    }
    close_training(&t);
    stk_model_release(m);
    return f;
}

TEST(what_one_thread_does_alone_does_not_grow)
{
    for (int k = 0; k < NKINDS; k++) {
        const int sizes[] = {KINDS[k].size, KINDS[k].large};
        for (int i = 0; i < 2; i++) {
            found f = look_at(&KINDS[k], sizes[i]);
            printf("%-14s of %4d: alone %4.1f of %5.0f us; the longest: %s, %.1f us\n",
                   KINDS[k].name, sizes[i], f.alone / 1e3, f.all / 1e3, f.name, f.worst / 1e3);
            CHECK(f.all > 500e3);
            CHECK_MSG(f.worst < 12e3, "%s: %s takes %.1f us in one piece", KINDS[k].name, f.name,
                      f.worst / 1e3);
            CHECK_MSG(f.alone < 0.05 * f.all, "%s: %.0f %% of a step are left to one thread",
                      KINDS[k].name, 100 * f.alone / f.all);
        }
    }
}

TEST_MAIN()
