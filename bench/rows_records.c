/* The rows about files: CSV tables, writing and checking records; and the files all input rows read.
 *
 * Both sides make the files they need when they are not there, from the same formulas (bench/peers/inputs.py). */
#include "rows_files.h"

#include "stoker/records.h"
#include "stoker/csv.h"
#include "stoker/picture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum {
    PHOTO_H = 768,
    PHOTO_W = 1024,
    CSV_ROWS = 1000000,
    CSV_COLUMNS = 20,
    CSV_CHECKED = 100000,
    WRITTEN_BYTES = 10000000, /* of a written file, without its frames */
    LARGE_RECORD = 10000,
    SMALL_RECORD = 1000
};

static char *path_in(const char *folder, const char *name)
{
    static char paths[3][512];
    static int next;
    char *path = paths[next++ % 3];
    mkdir(folder, 0755);
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

char *bench_data_path(const char *name)
{
    const char *folder = getenv("STOKER_BENCH_DATA");
    if (!folder)
        folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm/stoker-bench" : "/tmp/stoker-bench";
    return path_in(folder, name);
}

static char *bench_disk_path(const char *name)
{
    const char *folder = getenv("STOKER_BENCH_DISK");
    return folder ? path_in(folder, name) : bench_data_path(name);
}

static int failed(const char *what, const stk_error *err) { return bench_failed(what, err); }

/* ---- the files ------------------------------------------------------------------------------------- */

void bench_image(int64_t number, uint8_t *pixels)
{
    size_t i = (size_t)number;
    for (size_t j = 0; j < BENCH_PIXELS; j++) pixels[j] = (uint8_t)(i * 131 + j * 7 + (j >> 8));
}

int bench_make_images(const char *path)
{
    stk_error err;
    stk_record_writer *w = NULL;
    size_t bytes = BENCH_PIXELS;
    uint8_t *pixels = malloc(bytes);
    if (access(path, R_OK) == 0 || !pixels) {
        free(pixels);
        return 0;
    }
    if (stk_record_writer_new(path, NULL, &w, &err)) return failed("images", &err);
    for (int64_t i = 0; i < BENCH_IMAGES; i++) {
        stk_tensor *image = NULL, *label = NULL;
        char *record = NULL;
        size_t size = 0;
        int64_t one = 1, class = i % 10;
        bench_image(i, pixels);
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

void bench_photo_path(const char *folder, int number, char *path, size_t size)
{
    snprintf(path, size, "%s/class%d/%03d.jpg", folder, number % 2, number);
}

/* Waves in three colours: compresses about as a photo does. */
int bench_make_photos(const char *folder)
{
    stk_error err;
    char path[640];
    mkdir(folder, 0755);
    for (int k = 0; k < 2; k++) {
        snprintf(path, sizeof path, "%s/class%d", folder, k);
        mkdir(path, 0755);
    }
    for (int i = 0; i < BENCH_PHOTOS; i++) {
        stk_tensor *t = NULL;
        char *bytes = NULL;
        size_t size = 0;
        bench_photo_path(folder, i, path, sizeof path);
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

/* ---- tables ---------------------------------------------------------------------------------------- */

static int table_threads;

static int read_table(stk_tensor **columns)
{
    stk_error err;
    stk_csv *t = NULL;
    stk_csv_options o = stk_csv_options_defaults();
    o.threads = table_threads;
    if (stk_csv_open(bench_data_path("table.csv"), &o, &t, &err) || stk_csv_read(t, columns, &err))
        return failed("csv", &err);
    stk_csv_close(t);
    if (columns[0]->shape[0] == CSV_ROWS) return 0;
    return fprintf(stderr, "csv: rows are missing\n"), 1;
}

static void release_table(stk_tensor **columns)
{
    for (int c = 0; c < CSV_COLUMNS; c++) stk_tensor_release(columns[c]);
}

/* "check": the first rows of the columns, one behind the other. */
int bench_csv_setup(const bench_options *o, void **state)
{
    *state = NULL;
    table_threads = o->threads;
    stk_tensor *columns[CSV_COLUMNS] = {NULL};
    if (make_table(bench_data_path("table.csv")) || read_table(columns)) return 1;
    bench_digest digest = {0};
    for (int c = 0; c < CSV_COLUMNS; c++) {
        stk_tensor head = *columns[c];
        head.shape[0] = CSV_CHECKED;
        if (bench_digest_add(&digest, &head)) return 1;
    }
    bench_digest_note(&digest, 1);
    release_table(columns);
    return 0;
}

int bench_csv_run(void *state, int64_t n)
{
    (void)state;
    for (int64_t i = 0; i < n; i++) {
        stk_tensor *columns[CSV_COLUMNS] = {NULL};
        if (read_table(columns)) return 1;
        release_table(columns);
    }
    return 0;
}

/* ---- writing and checking ----------------------------------------------------------------------------- */

int bench_write_run(void *state, int64_t n)
{
    static char record[LARGE_RECORD];
    const size_t size = *(const size_t *)state;
    for (int64_t i = 0; i < n; i++) {
        stk_error err;
        stk_record_writer *w = NULL;
        if (stk_record_writer_new(bench_disk_path("written"), NULL, &w, &err))
            return failed("write", &err);
        for (int k = 0; k < (int)(WRITTEN_BYTES / size); k++) {
            memcpy(record, &k, sizeof k); /* no two alike */
            if (stk_record_write(w, record, size, &err)) return failed("write", &err);
        }
        if (stk_record_writer_commit(w, &err)) return failed("write", &err);
    }
    return 0;
}

/* "check": the bytes of the file; the format leaves no choice. */
int bench_write_setup(const bench_options *o, void **state)
{
    static size_t size;
    size = strstr(o->row, "small") ? SMALL_RECORD : LARGE_RECORD;
    *state = &size;
    if (bench_write_run(&size, 1)) return 1;
    FILE *f = fopen(bench_disk_path("written"), "rb");
    uint8_t block[1 << 16];
    uLong sum = crc32(0, NULL, 0);
    double bytes = 0;
    for (size_t got; f && (got = fread(block, 1, sizeof block, f)) > 0; bytes += (double)got)
        sum = crc32(sum, block, (uInt)got);
    if (!f || fclose(f)) return fprintf(stderr, "the written file cannot be read\n"), 1;
    bench_note_numbers("check", 2, (double[]){bytes, (double)sum});
    return 0;
}

/* -> records and bytes in *found */
static int verify(double found[2])
{
    stk_error err;
    stk_record_reader *r = NULL;
    stk_string record;
    if (stk_records_open(bench_data_path("images.tfrecord"), NULL, &r, &err))
        return failed("verify", &err);
    for (bool end = false; !end;)
        if (stk_records_next(r, &record, &end, &err)) return failed("verify", &err);
    stk_record_stats stats = stk_records_stats(r);
    found[0] = (double)stats.records, found[1] = (double)stats.bytes;
    stk_records_close(r);
    if (stats.records == BENCH_IMAGES) return 0;
    return fprintf(stderr, "verify: records are missing\n"), 1;
}

int bench_verify_setup(const bench_options *o, void **state)
{
    (void)o;
    *state = NULL;
    double found[2];
    if (bench_make_images(bench_data_path("images.tfrecord")) || verify(found)) return 1;
    bench_note_numbers("check", 2, found);
    return 0;
}

int bench_verify_run(void *state, int64_t n)
{
    (void)state;
    for (double found[2]; n > 0; n--)
        if (verify(found)) return 1;
    return 0;
}

/* ---- digests ---------------------------------------------------------------------------------------------- */

int bench_digest_add(bench_digest *d, const stk_tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++) n *= t->shape[i];
    if (t->dtype != STK_F32 && t->dtype != STK_I64 && t->dtype != STK_I32)
        return fprintf(stderr, "digest: only float32, int64 and int32\n"), 1;
    for (int64_t i = 0; i < n; i++, d->count++) {
        double v = t->dtype == STK_F32   ? (double)((const float *)t->data)[i]
                   : t->dtype == STK_I64 ? (double)((const int64_t *)t->data)[i]
                                         : (double)((const int32_t *)t->data)[i];
        d->sum += v;
        d->weighted += v * (double)(1 + d->count % 1009);
    }
    return 0;
}

void bench_digest_note(const bench_digest *digests, int32_t n)
{
    double numbers[3 * 8];
    for (int32_t i = 0; i < n && i < 8; i++) {
        numbers[3 * i] = (double)digests[i].count;
        numbers[3 * i + 1] = digests[i].sum;
        numbers[3 * i + 2] = digests[i].weighted;
    }
    bench_note_numbers("check", 3 * n, numbers);
}
