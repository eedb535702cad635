/* planted_real.h - the same faults in real parts: a model, a trainer and a dataset pipeline, examined through the public job of a
 * trainer. Only the slowness is made: maps, readers, callbacks and host functions that sleep; photos are real ones. */
#ifndef STK_TEST_PLANTED_REAL_H
#define STK_TEST_PLANTED_REAL_H

#include "planted.h"
#include "temporary.h"

#include "base/file.h"
#include "stoker/pixels.h"
#include "stoker/sources.h"

#include <fcntl.h>

typedef enum real_source {
    REAL_ARRAYS,  /* fit takes rows of arrays */
    REAL_BATCHES, /* rows -> batch */
    REAL_FILE,    /* batches read from a file, so many milliseconds each */
    REAL_SHUFFLED, /* as above, and a shuffle whose buffer holds an epoch: it refills at each start */
    REAL_LENGTHS, /* sequences of ever new lengths */
    REAL_JPEGS, /* photos that are decoded in every epoch, made smaller, shuffled, flipped at random */
} real_source;

enum { REAL_SIDE = 16 }; /* of a photo, made smaller */

typedef struct real_plant {
    const char *name; /* NULL: this case has no real parts */
    real_source source;
    int64_t batch, in, hidden, rows;
    double map_ms, read_ms, callback_ms, host_ms; /* per batch */
    int64_t prefetch;
    double epoch_ms;                                        /* of a callback at the end of epochs */
    int64_t epoch_steps, validation_rows, validation_batch; /* 0: as there are; none; as batch */
    const char *optimizer, *loss, *metrics;                 /* NULL: SGD, mse, none */
    int32_t threads; /* for kernels; 0: as many as there are */
} real_plant;

typedef struct real {
    const real_plant *plant;
    stk_model *model;
    stk_trainer *trainer;
    stk_tensor *x, *y, *vx, *vy;
    stk_train_data data, validation;
    stk_callback callback;
    stk_callback *callbacks[1];
    int file;
    stk_job job;
} real;

/* ---- slow parts ------------------------------------------------------------------------------------------------ */

static stk_status real_map(void *context, const stk_map_info *info, stk_tensor *const *in,
                           stk_tensor **out, stk_error *err)
{
    (void)info, (void)err;
    planted_sleep(((const real *)context)->plant->map_ms);
    for (int i = 0; i < 2; i++) {
        if (!out[i])
            out[i] = stk_tensor_retain(in[i]);
        else
            memcpy(out[i]->data, in[i]->data, (size_t)stk_tensor_bytes(in[i]));
    }
    return STK_OK;
}

static void real_host_run(void *context, int32_t nin, const stk_tensor *const *in, int32_t nout,
                          stk_tensor *const *out)
{
    (void)nin, (void)nout;
    planted_sleep(((const real *)context)->plant->host_ms);
    memcpy(out[0]->data, in[0]->data, (size_t)stk_tensor_bytes(in[0]));
}
static void real_host_gradient(void *context, int32_t nin, const stk_tensor *const *in,
                               int32_t nout, stk_tensor *const *out)
{
    (void)context, (void)nin, (void)nout;
    memcpy(out[0]->data, in[1]->data, (size_t)stk_tensor_bytes(in[1]));
}
static void real_host_layer(stk_custom_call *c, void *context)
{
    stk_graph *g = stk_custom_graph(c);
    stk_val x = stk_custom_input(c, 0);
    stk_host host = {
        .name = "lookup", .run = real_host_run, .gradient = real_host_gradient, .context = context};
    stk_host_result same = {
        .dtype = STK_F32, .rank = 2, .shape = {stk_g_dim(g, x, 0), stk_g_dim(g, x, 1)}};
    stk_custom_output(c, 0, stk_g_host(g, &host, 1, &x, 1, &same));
}

static stk_status real_batch_end(stk_callback *self, stk_trainer *t, const stk_progress *p,
                                 stk_error *err)
{
    (void)t, (void)p, (void)err;
    planted_sleep(((const real *)self->context)->plant->callback_ms);
    return STK_OK;
}

static stk_status real_epoch_end(stk_callback *self, stk_trainer *t, const stk_progress *p,
                                 stk_error *err)
{
    (void)t, (void)p, (void)err;
    planted_sleep(((const real *)self->context)->plant->epoch_ms);
    return STK_OK;
}

/* A reader: the place in the file is the walk. */
static stk_status real_read_open(void *context, void **walk, stk_error *err)
{
    (void)context;
    *walk = stk_calloc(1, sizeof(int64_t));
    return *walk ? STK_OK : stk_fail_memory(err, "a walk", sizeof(int64_t));
}
static void real_read_close(void *context, void *walk)
{
    (void)context;
    stk_free(walk);
}
static stk_status real_read_next(void *context, void *walk, stk_tensor **parts, bool *end,
                                 stk_error *err)
{
    const real *self = context;
    const real_plant *p = self->plant;
    int64_t *at = walk;
    *end = *at + p->batch > p->rows;
    if (*end) return STK_OK;
    STK_TRY(stk_tensor_new(STK_F32, 2, (int64_t[]){p->batch, p->in}, &parts[0], err));
    STK_TRY(stk_tensor_new(STK_F32, 2, (int64_t[]){p->batch, PLANTED_CLASSES}, &parts[1], err));
    size_t bytes = (size_t)stk_tensor_bytes(parts[0]);
    planted_sleep(p->read_ms);
    if (pread(self->file, parts[0]->data, bytes, *at * p->in * 4) != (ssize_t)bytes)
        return stk_fail(err, STK_ERR_STATE, "train.bin is too short");
    memset(parts[1]->data, 0, (size_t)stk_tensor_bytes(parts[1]));
    *at += p->batch;
    return STK_OK;
}

/* Sequences: every batch is longer or shorter than all before it, for a long while. */
static stk_status real_length_next(void *context, void *walk, stk_tensor **parts, bool *end,
                                   stk_error *err)
{
    enum { LENGTHS = 509, ROWS = 31 };
    const real_plant *p = ((const real *)context)->plant;
    int64_t *at = walk, length = 16 + *at * 211 % LENGTHS, rows = p->batch + *at % ROWS;
    *end = false;
    STK_TRY(stk_tensor_new(STK_F32, 3, (int64_t[]){rows, length, p->in}, &parts[0], err));
    STK_TRY(stk_tensor_new(STK_F32, 2, (int64_t[]){rows, PLANTED_CLASSES}, &parts[1], err));
    memset(parts[0]->data, 0, (size_t)stk_tensor_bytes(parts[0]));
    memset(parts[1]->data, 0, (size_t)stk_tensor_bytes(parts[1]));
    ++*at;
    return STK_OK;
}

/* ---- the parts of a training ------------------------------------------------------------------------------------- */

static inline stk_status real_model(real *self, stk_error *err)
{
    const real_plant *p = self->plant;
    char layer[96];
    STK_TRY(stk_model_new(p->name, &self->model, err));
    snprintf(layer, sizeof layer, "Input(shape=(%lld,))", (long long)p->in);
    bool photos = p->source == REAL_JPEGS;
    if (photos) snprintf(layer, sizeof layer, "Input(shape=(%d, %d, 3))", REAL_SIDE, REAL_SIDE);
    if (p->source == REAL_LENGTHS)
        snprintf(layer, sizeof layer, "Input(shape=(None, %lld))", (long long)p->in);
    stk_model_add(self->model, layer);
    if (photos) stk_model_add(self->model, "Flatten()");
    if (p->source == REAL_LENGTHS) stk_model_add(self->model, "GlobalAveragePooling1D()");
    if (p->host_ms > 0)
        stk_model_add_custom(
            self->model,
            &(stk_custom){.class_name = "Lookup", .build = real_host_layer, .context = self});
    snprintf(layer, sizeof layer, "Dense(%lld, activation=relu)", (long long)p->hidden);
    stk_model_add(self->model, layer);
    stk_model_add(self->model, layer);
    snprintf(layer, sizeof layer, "Dense(%d)", PLANTED_CLASSES);
    stk_model_add(self->model, layer);
    STK_TRY(stk_model_build(self->model, 0, NULL, err));
    stk_trainer_options how = stk_trainer_defaults();
    how.optimizer = p->optimizer ? p->optimizer : "sgd:lr=1e-3";
    how.loss = p->loss ? p->loss : "mse";
    how.metrics = p->metrics;
    how.threads = p->threads;
    return stk_trainer_new(self->model, &how, &self->trainer, err);
}

static inline stk_status real_arrays(real *self, stk_error *err)
{
    const real_plant *p = self->plant;
    STK_TRY(stk_tensor_new(STK_F32, 2, (int64_t[]){p->rows, p->in}, &self->x, err));
    STK_TRY(stk_tensor_new(STK_F32, 2, (int64_t[]){p->rows, PLANTED_CLASSES}, &self->y, err));
    for (int64_t i = 0; i < p->rows * p->in; i++)
        ((float *)self->x->data)[i] = (float)(i * 37 % 101) / 101;
    memset(self->y->data, 0, (size_t)stk_tensor_bytes(self->y));
    return STK_OK;
}

static inline stk_status real_file(real *self, stk_error *err)
{
    const char *path = temporary("train.bin");
    self->file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (self->file < 0) return stk_fail(err, STK_ERR_STATE, "no temporary file");
    unlink(path);
    size_t bytes = (size_t)stk_tensor_bytes(self->x);
    if (write(self->file, self->x->data, bytes) != (ssize_t)bytes)
        return stk_fail(err, STK_ERR_STATE, "no room for a temporary file");
    return STK_OK;
}

static inline stk_dataset *real_reader(real *self, stk_error *err)
{
    const real_plant *p = self->plant;
    stk_field fields[2] = {{.dtype = STK_F32, .rank = 2, .shape = {p->batch, p->in}},
                           {.dtype = STK_F32, .rank = 2, .shape = {p->batch, PLANTED_CLASSES}}};
    stk_schema schema = {.n = 2, .fields = fields, .structure = "(0,1)"};
    stk_generator g = {.name = "file train.bin",
                       .context = self,
                       .output = &schema,
                       .open = real_read_open,
                       .next = real_read_next,
                       .close = real_read_close,
                       .cardinality = p->rows / p->batch};
    return stk_data_generator(&g, err);
}

static inline stk_dataset *real_lengths(real *self, stk_error *err)
{
    const real_plant *p = self->plant;
    stk_field fields[2] = {{.dtype = STK_F32, .rank = 3, .shape = {-1, -1, p->in}},
                           {.dtype = STK_F32, .rank = 2, .shape = {-1, PLANTED_CLASSES}}};
    stk_schema schema = {.n = 2, .fields = fields, .structure = "(0,1)"};
    stk_generator g = {.name = "sequences",
                       .context = self,
                       .output = &schema,
                       .open = real_read_open,
                       .next = real_length_next,
                       .close = real_read_close,
                       .cardinality = STK_INFINITE};
    return stk_data_generator(&g, err);
}

/* The same photo as often as there are rows; what comes out does not matter here. */
static inline stk_status real_photos(const real_plant *p, stk_tensor **out, stk_error *err)
{
    enum { MOST = 1 << 20 };
    char *bytes = NULL;
    size_t size = 0;
    stk_string *all = stk_calloc((size_t)p->rows, sizeof *all);
    if (!all) return stk_fail_memory(err, "photos", (size_t)p->rows * sizeof *all);
    stk_status status =
        stk_file_read(STK_TEST_DIR "/data/golden/photo.jpg", MOST, &bytes, &size, err);
    for (int64_t i = 0; i < p->rows; i++) all[i] = (stk_string){bytes, (int64_t)size};
    if (status == STK_OK) status = stk_tensor_strings(1, &p->rows, all, out, err);
    stk_free(all);
    stk_free(bytes);
    return status;
}

static inline stk_dataset *real_steps(stk_dataset *ds, int32_t n, const stk_pixel_step *steps,
                                      stk_error *err)
{
    stk_pixels *pixels = NULL;
    stk_map_fn fn = {0};
    bool good = stk_pixels_new(n, steps, &pixels, err) == STK_OK &&
                stk_map_pixels(pixels, 0, &fn, err) == STK_OK;
    stk_pixels_release(pixels);
    if (good) return stk_data_map(ds, &fn, NULL, err);
    stk_dataset_release(ds);
    return NULL;
}

static inline stk_dataset *real_decoded(real *self, stk_error *err)
{
    static const stk_pixel_step smaller[] = {{.op = STK_PIXEL_RESIZE,
                                              .height = REAL_SIDE,
                                              .width = REAL_SIDE,
                                              .method = 1,
                                              .antialias = true},
                                             {.op = STK_PIXEL_RESCALE, .scale = {1.0f / 255}}};
    static const stk_pixel_step flip = {.op = STK_PIXEL_RANDOM_FLIP_LEFT_RIGHT};
    const real_plant *p = self->plant;
    stk_tensor *parts[] = {NULL, self->y};
    stk_picture_options colours = stk_picture_options_defaults();
    stk_map_fn decode = {0};
    colours.channels = 3;
    if (real_photos(p, &parts[0], err) != STK_OK) return NULL;
    stk_dataset *ds = stk_data_slices(2, parts, NULL, "(0,1)", err);
    stk_tensor_release(parts[0]);
    if (stk_map_decode_image(0, &colours, &decode, err) == STK_OK)
        ds = stk_data_map(ds, &decode, NULL, err);
    ds = real_steps(ds, 2, smaller, err);
    ds = stk_data_shuffle(ds, STK_SHUFFLE_ALL, 7, true, err);
    ds = real_steps(ds, 1, &flip, err);
    return stk_data_batch(ds, p->batch, true, err);
}

static inline stk_status real_pipeline(real *self, stk_error *err)
{
    const real_plant *p = self->plant;
    stk_dataset *ds = NULL;
    stk_tensor *parts[] = {self->x, self->y};
    if (p->source == REAL_BATCHES) {
        ds = stk_data_slices(2, parts, NULL, "(0,1)", err);
        ds = stk_data_batch(ds, p->batch, true, err);
    } else if (p->source == REAL_JPEGS) {
        ds = real_decoded(self, err);
    } else if (p->source == REAL_LENGTHS) {
        ds = real_lengths(self, err);
    } else {
        STK_TRY(real_file(self, err));
        ds = real_reader(self, err);
    }
    if (p->source == REAL_SHUFFLED) ds = stk_data_shuffle(ds, p->rows / p->batch, 7, true, err);
    if (p->map_ms > 0) {
        stk_map_options serial = stk_map_options_defaults();
        stk_map_fn fn = {.name = "augment", .context = self, .call = real_map};
        serial.parallel = 1;
        ds = stk_data_map(ds, &fn, &serial, err);
    }
    if (p->prefetch > 0) ds = stk_data_prefetch(ds, p->prefetch, err);
    self->data = (stk_train_data){.dataset = ds};
    return ds ? STK_OK : STK_ERR_STATE;
}

static inline void real_release(real *self)
{
    stk_train_job_release(&self->job);
    stk_dataset_release(self->data.dataset);
    stk_trainer_release(self->trainer);
    stk_model_release(self->model);
    stk_tensor_release(self->x);
    stk_tensor_release(self->y);
    stk_tensor_release(self->vx);
    stk_tensor_release(self->vy);
    if (self->file >= 0) close(self->file);
}

static inline stk_status real_job(const real_plant *p, real *self, stk_error *err)
{
    *self = (real){.plant = p, .file = -1};
    stk_fit_options fit = stk_fit_defaults();
    fit.batch = p->batch;
    fit.epochs = 1000;
    STK_TRY(real_model(self, err));
    STK_TRY(real_arrays(self, err));
    if (p->source == REAL_ARRAYS)
        self->data = (stk_train_data){.nx = 1, .x = &self->x, .ny = 1, .y = &self->y};
    else
        STK_TRY(real_pipeline(self, err));
    self->callback =
        (stk_callback){.name = "slow logger", .context = self, .batch_end = real_batch_end};
    self->callbacks[0] = &self->callback;
    if (p->epoch_ms > 0) self->callback.epoch_end = real_epoch_end;
    if (p->callback_ms <= 0) self->callback.batch_end = NULL;
    fit.steps_per_epoch = p->epoch_steps;
    if (p->validation_rows > 0) {
        STK_TRY(stk_tensor_new(STK_F32, 2, (int64_t[]){p->validation_rows, p->in}, &self->vx, err));
        STK_TRY(stk_tensor_new(STK_F32, 2, (int64_t[]){p->validation_rows, PLANTED_CLASSES},
                               &self->vy, err));
        memset(self->vx->data, 0, (size_t)stk_tensor_bytes(self->vx));
        memset(self->vy->data, 0, (size_t)stk_tensor_bytes(self->vy));
        self->validation = (stk_train_data){.nx = 1, .x = &self->vx, .ny = 1, .y = &self->vy};
        fit.validation = &self->validation;
        fit.validation_batch = p->validation_batch;
    }
    if (p->callback_ms > 0 || p->epoch_ms > 0) {
        fit.callbacks = self->callbacks;
        fit.ncallbacks = 1;
    }
    return stk_train_job_new(self->trainer, &self->data, &fit, &self->job, err);
}

#endif
