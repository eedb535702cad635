/* The rows about files: TFRecord pipelines, folders of JPEG, CSV tables, writing and checking records.
 *
 * Both sides make the files they need when they are not there, from the same formulas (bench/peers/records.py), in
 * $STOKER_BENCH_DATA, else /dev/shm/stoker-bench, where the disk does not count. */
#include "rows.h"

#include "stoker/sources.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    IMAGES = 1000,
    SIDE = 256,
    BATCH = 32,
    PHOTOS = 64,
    PHOTO_H = 768,
    PHOTO_W = 1024,
    TARGET = 224,
    CSV_ROWS = 1000000,
    CSV_COLUMNS = 20,
    SMALL_RECORDS = 1000,
    SMALL_BYTES = 10000
};

static char *data_path(const char *name)
{
    static char paths[2][512];
    static int next;
    const char *folder = getenv("STOKER_BENCH_DATA");
    if (!folder)
        folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm/stoker-bench" : "/tmp/stoker-bench";
    mkdir(folder, 0755);
    char *path = paths[next++ % 2];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static int failed(const char *what, const stk_error *err) { return bench_failed(what, err); }

/* ---- the files ------------------------------------------------------------------------------------- */

static int make_images(const char *path)
{
    stk_error err;
    stk_record_writer *w = NULL;
    size_t bytes = (size_t)SIDE * SIDE * 3;
    uint8_t *pixels = malloc(bytes);
    if (access(path, R_OK) == 0 || !pixels) {
        free(pixels);
        return 0;
    }
    if (stk_record_writer_new(path, STK_COMPRESSION_NONE, &w, &err)) return failed("images", &err);
    for (int64_t i = 0; i < IMAGES; i++) {
        stk_tensor *image = NULL, *label = NULL;
        char *record = NULL;
        size_t size = 0;
        int64_t one = 1, class = i % 10;
        for (size_t j = 0; j < bytes; j++)
            pixels[j] = (uint8_t)((size_t)i * 131 + j * 7 + (j >> 8));
        if (stk_tensor_strings(1, &one, &(stk_string){(char *)pixels, (int64_t)bytes}, &image,
                               &err) ||
            stk_tensor_from(STK_I64, 1, &one, &class, &label, &err) ||
            stk_example_encode(2, (stk_named_tensor[]){{"image", image}, {"label", label}}, &record,
                               &size, &err) ||
            stk_record_write(w, record, size, &err))
            return failed("images", &err);
        stk_bytes_free(record);
        stk_tensor_release(image);
        stk_tensor_release(label);
    }
    free(pixels);
    return stk_record_writer_commit(w, &err) ? failed("images", &err) : 0;
}

/* Waves in three colours: compresses about as a photo does. */
static int make_photos(const char *folder)
{
    stk_error err;
    char path[640];
    mkdir(folder, 0755);
    for (int k = 0; k < 2; k++) {
        snprintf(path, sizeof path, "%s/class%d", folder, k);
        mkdir(path, 0755);
    }
    for (int i = 0; i < PHOTOS; i++) {
        stk_tensor *t = NULL;
        char *bytes = NULL;
        size_t size = 0;
        snprintf(path, sizeof path, "%s/class%d/%03d.jpg", folder, i % 2, i);
        if (access(path, R_OK) == 0) continue;
        if (stk_tensor_new(STK_U8, 3, (int64_t[]){PHOTO_H, PHOTO_W, 3}, &t, &err))
            return failed("photos", &err);
        uint8_t *p = t->data;
        uint32_t noise = (uint32_t)i + 1;
        for (int y = 0; y < PHOTO_H; y++)
            for (int x = 0; x < PHOTO_W; x++, p += 3) {
                noise = noise * 1664525u + 1013904223u;
                double rough = (double)(noise >> 27);
                p[0] = (uint8_t)(120 + 90 * sin((x + i) / 17.0) * cos(y / 23.0) + rough);
                p[1] = (uint8_t)(x * 200 / PHOTO_W + rough);
                p[2] = (uint8_t)(120 + 90 * cos((x * y) / 9000.0) + rough);
            }
        FILE *f = stk_jpeg_encode(t, 90, false, &bytes, &size, &err) ? NULL : fopen(path, "wb");
        bool good = f && fwrite(bytes, 1, size, f) == size;
        if (f && fclose(f)) good = false;
        stk_bytes_free(bytes);
        stk_tensor_release(t);
        if (!good) return fprintf(stderr, "%s cannot be made\n", path), 1;
    }
    return 0;
}

static int make_table(const char *path)
{
    char part[640];
    if (access(path, R_OK) == 0) return 0;
    snprintf(part, sizeof part, "%s.part", path);
    FILE *f = fopen(part, "w");
    if (!f) return perror(part), 1;
    for (int c = 0; c < CSV_COLUMNS; c++) fprintf(f, "%sc%d", c ? "," : "", c);
    fprintf(f, "\n");
    uint32_t s = 1;
    for (int64_t r = 0; r < CSV_ROWS; r++)
        for (int c = 0; c < CSV_COLUMNS; c++) {
            s = s * 1664525u + 1013904223u;
            fprintf(f, "%.6f%c", (double)(int32_t)s * 1e-8, c + 1 < CSV_COLUMNS ? ',' : '\n');
        }
    return fclose(f) || rename(part, path);
}

/* ---- pipelines ------------------------------------------------------------------------------------- */

typedef struct feed {
    stk_dataset *ds;
    stk_stream *stream;
    stk_stream_options options;
    double sum;
} feed;

static int start(feed *f)
{
    stk_error err;
    stk_stream_release(f->stream);
    f->stream = NULL;
    return stk_dataset_stream(f->ds, &f->options, &f->stream, &err) ? failed("stream", &err) : 0;
}

/* n batches are taken and let go of, over and over the data. */
static int feed_run(void *state, int64_t n)
{
    feed *f = state;
    for (int64_t done = 0; done < n;) {
        stk_error err;
        stk_tensor *parts[2] = {NULL, NULL};
        bool end = false;
        if (stk_stream_next(f->stream, parts, &end, &err)) return failed("next", &err);
        if (end) {
            f->options.epoch++;
            if (start(f)) return 1;
            continue;
        }
        f->sum += (double)((const float *)parts[0]->data)[0];
        done++;
        stk_tensor_release(parts[0]);
        stk_tensor_release(parts[1]);
    }
    return 0;
}

static void feed_teardown(void *state)
{
    feed *f = state;
    if (!f) return;
    stk_stream_release(f->stream);
    stk_dataset_release(f->ds);
    free(f);
}

static int feed_setup(const bench_options *o, stk_dataset *ds, const stk_error *err, void **state)
{
    feed *f = calloc(1, sizeof *f);
    *state = f;
    if (!f || !ds) return failed("pipeline", err);
    f->ds = ds;
    f->options = stk_stream_options_defaults();
    f->options.threads = o->threads == 1 ? 1 : 0;
    f->options.cpu_budget = o->threads;
    return start(f);
}

int bench_records_setup(const bench_options *o, void **state)
{
    stk_error err;
    const char *path = data_path("images.tfrecord");
    char text[2048];
    if (make_images(path)) return 1;
    snprintf(
        text, sizeof text,
        "{\"ops\":[{\"op\":\"tfrecord\",\"files\":\"%s\"},{\"op\":\"parse_example\",\"features\":["
        "{\"name\":\"image\",\"kind\":\"raw\",\"dtype\":\"uint8\",\"shape\":[256,256,3]},"
        "{\"name\":\"label\",\"dtype\":\"int64\"}]},{\"op\":\"pixels\",\"steps\":["
        "{\"op\":\"rescale\",\"scale\":0.00392156862745098},{\"op\":\"random_brightness\","
        "\"delta\":0.1},"
        "{\"op\":\"random_flip_left_right\"}]},{\"op\":\"batch\",\"size\":32,\"drop_remainder\":"
        "true},"
        "{\"op\":\"prefetch\",\"elements\":-1}]}",
        path);
    return feed_setup(o, stk_data_pipeline(text, strlen(text), NULL, &err), &err, state);
}

int bench_photos_setup(const bench_options *o, void **state)
{
    stk_error err;
    const char *folder = data_path("photos");
    if (make_photos(folder)) return 1;
    stk_image_folder_options how = stk_image_folder_options_defaults();
    how.height = how.width = TARGET;
    how.scaled = strstr(o->row, "scaled") != NULL;
    stk_dataset *ds = stk_data_image_folder(folder, &how, &err);
    ds = stk_data_batch(ds, BATCH, false, &err);
    ds = stk_data_prefetch(ds, STK_AUTOTUNE, &err);
    return feed_setup(o, ds, &err, state);
}

int bench_feed_run(void *state, int64_t n) { return feed_run(state, n); }
void bench_feed_teardown(void *state) { feed_teardown(state); }

/* ---- tables ---------------------------------------------------------------------------------------- */

static int table_threads;

int bench_csv_setup(const bench_options *o, void **state)
{
    *state = NULL;
    table_threads = o->threads;
    return make_table(data_path("table.csv"));
}

int bench_csv_run(void *state, int64_t n)
{
    (void)state;
    for (int64_t i = 0; i < n; i++) {
        stk_error err;
        stk_csv *t = NULL;
        stk_tensor *columns[CSV_COLUMNS] = {NULL};
        stk_csv_options o = stk_csv_options_defaults();
        o.threads = table_threads;
        if (stk_csv_open(data_path("table.csv"), &o, &t, &err) || stk_csv_read(t, columns, &err))
            return failed("csv", &err);
        bool whole = columns[0]->shape[0] == CSV_ROWS;
        for (int c = 0; c < CSV_COLUMNS; c++) stk_tensor_release(columns[c]);
        stk_csv_close(t);
        if (!whole) return fprintf(stderr, "csv: rows are missing\n"), 1;
    }
    return 0;
}

/* ---- writing and checking ----------------------------------------------------------------------------- */

int bench_write_run(void *state, int64_t n)
{
    (void)state;
    static char record[SMALL_BYTES];
    for (int64_t i = 0; i < n; i++) {
        stk_error err;
        stk_record_writer *w = NULL;
        if (stk_record_writer_new(data_path("written"), STK_COMPRESSION_NONE, &w, &err))
            return failed("write", &err);
        for (int k = 0; k < SMALL_RECORDS; k++)
            if (stk_record_write(w, record, sizeof record, &err)) return failed("write", &err);
        if (stk_record_writer_commit(w, &err)) return failed("write", &err);
    }
    return 0;
}

int bench_verify_setup(const bench_options *o, void **state)
{
    (void)o;
    *state = NULL;
    return make_images(data_path("images.tfrecord"));
}

int bench_verify_run(void *state, int64_t n)
{
    (void)state;
    for (int64_t i = 0; i < n; i++) {
        stk_error err;
        stk_record_reader *r = NULL;
        stk_string record;
        if (stk_records_open(data_path("images.tfrecord"), NULL, &r, &err))
            return failed("verify", &err);
        for (bool end = false; !end;)
            if (stk_records_next(r, &record, &end, &err)) return failed("verify", &err);
        bool whole = stk_records_stats(r).records == IMAGES;
        stk_records_close(r);
        if (!whole) return fprintf(stderr, "verify: records are missing\n"), 1;
    }
    return 0;
}
