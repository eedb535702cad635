/* settings.c - what a doctor recommended, kept in a small JSON file for later runs: {"prefetch": 2, "workers": 4}, and how a
 * training follows it. */
#include "base/file.h"
#include "base/json.h"
#include "data/stream/cache_placement.h"
#include "watch/report.h"

#include <stdio.h>

stk_status stk_job_settings_save(const stk_job_settings *s, const char *path, stk_error *err)
{
    stk_json_writer w = {.indent = 2};
    char *text = NULL;
    size_t size = 0;
    stk_file_writer file = {0};
    if (!s || !path)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_job_settings_save: settings and path must be given");
    stk_json_begin_object(&w);
    for (int k = 0; k < STK_KNOB_COUNT; k++) {
        if (s->value[k] == STK_AS_IS || stk_knob_class_of((stk_knob)k) == STK_KNOB_IS_CEILING)
            continue;
        stk_json_name(&w, stk_knob_name((stk_knob)k));
        stk_json_put_int(&w, s->value[k]);
    }
    stk_json_end_object(&w);
    STK_TRY(stk_json_finish(&w, &text, &size, err));
    stk_status status = stk_file_create(path, &file, err);
    if (status == STK_OK) status = stk_file_write(&file, text, size, err);
    if (status == STK_OK) status = stk_file_write(&file, "\n", 1, err);
    if (status == STK_OK)
        status = stk_file_commit(&file, err);
    else
        stk_file_abandon(&file);
    stk_free(text);
    return status;
}

/* A file may say anything. */
static stk_status check_range(const char *path, stk_knob knob, int64_t value, stk_error *err)
{
    int64_t least, most;
    stk_knob_range(knob, &least, &most);
    if (value >= least && value <= most) return STK_OK;
    return stk_fail(err, STK_ERR_FORMAT, "%s: \"%s\" is %lld, it takes %lld..%lld", path,
                    stk_knob_name(knob), (long long)value, (long long)least, (long long)most);
}

static stk_status take_members(const stk_json *root, const char *path, stk_job_settings *out,
                               stk_error *err)
{
    if (!root || root->kind != STK_JSON_OBJECT)
        return stk_fail(err, STK_ERR_FORMAT,
                        "%s: not an object of settings; stoker doctor --write FILE makes one",
                        path);
    for (int64_t i = 0; i < root->count; i++) {
        const stk_json *v = &root->items[i];
        stk_knob knob;
        if (!stk_knob_parse(v->name, &knob) || stk_knob_class_of(knob) == STK_KNOB_IS_CEILING)
            return stk_fail(err, STK_ERR_FORMAT,
                            "%s: no setting \"%s\"; stoker doctor --write FILE makes such files",
                            path, v->name);
        if (v->kind != STK_JSON_INT)
            return stk_fail(err, STK_ERR_FORMAT, "%s: \"%s\" must be a whole number, not a %s",
                            path, v->name, stk_json_kind_name(v->kind));
        STK_TRY(check_range(path, knob, v->integer, err));
        out->value[knob] = v->integer;
    }
    return STK_OK;
}

stk_status stk_job_settings_load(const char *path, stk_job_settings *out, stk_error *err)
{
    enum { MOST = 1 << 20 };
    char *data = NULL;
    size_t size = 0;
    stk_json_document *document = NULL;
    if (!path || !out)
        return stk_fail(err, STK_ERR_ARGUMENT, "stk_job_settings_load: path and out must be given");
    STK_TRY(stk_file_read(path, MOST, &data, &size, err));
    stk_status status = stk_json_parse(data, size, NULL, &document, err);
    if (status != STK_OK) stk_fail_in(err, status, "%s", path);
    if (status == STK_OK) status = take_members(stk_json_root(document), path, out, err);
    stk_json_release(document);
    stk_free(data);
    return status;
}

/* ---- following them ---------------------------------------------------------------------------------------------- */

stk_dataset *stk_settings_cache(int64_t mib, stk_dataset *ds, stk_error *err)
{
    return stk_data_place_cache(ds, stk_min_i64(mib, INT64_MAX >> 20) << 20, err);
}

stk_dataset *stk_settings_pipeline(const stk_job_settings *s, stk_dataset *ds, stk_error *err)
{
    if (s->value[STK_KNOB_CACHE] > 0) ds = stk_settings_cache(s->value[STK_KNOB_CACHE], ds, err);
    if (s->value[STK_KNOB_WORKERS] != STK_AS_IS)
        ds = stk_data_workers(ds, (int32_t)s->value[STK_KNOB_WORKERS], err);
    if (ds && s->value[STK_KNOB_FUSED] == 1) {
        stk_stream_options o = stk_dataset_options(ds);
        o.rewrite = true;
        ds = stk_data_options(ds, &o, err);
    }
    return ds;
}

stk_status stk_job_settings_data(const stk_job_settings *s, stk_train_data *data,
                                 stk_dataset **owner, stk_error *err)
{
    if (!s || !data || !owner)
        return stk_fail(err, STK_ERR_ARGUMENT,
                        "stk_job_settings_data: settings, data and owner must be given");
    *owner = NULL;
    if (!data->dataset) return STK_OK;
    stk_dataset *ds = stk_settings_pipeline(s, stk_dataset_retain(data->dataset), err);
    if (s->value[STK_KNOB_PREFETCH] != STK_AS_IS)
        ds = stk_data_prefetch(ds, s->value[STK_KNOB_PREFETCH], err);
    if (!ds) return err ? err->code : STK_ERR_MEMORY;
    *owner = data->dataset = ds;
    return STK_OK;
}

void stk_job_settings_options(const stk_job_settings *s, stk_trainer_options *how,
                              stk_fit_options *fit)
{
    const int64_t *v = s->value;
    if (how && v[STK_KNOB_THREADS] != STK_AS_IS) how->threads = (int32_t)v[STK_KNOB_THREADS];
    if (how && v[STK_KNOB_PRECISION] != STK_AS_IS)
        how->precision = v[STK_KNOB_PRECISION] <= 16 ? "mixed_bfloat16" : "float32";
    if (fit && v[STK_KNOB_CALLBACK_EVERY] != STK_AS_IS)
        fit->callbacks_every = v[STK_KNOB_CALLBACK_EVERY];
    if (fit && v[STK_KNOB_BATCH] != STK_AS_IS) fit->batch = v[STK_KNOB_BATCH];
    if (fit && v[STK_KNOB_VALIDATION_BATCH] != STK_AS_IS)
        fit->validation_batch = v[STK_KNOB_VALIDATION_BATCH];
    if (fit && v[STK_KNOB_VALIDATE_EVERY] != STK_AS_IS)
        fit->validation_every = v[STK_KNOB_VALIDATE_EVERY];
}

char *stk_job_settings_text(const stk_job_settings *s, char *text, size_t size)
{
    size_t used = 0;
    char line[96];
    if (!size) return text;
    text[0] = '\0';
    for (int k = 0; k < STK_KNOB_COUNT; k++) {
        if (s->value[k] == STK_AS_IS || used >= size) continue;
        int n = snprintf(text + used, size - used, "%s%s", used ? ", " : "",
                         stk_advice_text((stk_knob)k, s->value[k], line, sizeof line));
        used += n > 0 ? (size_t)n : 0;
    }
    return text;
}
