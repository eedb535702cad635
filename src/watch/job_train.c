/* job_train.c - a trainer as a job for the doctor. Each variant keeps its own stream over the data open between turns, so that
 * prefetched batches and worker threads are in the state they have in the middle of a long fit. */
#include "watch/job_train.h"

#include "base/cpus.h"
#include "graph/run/store.h"
#include "train/placement.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { STAGES = 32 };
typedef struct depth_log { /* of one stage's queue */
    float kept[STK_WATCH_DEPTHS];
    double sum, least, most;
} depth_log;

typedef struct train_variant {
    stk_train_job *job;
    stk_fit_options fit;
    stk_train_data data;    /* what fit is given */
    stk_dataset *dataset;   /* own one, else NULL */
    stk_dataset *rebatched; /* the source in batches of another size, else NULL */
    stk_recorded_run recorded;
    stk_stream *stream; /* behind it */
    bool free_model, cached, buckets;
    stk_trainer *trainer;
    int32_t threads;                       /* programs of its own when not those of the trainer */
    stk_function *functions[STK_MODES][2]; /* those; NULL: the trainer's */
    bool own_programs;
    /* queues over time: every `stride`-th batch is looked at */
    depth_log depths[STAGES];
    int32_t ndepths;
    int64_t taken, stride, looks;
} train_variant;

/* ---- one batch, again and again ------------------------------------------------------------------------------- */

static stk_status first_rows(stk_tensor *from, int64_t rows, stk_tensor **out, stk_error *err)
{
    int64_t start[STK_MAX_RANK] = {0}, size[STK_MAX_RANK] = {0};
    for (int32_t i = 0; i < from->rank; i++) size[i] = from->shape[i];
    if (rows < size[0]) size[0] = rows;
    return stk_tensor_slice(from, start, size, out, err);
}

static stk_status one_batch(const train_variant *l, stk_tensor **parts, int32_t *n, stk_error *err)
{
    const stk_train_data *d = l->job->data;
    *n = 0;
    if (d->dataset) {
        bool end = false;
        stk_stream *s = NULL;
        STK_TRY(stk_dataset_stream(d->dataset, NULL, &s, err));
        stk_status status = stk_stream_next(s, parts, &end, err);
        if (status == STK_OK && !end) *n = stk_stream_schema(s)->n;
        stk_stream_release(s);
        return status;
    }
    for (int32_t i = 0; i < d->nx + d->ny + (d->weights ? 1 : 0); i++) {
        stk_tensor *from = i < d->nx ? d->x[i] : i < d->nx + d->ny ? d->y[i - d->nx] : d->weights;
        STK_TRY(first_rows(from, l->fit.batch, &parts[i], err));
        ++*n;
    }
    return STK_OK;
}

static stk_status make_free_input(train_variant *l, stk_error *err)
{
    enum { MOST = 64 };
    stk_tensor *parts[MOST] = {0};
    int32_t n = 0;
    stk_status status = one_batch(l, parts, &n, err);
    if (status == STK_OK && n == 0)
        status = stk_fail(err, STK_ERR_STATE, "the dataset has no batch to measure with");
    if (status == STK_OK) {
        l->dataset =
            stk_data_repeat(stk_data_tensors(n, parts, NULL, NULL, err), STK_INFINITE, err);
        if (!l->dataset) status = STK_ERR_MEMORY;
    }
    for (int32_t i = 0; i < MOST; i++) stk_tensor_release(parts[i]);
    l->data = (stk_train_data){.dataset = l->dataset};
    return status;
}

/* ---- a stream that lives longer than a fit -------------------------------------------------------------------------- */

/* When the log is full, every other entry makes room. */
static void log_depths(train_variant *l)
{
    int64_t now[STAGES];
    int32_t n = stk_stream_depths(l->stream, now, STAGES);
    if (l->ndepths == STK_WATCH_DEPTHS) {
        l->ndepths /= 2;
        l->stride *= 2;
        for (int32_t i = 0; i < STAGES; i++)
            for (int32_t k = 0; k < l->ndepths; k++)
                l->depths[i].kept[k] = l->depths[i].kept[2 * k];
    }
    for (int32_t i = 0; i < n && i < STAGES; i++) {
        depth_log *d = &l->depths[i];
        double depth = (double)now[i];
        d->kept[l->ndepths] = (float)depth;
        d->sum += depth;
        if (l->looks == 0 || depth < d->least) d->least = depth;
        if (depth > d->most) d->most = depth;
    }
    l->ndepths++;
    l->looks++;
}

static stk_status variant_walk(void *context, void **walk, stk_error *err)
{
    (void)err;
    *walk = context;
    return STK_OK;
}
static stk_status variant_next(void *context, void *walk, stk_tensor **parts, bool *end,
                               stk_error *err)
{
    train_variant *l = context;
    (void)walk;
    if (l->taken++ % l->stride == 0) log_depths(l);
    STK_TRY(stk_stream_next(l->stream, parts, end, err));
    return l->buckets && !*end ? stk_pad_to_buckets(stk_stream_schema(l->stream), parts, err)
                               : STK_OK;
}
static void variant_leave(void *context, void *walk) { (void)context, (void)walk; }

/* The settled state of a cache is a full one, and only that is worth measuring. It is filled once, for all variants. */
static stk_status fill_cache(stk_train_job *job, int64_t mib, stk_error *err)
{
    static const double MOST_SECONDS = 0.6;
    if (job->kept && job->kept_mib == mib) return STK_OK;
    stk_dataset_release(job->kept);
    job->kept = stk_settings_cache(mib, stk_dataset_retain(job->data->dataset), err);
    job->kept_mib = mib;
    if (!job->kept) return STK_ERR_MEMORY;
    return stk_dataset_fill_placed_cache(job->kept, MOST_SECONDS, &job->kept_part, err);
}

static stk_status keep_stream(train_variant *l, const stk_job_settings *settings, stk_error *err)
{
    stk_job_settings others = *settings, *s = &others;
    int64_t prefetch = s->value[STK_KNOB_PREFETCH];
    l->cached = s->value[STK_KNOB_CACHE] > 0;
    if (l->cached) STK_TRY(fill_cache(l->job, s->value[STK_KNOB_CACHE], err));
    s->value[STK_KNOB_CACHE] = STK_AS_IS;
    stk_dataset *from = l->cached ? l->job->kept : l->job->data->dataset;
    if (l->rebatched) from = l->rebatched;
    stk_dataset *source = stk_settings_pipeline(s, stk_dataset_retain(from), err);
    source = stk_data_repeat(source, STK_INFINITE, err);
    if (prefetch > 0) source = stk_data_prefetch(source, prefetch, err);
    if (!source) return STK_ERR_MEMORY;
    stk_status status = stk_dataset_stream(source, NULL, &l->stream, err);
    stk_generator g = {.name = "variant",
                       .context = l,
                       .output = stk_dataset_schema(source),
                       .open = variant_walk,
                       .next = variant_next,
                       .close = variant_leave,
                       .cardinality = STK_INFINITE};
    if (status == STK_OK) {
        l->dataset = stk_data_generator(&g, err);
        if (!l->dataset) status = STK_ERR_MEMORY;
    }
    stk_dataset_release(source);
    l->data = (stk_train_data){.dataset = l->dataset};
    return status;
}

/* ---- variants ------------------------------------------------------------------------------------------------------------- */

static void variant_close(void *context, void *variant)
{
    train_variant *l = variant;
    (void)context;
    for (int i = 0; i < STK_MODES; i++)
        for (int k = 0; k < 2; k++) stk_function_release(l->functions[i][k]);
    stk_over_clear(&l->recorded.over);
    stk_stream_release(l->stream);
    stk_dataset_release(l->dataset);
    stk_dataset_release(l->rebatched);
    stk_free(l);
}

static stk_status variant_open(void *context, const stk_job_settings *s, void **variant,
                               stk_error *err)
{
    stk_train_job *job = context;
    train_variant *l = stk_calloc(1, sizeof *l);
    if (!l) return stk_fail_memory(err, "a variant", sizeof *l);
    l->job = job;
    l->fit = job->fit;
    l->data = *job->data;
    l->free_model = s->value[STK_KNOB_FREE_MODEL] == 1;
    l->buckets = s->value[STK_KNOB_BUCKETS] == 1;
    l->stride = 1;
    bool narrow = s->value[STK_KNOB_PRECISION] != STK_AS_IS && job->narrow;
    l->trainer = narrow ? job->narrow : job->trainer;
    l->own_programs = s->value[STK_KNOB_THREADS] != STK_AS_IS;
    if (l->own_programs) l->threads = (int32_t)s->value[STK_KNOB_THREADS];
    stk_job_settings_options(s, NULL, &l->fit);
    if (s->value[STK_KNOB_FREE_CALLBACKS] == 1) l->fit.ncallbacks = 0;
    const stk_recorded_step *recorded = job->recorded.program ? &job->recorded : NULL;
    stk_status status = STK_OK;
    if (recorded && s->value[STK_KNOB_BATCH] != STK_AS_IS) {
        l->rebatched = recorded->rebatch(recorded->context, s->value[STK_KNOB_BATCH], err);
        if (!l->rebatched) status = STK_ERR_STATE;
    }
    l->recorded.threads = l->threads;
    if (status != STK_OK) {
        variant_close(context, l);
        return status;
    }
    if (s->value[STK_KNOB_FREE_INPUT] == 1)
        status = make_free_input(l, err);
    else if (job->data->dataset)
        status = keep_stream(l, s, err);
    if (status == STK_OK && recorded && !l->stream)
        status = stk_dataset_stream(l->dataset, NULL, &l->stream, err);
    if (status == STK_OK)
        *variant = l;
    else
        variant_close(context, l);
    return status;
}

static stk_status take_batches(train_variant *l, int64_t n, stk_error *err)
{
    enum { MOST = 64 };
    stk_tensor *parts[MOST];
    for (int64_t i = 0; i < n; i++) {
        bool end = false;
        STK_TRY(stk_stream_next(l->stream, parts, &end, err));
        for (int32_t k = 0; !end && k < stk_stream_schema(l->stream)->n; k++)
            stk_tensor_release(parts[k]);
    }
    return STK_OK;
}

/* The variant's programs against the trainer's: they work on the same variables. */
static void swap_programs(train_variant *l)
{
    stk_trainer *t = l->trainer;
    int32_t threads = t->how.threads;
    t->how.threads = l->threads;
    l->threads = threads;
    t->last = NULL;
    for (int i = 0; i < STK_MODES; i++)
        for (int k = 0; k < 2; k++) {
            stk_function *f = t->functions[i][k];
            t->functions[i][k] = l->functions[i][k];
            l->functions[i][k] = f;
        }
}

static stk_status variant_run(void *context, void *variant, int64_t steps, stk_error *err)
{
    train_variant *l = variant;
    (void)context;
    if (l->free_model) return take_batches(l, steps, err);
    if (l->job->recorded.program)
        return stk_recorded_steps(&l->job->recorded, &l->recorded, l->stream, steps, err);
    if (l->job->evaluates)
        return stk_trainer_evaluate(l->trainer, &l->data, l->fit.batch, steps, NULL, err);
    l->fit.steps_per_epoch = steps;
    if (l->own_programs) swap_programs(l);
    stk_status status = stk_trainer_fit(l->trainer, &l->data, &l->fit, NULL, err);
    if (l->own_programs) swap_programs(l);
    return status;
}

static void variant_remark(void *context, void *variant, char *text, size_t size)
{
    const stk_train_job *job = context;
    const train_variant *l = variant;
    text[0] = '\0';
    if (l->cached && job->kept_part > 0)
        snprintf(text, size, "measured with %lld of %lld elements", (long long)job->kept_part,
                 (long long)job->keeps.elements);
}

/* ---- stages --------------------------------------------------------------------------------------------------------------- */

static bool names_one(const char *name, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strstr(name, list[i])) return true;
    return false;
}

static stk_watch_stage_kind kind_of(const stk_stage_stats *s)
{
    static const char *const storage[] = {"file", "record", "csv", "text", "folder"};
    static const char *const buffers[] = {"shuffle", "cache", "prefetch"};
    if (!strcmp(s->name, "image_folder")) return STK_STAGE_COMPUTE; /* decoding outlasts reading */
    /* What a generator does only its maker knows, and says by its name. */
    const char *name = strcmp(s->name, "generator") ? s->name : s->detail;
    if (names_one(name, buffers, sizeof buffers / sizeof *buffers)) return STK_STAGE_BUFFER;
    if (names_one(name, storage, sizeof storage / sizeof *storage)) return STK_STAGE_STORAGE;
    return STK_STAGE_COMPUTE;
}

static void add_depths(const train_variant *l, int32_t i, const stk_stage_stats *s,
                       stk_watch_stage *out)
{
    const depth_log *d = &l->depths[i];
    if (!l->looks || d->most <= 0) return;
    out->depth = d->sum / (double)l->looks;
    out->depth_least = d->least;
    out->depth_most = d->most;
    out->ndepths = l->ndepths;
    memcpy(out->depths, d->kept, sizeof out->depths);
    if (s->elements) out->bytes = (int64_t)(out->depth * (double)s->bytes / (double)s->elements);
}

/* The data tells from its end; a report follows the walk of a record. */
static int32_t variant_stages(void *context, void *variant, stk_watch_stage *out, int32_t most)
{
    const train_variant *l = variant;
    stk_stage_stats stats[STAGES];
    stk_stream_usage usage = {.seconds = 0};
    (void)context;
    int32_t n = l->stream ? stk_stream_stats(l->stream, stats, STAGES) : 0, made = 0;
    if (n > STAGES) n = STAGES;
    if (l->stream) stk_stream_usage_read(l->stream, &usage);
    for (int32_t i = n - 1; i >= 0 && made < most; i--) {
        const stk_stage_stats *s = &stats[i];
        stk_watch_stage *o = &out[made++];
        *o = (stk_watch_stage){.kind = kind_of(s),
                               .workers = s->workers > 0 ? s->workers : 1,
                               .elements = s->elements,
                               .busy_seconds = s->busy,
                               .wait_input_seconds = s->waiting_for_input,
                               .wait_room_seconds = s->waiting_for_room,
                               .depth = (double)s->queued,
                               .capacity = (double)s->capacity,
                               .seconds = usage.seconds};
        add_depths(l, i, s, o);
        if (s->held > 0) o->bytes = s->held;
        snprintf(o->name, sizeof o->name, "%s%s%s", s->name, s->detail[0] ? " " : "", s->detail);
    }
    return made;
}

/* ---- the job ---------------------------------------------------------------------------------------------------------------- */

/* Rows of a batch: of arrays at most all they have; as announced, else of the batch node nearest to the end (its last batch may be smaller). */
static int64_t batch_of(const stk_train_data *data, const stk_fit_options *fit)
{
    if (!data->dataset) return stk_min_i64(fit->batch, stk_max_i64(data->x[0]->shape[0], 1));
    const stk_schema *schema = stk_dataset_schema(data->dataset);
    if (schema->n > 0 && schema->fields[0].rank > 0 && schema->fields[0].shape[0] > 0)
        return schema->fields[0].shape[0];
    int64_t rows = stk_dataset_batch_size(data->dataset);
    return rows > 0 ? rows : 1;
}

static bool has_node(const stk_dataset *ds, const char *name)
{
    bool found = !strcmp(stk_dataset_name(ds), name);
    for (int32_t i = 0; i < stk_dataset_inputs(ds) && !found; i++)
        found = has_node(stk_dataset_input(ds, i), name);
    return found;
}

/* A cache is for data that leaves room for other buffers. */
static void offer_cache(stk_train_job *job, stk_dataset *ds, stk_job_knob *k)
{
    static const double MOST_SECONDS = 0.15, SHARE = 0.75;
    if (!stk_dataset_cache_need(ds, MOST_SECONDS, &job->keeps)) return;
    bool fits = (double)job->keeps.bytes <= SHARE * (double)job->keeps.budget;
    k[STK_KNOB_CACHE] = (stk_job_knob){fits, 0, stk_ceil_div(job->keeps.bytes, 1 << 20)};
}

static void offer_pipeline(stk_dataset *ds, stk_job_knob *k)
{
    stk_stream_options o = stk_dataset_options(ds);
    int32_t workers = stk_dataset_workers(ds);
    if (workers == 0 && o.threads == 1 && has_node(ds, "map")) workers = 1;
    bool ahead = !strcmp(stk_dataset_name(ds), "prefetch");
    k[STK_KNOB_PREFETCH] = (stk_job_knob){!ahead, 0, 64};
    /* Those that the tuner chooses are nothing to change, but they work ahead, and turns have to allow for it. */
    bool shares = has_node(ds, "map") || has_node(ds, "image_folder");
    int32_t tuned = !shares ? 0 : o.threads == 0 ? stk_cpu_count() : o.threads;
    k[STK_KNOB_WORKERS] = (stk_job_knob){workers > 0, workers > 0 ? workers : tuned, 64};
    k[STK_KNOB_FUSED] = (stk_job_knob){!o.rewrite, 0, 1};
}

static int32_t threads_of(const stk_train_job *job)
{
    stk_device_report device;
    if (!job->trainer) return stk_cpu_count();
    stk_device_describe(job->trainer->device, &device);
    int32_t limit = job->trainer->how.threads;
    return limit > 0 && limit < device.threads ? limit : device.threads;
}

static void offer_knobs(stk_job *out, stk_train_job *job)
{
    const stk_train_data *d = job->data;
    stk_job_knob *k = out->knob;
    int64_t rows = d->dataset ? 0 : d->x[0]->shape[0];
    k[STK_KNOB_FREE_INPUT] = (stk_job_knob){true, 0, 1};
    k[STK_KNOB_FREE_CALLBACKS] = (stk_job_knob){job->fit.ncallbacks > 0, 0, 1};
    k[STK_KNOB_FREE_MODEL] = (stk_job_knob){d->dataset != NULL, 0, 1};
    k[STK_KNOB_BATCH] = (stk_job_knob){!d->dataset, out->batch, rows};
    int32_t threads = threads_of(job);
    k[STK_KNOB_THREADS] = (stk_job_knob){threads > 1, threads, threads};
    if (job->recorded.program) {
        k[STK_KNOB_BATCH] =
            (stk_job_knob){job->recorded.rebatch != NULL, out->batch, job->recorded.rows};
        k[STK_KNOB_THREADS].offered &= job->recorded.threads;
    }
    k[STK_KNOB_PRECISION] = (stk_job_knob){job->narrow != NULL, 32, 32};
    k[STK_KNOB_BUCKETS] =
        (stk_job_knob){d->dataset && stk_shapes_vary(stk_dataset_schema(d->dataset)), 0, 1};
    bool told = false;
    for (int32_t i = 0; i < job->fit.ncallbacks; i++)
        told |= job->fit.callbacks[i]->batch_end != NULL;
    int64_t every = job->fit.callbacks_every > 1 ? job->fit.callbacks_every : 1;
    k[STK_KNOB_CALLBACK_EVERY] = (stk_job_knob){told, every, 1000};
    if (!d->dataset) return;
    offer_pipeline(d->dataset, k);
    offer_cache(job, d->dataset, k);
}

enum { MOST_COPIED = 256 << 20 }; /* bytes of weights that a second trainer may have */

/* Half the numbers' size, where the model has no opinion of its own and a second set of weights is affordable. When it
 * cannot be made, it is not offered. */
static void make_narrow(stk_train_job *job)
{
    stk_trainer *t = job->trainer;
    if (stk_store_bytes(t->store) > MOST_COPIED || !stk_trainer_is_float32(t)) return;
    stk_error ignored;
    if (stk_trainer_copy(t, "mixed_bfloat16", &job->narrow, &ignored) != STK_OK) job->narrow = NULL;
}

/* Of all batches that were fed so far; the last one says why. */
static int32_t programs(void *context, char *why, size_t size)
{
    stk_train_job *job = context;
    int32_t n = 0;
    snprintf(why, size, "%s", "");
    for (int weighted = 0; weighted < 2; weighted++) {
        const stk_function *f = job->trainer->functions[STK_STEP_TRAIN][weighted];
        int32_t count = stk_function_count(f);
        if (count > 1) snprintf(why, size, "%s", stk_function_reason(f, count - 1));
        n += count;
    }
    return n;
}

static stk_status devices(void *context, int64_t batch, bool tries, stk_placement *out,
                          stk_error *err)
{
    stk_train_job *job = context;
    stk_trainer *t = job->trainer;
    stk_trainer_options how = t->made;
    how.threads = t->how.threads;
    stk_place_rules rules = {.close = tries ? INFINITY : 0, .also = stk_device_name(t->device)};
    if (stk_store_bytes(t->store) > MOST_COPIED ||
        (!job->data->dataset && job->data->x[0]->shape[0] < batch))
        return stk_fail(err, STK_ERR_RANGE, "too large to be tried, or not so many examples");
    return stk_place_among(t->model, &how, job->data, batch, &rules, out, err);
}

static int64_t steps_of(const stk_train_data *data, int64_t asked, int64_t batch)
{
    if (asked > 0) return asked;
    return data->dataset ? stk_max_i64(stk_dataset_cardinality(data->dataset), 0)
                         : stk_ceil_div(data->x[0]->shape[0], batch);
}

void stk_train_job_fill(stk_train_job *job, stk_job *out)
{
    *out = (stk_job){.context = job,
                     .name = job->trainer ? stk_model_name(stk_trainer_model(job->trainer))
                                          : job->recorded.name,
                     .batch = batch_of(job->data, &job->fit),
                     .open = variant_open,
                     .run = variant_run,
                     .close = variant_close,
                     .stages = variant_stages,
                     .remark = variant_remark};
    offer_knobs(out, job);
}

/* The validation is a job over the same trainer; weights are put back by the one it belongs to. */
static stk_status add_validation(stk_train_job *job, stk_job *out, stk_error *err)
{
    bool any = false;
    STK_TRY(stk_train_job_held_back(job, &any, err));
    if (!any) return STK_OK;
    stk_train_job *v = stk_calloc(1, sizeof *v);
    if (!v) return stk_fail_memory(err, "a job", sizeof *v);
    *v = (stk_train_job){.trainer = job->trainer, .data = &job->held_back, .evaluates = true};
    v->fit = stk_fit_defaults();
    v->fit.batch = job->whole.validation_batch > 0 ? job->whole.validation_batch : job->whole.batch;
    stk_train_job_fill(v, &job->validation);
    out->validation = &job->validation;
    out->validation_steps = steps_of(&job->held_back, job->whole.validation_steps, v->fit.batch);
    out->validation_every = stk_max_i64(job->whole.validation_every, 1);
    out->knob[STK_KNOB_VALIDATION_BATCH] = job->validation.knob[STK_KNOB_BATCH];
    out->knob[STK_KNOB_VALIDATE_EVERY] = (stk_job_knob){true, out->validation_every, 1000};
    return STK_OK;
}

static stk_status make_job(stk_train_job *job, stk_job *out, stk_error *err)
{
    job->fit = job->whole;
    job->fit.epochs = 1;
    job->fit.initial_epoch = 0;
    job->fit.validation = NULL;
    job->fit.validation_split = 0;
    job->fit.checkpoint = NULL;
    job->fit.resume = false;
    STK_TRY(stk_train_job_callbacks(job, err));
    make_narrow(job);
    stk_train_job_fill(job, out);
    out->save = stk_train_job_save;
    out->restore = stk_train_job_restore;
    out->programs = programs;
    out->devices = devices;
    out->epoch_end = stk_train_job_epoch_end;
    out->epoch_steps = steps_of(job->data, job->whole.steps_per_epoch, job->whole.batch);
    if (!job->data->dataset &&
        job->whole.steps_per_epoch == 0) /* rows for validation are no steps */
        out->epoch_steps =
            (int64_t)ceil((double)out->epoch_steps * (1 - job->whole.validation_split));
    out->plan_steps = job->whole.epochs * out->epoch_steps;
    return add_validation(job, out, err);
}

stk_status stk_train_job_new(stk_trainer *t, const stk_train_data *data, const stk_fit_options *fit,
                             stk_job *out, stk_error *err)
{
    bool arrays =
        data && !data->dataset && data->nx > 0 && data->x && data->x[0] && data->x[0]->rank > 0;
    if (!t || !out || !(arrays || (data && data->dataset)))
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_train_job_new: trainer, data (arrays or a dataset) and out must be "
                        "given");
    stk_train_job *job = stk_calloc(1, sizeof *job);
    if (!job) return stk_fail_memory(err, "a job", sizeof *job);
    *job = (stk_train_job){.trainer = t, .data = data, .whole = fit ? *fit : stk_fit_defaults()};
    *out = (stk_job){.context = job};
    stk_status status = make_job(job, out, err);
    if (status != STK_OK) stk_train_job_release(out);
    return status;
}

void stk_train_job_release(stk_job *job)
{
    if (!job || !job->context) return;
    stk_train_job *own = job->context;
    stk_train_job_release(&own->validation);
    stk_train_job_forget(own);
    stk_train_job_epoch_release(own);
    stk_dataset_release(own->kept);
    stk_trainer_release(own->narrow);
    stk_free(job->context);
    *job = (stk_job){0};
}
