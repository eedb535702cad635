/* Datasets from files: records by number and in order, lines, tables, arrays, folders of pictures. */
#include "check.h"
#include "temporary.h"

#include "base/tensor.h"
#include "stoker/sources.h"

#include <sys/stat.h>

static const char *golden(const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/data/golden/%s", STK_TEST_DIR, name);
    return path;
}

/* Elements of a stream until its end; sum of the first part's bytes or numbers. */
static int64_t drain(stk_dataset *ds, int32_t threads, double *sum)
{
    stk_error err;
    stk_stream *s = NULL;
    stk_stream_options o = stk_stream_options_defaults();
    o.threads = threads;
    int64_t n = 0;
    *sum = 0;
    if (!CHECK_OK(stk_dataset_stream(ds, &o, &s, &err))) return -1;
    for (bool end = false;;) {
        stk_tensor *parts[8] = {NULL};
        if (!CHECK_OK(stk_stream_next(s, parts, &end, &err)) || end) break;
        const stk_tensor *t = parts[0];
        for (int64_t i = 0; i < stk_tensor_count(t); i++)
            *sum += t->dtype == STK_STRING
                        ? (double)((const stk_string *)stk_tensor_address(t, i))->size
                        : stk_tensor_at(t, i);
        for (int i = 0; i < 8; i++) stk_tensor_release(parts[i]);
        n++;
    }
    stk_stream_release(s);
    return n;
}

TEST(records_of_several_files)
{
    stk_error err;
    const char *plain[2] = {golden("records.tfrecord"), golden("examples.tfrecord")};
    const char *mixed[2] = {golden("records.gz"), golden("records.tfrecord")};
    double sum;
    stk_dataset *ds = stk_data_tfrecord(2, plain, NULL, &err);
    REQUIRE(CHECK_MSG(ds != NULL, "%s", err.message));
    CHECK(stk_dataset_random_access(ds));
    CHECK_EQ_I64(stk_dataset_cardinality(ds), 8);
    CHECK_EQ_I64(drain(ds, 1, &sum), 8);
    CHECK_NEAR(sum, 5314 + 435 - 48, 0);
    stk_tensor *record = NULL;
    CHECK_OK(stk_dataset_get(ds, 0, 4, &record, &err));
    stk_dataset_release(ds); /* the record keeps its file */
    CHECK_EQ_I64(((const stk_string *)record->data)->size, 5000);
    CHECK_EQ_I64((uint8_t)((const stk_string *)record->data)->data[4999], (4999 * 7 + 4) % 256);
    stk_tensor_release(record);
    ds = stk_data_tfrecord(2, mixed, NULL, &err);
    CHECK(!stk_dataset_random_access(ds));
    CHECK_EQ_I64(drain(ds, 2, &sum), 10);
    CHECK_NEAR(sum, 2 * 5314, 0);
    stk_dataset_release(ds);
    const char *none[1] = {"/nonexistent.tfrecord"};
    CHECK(stk_data_tfrecord(1, none, NULL, &err) == NULL);
    CHECK_CONTAINS(err.message, "/nonexistent.tfrecord");
}

/* A position in the middle of a compressed file is found again. */
TEST(positions_in_order_are_exact)
{
    stk_error err;
    const char *files[2] = {golden("records.gz"), golden("records.zlib")};
    stk_dataset *ds = stk_data_tfrecord(2, files, NULL, &err);
    REQUIRE(CHECK_MSG(ds != NULL, "%s", err.message));
    for (int64_t at = 0; at <= 10; at++) {
        stk_stream *a = NULL, *b = NULL;
        void *bytes = NULL;
        size_t size = 0;
        bool end = false;
        REQUIRE(CHECK_OK(stk_dataset_stream(ds, NULL, &a, &err)));
        REQUIRE(CHECK_OK(stk_dataset_stream(ds, NULL, &b, &err)));
        for (int64_t i = 0; i < at; i++) {
            stk_tensor *t = NULL;
            CHECK_OK(stk_stream_next(a, &t, &end, &err));
            stk_tensor_release(t);
        }
        REQUIRE(CHECK_OK(stk_stream_save(a, &bytes, &size, &err)));
        REQUIRE(CHECK_OK(stk_stream_restore(b, bytes, size, &err)));
        int64_t left = 0;
        for (end = false;; left++) {
            stk_tensor *x = NULL, *y = NULL;
            bool also = false;
            REQUIRE(CHECK_OK(stk_stream_next(a, &x, &end, &err)));
            REQUIRE(CHECK_OK(stk_stream_next(b, &y, &also, &err)));
            CHECK(end == also);
            if (!end && !also)
                CHECK_EQ_I64(((stk_string *)x->data)->size, ((stk_string *)y->data)->size);
            stk_tensor_release(x);
            stk_tensor_release(y);
            if (end || also) break;
        }
        CHECK_EQ_I64(left, 10 - at);
        stk_state_free(bytes);
        stk_stream_release(a);
        stk_stream_release(b);
    }
    stk_dataset_release(ds);
}

TEST(pipeline_of_examples)
{
    stk_error err;
    char text[1024];
    snprintf(text, sizeof text,
             "{\"ops\":[{\"op\":\"tfrecord\",\"files\":\"%s\"},"
             "{\"op\":\"parse_example\",\"features\":["
             "{\"name\":\"pixels\",\"kind\":\"raw\",\"dtype\":\"uint8\",\"shape\":[2,2,3]},"
             "{\"name\":\"label\",\"dtype\":\"int64\"},"
             "{\"name\":\"optional\",\"dtype\":\"float32\",\"fallback\":2.5}]},"
             "{\"op\":\"rescale\",\"part\":0,\"scale\":2},{\"op\":\"batch\",\"size\":3}]}",
             golden("examples.tfrecord"));
    for (int threads = 1; threads <= 2; threads++) {
        stk_dataset *ds = stk_data_pipeline(text, strlen(text), NULL, &err);
        REQUIRE(CHECK_MSG(ds != NULL, "%s", err.message));
        stk_stream *s = NULL;
        stk_stream_options o = stk_stream_options_defaults();
        o.threads = threads;
        stk_tensor *parts[3] = {NULL};
        bool end = false;
        REQUIRE(CHECK_OK(stk_dataset_stream(ds, &o, &s, &err)));
        REQUIRE(CHECK_OK(stk_stream_next(s, parts, &end, &err)));
        CHECK_STR(STK_TENSOR_TEXT(parts[0]), "float32[3,2,2,3]");
        for (int64_t i = 0; i < 36; i++) CHECK_NEAR(stk_tensor_at(parts[0], i), 2 * i, 0);
        CHECK_EQ_I64(stk_tensor_at(parts[1], 2), -7);
        CHECK_NEAR(stk_tensor_at(parts[2], 0), 2.5, 0);
        CHECK_NEAR(stk_tensor_at(parts[2], 1), 7.5, 0);
        for (int i = 0; i < 3; i++) stk_tensor_release(parts[i]);
        stk_stream_release(s);
        stk_dataset_release(ds);
    }
}

static void write_text(const char *path, const char *text, size_t size)
{
    FILE *f = fopen(path, "w");
    fwrite(text, 1, size, f);
    fclose(f);
}

TEST(lines_and_fixed_records)
{
    stk_error err;
    double sum;
    write_text(temporary("a.txt"), "one\r\n\nthree", 11);
    write_text(temporary("b.bin"), "HHabcabcabcF", 12);
    const char *lines[1] = {temporary("a.txt")}, *fixed[1] = {temporary("b.bin")};
    stk_dataset *ds = stk_data_text_lines(1, lines, &err);
    CHECK_EQ_I64(drain(ds, 1, &sum), 3);
    CHECK_NEAR(sum, 3 + 0 + 5, 0);
    stk_dataset_release(ds);
    ds = stk_data_fixed_records(1, fixed, 3, 2, 1, &err);
    stk_map_fn raw;
    CHECK_OK(stk_map_decode_raw(0, STK_U8, 1, (int64_t[]){3}, &raw, &err));
    ds = stk_data_map(ds, &raw, NULL, &err);
    CHECK_EQ_I64(drain(ds, 1, &sum), 3);
    CHECK_NEAR(sum, 3 * ('a' + 'b' + 'c'), 0);
    stk_dataset_release(ds);
    CHECK(stk_data_fixed_records(1, fixed, 4, 2, 1, &err) == NULL);
    CHECK_CONTAINS(err.message, "no whole number");
}

TEST(tables_become_rows)
{
    stk_error err;
    write_text(temporary("t.csv"), "a,b,y\n1,2,0\n3,4.5,1\n", 20);
    stk_csv_source how = {.label = "y", .stack = true};
    stk_dataset *ds = stk_data_csv(temporary("t.csv"), NULL, &how, &err);
    REQUIRE(CHECK_MSG(ds != NULL, "%s", err.message));
    char text[200];
    CHECK_STR(stk_schema_describe(stk_dataset_schema(ds), text, sizeof text),
              "(float32[2], int64[])");
    stk_tensor *parts[3] = {NULL};
    CHECK_OK(stk_dataset_get(ds, 0, 1, parts, &err));
    CHECK_NEAR(stk_tensor_at(parts[0], 1), 4.5, 0);
    CHECK_EQ_I64(stk_tensor_at(parts[1], 0), 1);
    stk_tensor_release(parts[0]);
    stk_tensor_release(parts[1]);
    stk_dataset_release(ds);
    how.stack = false;
    ds = stk_data_csv(temporary("t.csv"), NULL, &how, &err);
    CHECK_EQ_I64(stk_dataset_schema(ds)->n, 3);
    CHECK_STR(stk_dataset_schema(ds)->structure, "({a:0,b:1},2)");
    stk_dataset_release(ds);
    how.label = "z";
    CHECK(stk_data_csv(temporary("t.csv"), NULL, &how, &err) == NULL);
    CHECK_CONTAINS(err.message, "\"z\"");
}

TEST(arrays_are_mapped)
{
    stk_error err;
    stk_tensor *t = NULL;
    double sum;
    REQUIRE(CHECK_OK(stk_tensor_new(STK_F32, 2, (int64_t[]){5, 3}, &t, &err)));
    for (int64_t i = 0; i < 15; i++) ((float *)t->data)[i] = (float)i;
    CHECK_OK(stk_npy_save(temporary("x.npy"), t, &err));
    const char *names[2] = {"x", "y"};
    stk_tensor *both[2] = {t, t};
    CHECK_OK(stk_npz_save(temporary("xy.npz"), 2, names, both, &err));
    stk_tensor_release(t);
    stk_dataset *ds = stk_data_npz(temporary("x.npy"), 0, NULL, &err);
    CHECK_EQ_I64(drain(ds, 1, &sum), 5);
    CHECK_NEAR(sum, 105, 0);
    stk_dataset_release(ds);
    ds = stk_data_npz(temporary("xy.npz"), 1, &names[1], &err);
    CHECK_EQ_I64(drain(ds, 1, &sum), 5);
    CHECK_EQ_I64(stk_dataset_schema(ds)->n, 1);
    stk_dataset_release(ds);
    const char *wrong[1] = {"z"};
    CHECK(stk_data_npz(temporary("xy.npz"), 1, wrong, &err) == NULL);
    CHECK_CONTAINS(err.message, "no array \"z\"");
}

static void copy_picture(const char *name, const char *to)
{
    FILE *in = fopen(golden(name), "r"), *out = fopen(to, "w");
    char block[4096];
    CHECK(in && out);
    for (size_t n; in && out && (n = fread(block, 1, sizeof block, in)) > 0;)
        fwrite(block, 1, n, out);
    if (in) fclose(in);
    if (out) fclose(out);
}

/* Whoever reads it without saying anything about threads. */
static void check_workers(stk_dataset *ds, int32_t workers)
{
    stk_error err;
    stk_stream *s = NULL;
    stk_stage_stats rows[4];
    stk_stream_options o = stk_stream_options_defaults();
    o.threads = workers;
    REQUIRE(CHECK_OK(stk_dataset_stream(ds, &o, &s, &err)));
    int32_t n = stk_stream_stats(s, rows, 4);
    for (int32_t i = 0; i < n && CHECK(n <= 4); i++) CHECK_EQ_I64(rows[i].workers, workers);
    stk_stream_release(s);
}

TEST(folders_of_pictures)
{
    stk_error err;
    (void)temporary("x");
    char root[128], path[256];
    snprintf(root, sizeof root, "%s-pictures", temporary_folder);
    static const char *const files[4] = {"cat/b.bmp", "cat/a.gif", "ant/z.bmp", "ant/notes.txt"};
    mkdir(root, 0755);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", root, i ? "cat" : "ant");
        mkdir(path, 0755);
    }
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", root, files[i]);
        copy_picture(i == 1 ? "photo.gif" : "photo.bmp", path);
    }
    stk_image_folder_options o = stk_image_folder_options_defaults();
    o.height = 20, o.width = 24;
    stk_dataset *ds = stk_data_image_folder(root, &o, &err);
    REQUIRE(CHECK_MSG(ds != NULL, "%s", err.message));
    CHECK_EQ_I64(stk_dataset_cardinality(ds), 3);
    int32_t n = 0;
    const char *const *classes = stk_data_classes(ds, &n);
    CHECK(n == 2 && strcmp(classes[0], "ant") == 0 && strcmp(classes[1], "cat") == 0);
    ds = stk_data_batch(ds, 3, false, &err);
    double sum;
    for (int threads = 1; threads <= 2; threads++) CHECK_EQ_I64(drain(ds, threads, &sum), 1);
    check_workers(ds, 3);
    stk_tensor *parts[2] = {NULL};
    CHECK_OK(stk_dataset_get(ds, 0, 0, parts, &err));
    CHECK_STR(STK_TENSOR_TEXT(parts[0]), "float32[3,20,24,3]");
    CHECK_EQ_I64(stk_tensor_at(parts[1], 0), 0);
    CHECK_EQ_I64(stk_tensor_at(parts[1], 1), 1);
    stk_tensor_release(parts[0]);
    stk_tensor_release(parts[1]);
    stk_dataset_release(ds);
    o.validation = 0.4; /* one of three */
    for (int part = 0; part < 2; part++) {
        o.validation_part = part;
        ds = stk_data_image_folder(root, &o, &err);
        CHECK_EQ_I64(stk_dataset_cardinality(ds), part ? 1 : 2);
        stk_dataset_release(ds);
    }
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s", root, files[i]);
        unlink(path);
    }
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", root, i ? "cat" : "ant");
        rmdir(path);
    }
    CHECK(stk_data_image_folder(root, &o, &err) == NULL);
    rmdir(root);
}

/* Files come before those of folders inside, each sorted; a picture that cannot be read is named, which tells the order. */
TEST(folders_in_folders)
{
    stk_error err;
    (void)temporary("x");
    static const char *const folders[] = {"", "/c", "/c/m", "/c/a", "/c/a/b"}, *const files[] = {
                                                                                   "/c/y.bmp",
                                                                                   "/c/z.bmp",
                                                                                   "/c/a/2.bmp",
                                                                                   "/c/a/b/1.bmp",
                                                                                   "/c/m/0.bmp"};
    char root[128], path[256];
    snprintf(root, sizeof root, "%s-nested", temporary_folder);
    for (int i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "%s%s", root, folders[i]);
        mkdir(path, 0755);
    }
    for (int i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "%s%s", root, files[i]);
        FILE *f = fopen(path, "w");
        if (CHECK(f)) fclose(f);
    }
    stk_dataset *ds = stk_data_image_folder(root, NULL, &err);
    REQUIRE(CHECK_MSG(ds != NULL, "%s", err.message));
    CHECK_EQ_I64(stk_dataset_cardinality(ds), 5);
    for (int i = 0; i < 5; i++) {
        stk_tensor *parts[2] = {NULL};
        CHECK(stk_dataset_get(ds, 0, i, parts, &err) != STK_OK);
        CHECK_CONTAINS(err.message, files[i]);
    }
    stk_dataset_release(ds);
    for (int i = 0; i < 5; i++) {
        snprintf(path, sizeof path, "%s%s", root, files[i]);
        unlink(path);
    }
    for (int i = 4; i >= 0; i--) {
        snprintf(path, sizeof path, "%s%s", root, folders[i]);
        rmdir(path);
    }
}

static stk_status make_and_read(void)
{
    const char *files[1] = {golden("examples.tfrecord")};
    stk_feature f = {.name = "label", .dtype = STK_I64};
    stk_map_fn parse;
    stk_error err = {.code = STK_OK};
    stk_dataset *ds = stk_data_tfrecord(1, files, NULL, &err);
    if (!ds) return err.code;
    stk_status status = stk_map_parse_example(1, &f, false, &parse, &err);
    if (status == STK_OK) ds = stk_data_map(ds, &parse, NULL, &err);
    stk_tensor *t = NULL;
    if (status == STK_OK) status = ds ? stk_dataset_get(ds, 0, 1, &t, &err) : err.code;
    stk_tensor_release(t);
    stk_dataset_release(ds);
    return status;
}

TEST(no_memory_is_an_ordinary_error) { OOM_LOOP(make_and_read()); }

TEST_MAIN()
