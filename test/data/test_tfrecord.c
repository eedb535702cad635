/* TFRecord files: TensorFlow's are read, ours are the same bytes, damage is named and stepped over. */
#include "check.h"
#include "temporary.h"

#include "base/file.h"
#include "data/formats/tfrecord.h"
#include "stoker/records.h"

#include <sys/stat.h>

static const char *golden(const char *name)
{
    static char paths[4][512];
    static int next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/data/golden/%s", STK_TEST_DIR, name);
    return path;
}

static const int sizes[5] = {0, 1, 13, 300, 5000};

static bool is_record(stk_string record, int r)
{
    if (record.size != sizes[r]) return false;
    for (int64_t i = 0; i < record.size; i++)
        if ((uint8_t)record.data[i] != (uint8_t)(i * 7 + r)) return false;
    return true;
}

static void write_five(const char *path, stk_compression compression)
{
    stk_error err;
    stk_record_writer *w = NULL;
    /* Durable or not, the bytes are the same; compressed ones take the slow way here. */
    stk_record_writer_options o = {compression, compression >= STK_COMPRESSION_GZIP};
    REQUIRE(CHECK_OK(stk_record_writer_new(path, &o, &w, &err)));
    for (int r = 0; r < 5; r++) {
        uint8_t data[5000];
        for (int i = 0; i < sizes[r]; i++) data[i] = (uint8_t)(i * 7 + r);
        CHECK_OK(stk_record_write(w, data, (size_t)sizes[r], &err));
    }
    CHECK_OK(stk_record_writer_commit(w, &err));
}

static void check_five(const char *path, stk_compression compression)
{
    stk_error err;
    stk_record_reader *r = NULL;
    stk_record_options options = stk_record_options_defaults();
    options.compression = compression;
    REQUIRE(CHECK_OK(stk_records_open(path, &options, &r, &err)));
    stk_string record;
    bool end = false;
    for (int i = 0; i < 5; i++) {
        CHECK_OK(stk_records_next(r, &record, &end, &err));
        CHECK_MSG(!end && is_record(record, i), "%s: record %d differs", path, i);
    }
    CHECK_OK(stk_records_next(r, &record, &end, &err));
    CHECK(end);
    CHECK_EQ_I64(stk_records_stats(r).records, 5);
    CHECK_EQ_I64(stk_records_stats(r).bytes, 5314);
    CHECK_EQ_I64(stk_records_stats(r).bad, 0);
    stk_records_close(r);
}

TEST(tensorflow_files_are_read)
{
    check_five(golden("records.tfrecord"), STK_COMPRESSION_AUTO);
    check_five(golden("records.tfrecord"), STK_COMPRESSION_NONE);
    check_five(golden("records.gz"), STK_COMPRESSION_AUTO);
    check_five(golden("records.gz"), STK_COMPRESSION_GZIP);
    check_five(golden("records.zlib"), STK_COMPRESSION_AUTO);
    check_five(golden("records.zlib"), STK_COMPRESSION_ZLIB);
}

TEST(own_files_are_read_and_are_the_same_bytes)
{
    stk_error err;
    char *ours = NULL, *theirs = NULL;
    size_t n = 0, m = 0;
    write_five(temporary("plain"), STK_COMPRESSION_NONE);
    write_five(temporary("gz"), STK_COMPRESSION_GZIP);
    write_five(temporary("zlib"), STK_COMPRESSION_ZLIB);
    check_five(temporary("plain"), STK_COMPRESSION_AUTO);
    check_five(temporary("gz"), STK_COMPRESSION_AUTO);
    check_five(temporary("zlib"), STK_COMPRESSION_AUTO);
    CHECK_OK(stk_file_read(temporary("plain"), 1 << 20, &ours, &n, &err));
    CHECK_OK(stk_file_read(golden("records.tfrecord"), 1 << 20, &theirs, &m, &err));
    CHECK_EQ_I64(n, m);
    CHECK(n == m && memcmp(ours, theirs, n) == 0);
    stk_free(ours);
    stk_free(theirs);
}

TEST(records_are_reached_by_number)
{
    stk_error err;
    stk_record_reader *r = NULL;
    stk_record_options options = stk_record_options_defaults();
    options.index_beside = true;
    write_five(temporary("numbered"), STK_COMPRESSION_NONE);
    for (int round = 0; round < 2; round++) { /* the second time from the stored index */
        REQUIRE(CHECK_OK(stk_records_open(temporary("numbered"), &options, &r, &err)));
        int64_t count = 0;
        CHECK_OK(stk_records_count(r, &count, &err));
        CHECK_EQ_I64(count, 5);
        stk_string record;
        for (int i = 4; i >= 0; i--) {
            CHECK_OK(stk_records_at(r, i, &record, &err));
            CHECK(is_record(record, i));
        }
        CHECK_FAILS(stk_records_at(r, 5, &record, &err), STK_ERR_RANGE, "no record 5");
        CHECK_OK(stk_records_seek(r, 16 + 17, &err));
        bool end;
        CHECK_OK(stk_records_next(r, &record, &end, &err));
        CHECK(!end && is_record(record, 2));
        CHECK_EQ_I64(stk_records_offset(r), 33);
        stk_records_close(r);
        CHECK(access(temporary("numbered.index"), R_OK) == 0);
    }
    REQUIRE(CHECK_OK(stk_records_open(golden("records.gz"), NULL, &r, &err)));
    int64_t count;
    CHECK_FAILS(stk_records_count(r, &count, &err), STK_ERR_UNSUPPORTED, "compressed");
    stk_records_close(r);
}

/* An index as somebody might forge it: sums and sizes fit, the offset leads out of the file. */
TEST(forged_indexes_are_built_anew)
{
    stk_error err;
    stk_record_options options = stk_record_options_defaults();
    options.index_beside = true;
    static const size_t lengths[] = {0, 7, 15, 16, 40};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const char *path = temporary("short");
        FILE *f = fopen(path, "wb");
        for (size_t k = 0; k < lengths[i]; k++) fputc('x', f);
        fclose(f);
        struct stat info;
        REQUIRE(CHECK(stat(path, &info) == 0));
        uint8_t index[32 + 8 + 4] = "STKINDX1";
        stk_put_little(index + 8, lengths[i], 8);
        stk_put_little(index + 16,
                       (uint64_t)info.st_mtim.tv_sec * 1000000000 + (uint64_t)info.st_mtim.tv_nsec,
                       8);
        stk_put_little(index + 24, 1, 8);
        stk_put_little(index + 32, (uint64_t)1 << 40, 8);
        stk_put_little(index + 40, stk_crc32c(0, index, 40), 4);
        f = fopen(temporary("short.index"), "wb");
        CHECK_EQ_I64(fwrite(index, 1, sizeof index, f), sizeof index);
        fclose(f);
        stk_record_reader *r = NULL;
        stk_string record;
        REQUIRE(CHECK_OK(stk_records_open(path, &options, &r, &err)));
        CHECK(stk_records_at(r, 0, &record, &err) != STK_OK);
        stk_records_close(r);
    }
}

/* Offsets of the five records: 0, 16, 33, 62, 378; the file has 5394 bytes. */
typedef struct planted {
    const char *what;
    int64_t offset; /* byte that is changed, or where the file is cut when cut */
    bool cut;
    int64_t records, bad;
    const char *reason;
} planted;

static const planted cases[] = {
    {"data", 33 + 12 + 5, false, 4, 1, "byte 33: the checksum of the data (13 bytes)"},
    {"checksum of data", 33 + 12 + 13, false, 4, 1, "byte 33: the checksum of the data"},
    {"length", 62, false, 4, 1, "byte 62: the checksum of the length"},
    {"checksum of length", 62 + 9, false, 4, 1, "byte 62: the checksum of the length"},
    {"first length", 3, false, 4, 1, "byte 0: the checksum of the length"},
    {"cut in data", 1000, true, 4, 1, "byte 378: the record has 5000 bytes"},
    {"cut in head", 383, true, 4, 1, "byte 378: 5 bytes are left"},
};

TEST(damage_is_named_and_stepped_over)
{
    stk_error err;
    char *whole = NULL;
    size_t size = 0;
    REQUIRE(CHECK_OK(stk_file_read(golden("records.tfrecord"), 1 << 20, &whole, &size, &err)));
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const planted *p = &cases[c];
        size_t length = p->cut ? (size_t)p->offset : size;
        char *copy = malloc(length);
        memcpy(copy, whole, length);
        if (!p->cut) copy[p->offset] ^= 0x40;
        stk_record_options options = stk_record_options_defaults();
        options.policy = STK_BAD_SKIP;
        stk_record_reader *r = NULL;
        REQUIRE(CHECK_OK(stk_records_open_memory("m", copy, length, &options, &r, &err)));
        stk_string record;
        for (bool end = false; !end;) REQUIRE(CHECK_OK(stk_records_next(r, &record, &end, &err)));
        stk_record_stats stats = stk_records_stats(r);
        CHECK_MSG(stats.records == p->records && stats.bad == p->bad, "%s: %d good, %d bad",
                  p->what, (int)stats.records, (int)stats.bad);
        CHECK_CONTAINS(stats.last_reason, p->reason);
        stk_records_close(r);

        options.policy = STK_BAD_STOP;
        REQUIRE(CHECK_OK(stk_records_open_memory("m", copy, length, &options, &r, &err)));
        stk_status status = STK_OK;
        for (bool end = false; !end && status == STK_OK;)
            status = stk_records_next(r, &record, &end, &err);
        CHECK_STATUS(status, STK_ERR_FORMAT);
        CHECK_CONTAINS(err.message, "repair");
        stk_records_close(r);
        free(copy);
    }
    stk_free(whole);
}

/* Bytes lost in the middle of a record: its length leads into the next one. */
TEST(lost_bytes_cost_one_record)
{
    stk_error err;
    char *whole = NULL;
    size_t size = 0;
    REQUIRE(CHECK_OK(stk_file_read(golden("records.tfrecord"), 1 << 20, &whole, &size, &err)));
    memmove(whole + 62 + 12 + 100, whole + 62 + 12 + 150, size - 62 - 12 - 150);
    size -= 50;
    stk_record_options options = stk_record_options_defaults();
    options.policy = STK_BAD_QUARANTINE;
    options.quarantine = temporary("bad");
    stk_record_reader *r = NULL;
    REQUIRE(CHECK_OK(stk_records_open_memory("m", whole, size, &options, &r, &err)));
    stk_string record;
    int last = -1;
    for (bool end = false; !end;) {
        REQUIRE(CHECK_OK(stk_records_next(r, &record, &end, &err)));
        if (!end) last = is_record(record, 4) ? 4 : last;
    }
    CHECK_EQ_I64(last, 4);
    CHECK_EQ_I64(stk_records_stats(r).records, 4);
    CHECK_EQ_I64(stk_records_stats(r).skipped_bytes, 316 - 50);
    stk_records_close(r);
    char *kept = NULL;
    CHECK_OK(stk_file_read(temporary("bad"), 1 << 20, &kept, &size, &err));
    CHECK_EQ_I64(size, 316 - 50);
    stk_free(kept);
    stk_free(whole);
}

TEST(damaged_compression_is_named)
{
    stk_error err;
    char *packed = NULL;
    size_t size = 0;
    REQUIRE(CHECK_OK(stk_file_read(golden("records.gz"), 1 << 20, &packed, &size, &err)));
    stk_record_reader *r = NULL;
    REQUIRE(CHECK_OK(stk_records_open_memory("m", packed, size / 2, NULL, &r, &err)));
    stk_string record;
    stk_status status = STK_OK;
    for (bool end = false; !end && status == STK_OK;)
        status = stk_records_next(r, &record, &end, &err);
    CHECK_STATUS(status, STK_ERR_FORMAT);
    CHECK_CONTAINS(err.message, "compressed data are damaged");
    bool end = false;
    CHECK_OK(stk_records_next(r, &record, &end, &err));
    CHECK(end);
    stk_records_close(r);
    stk_free(packed);
    CHECK_FAILS(stk_records_open("/nonexistent/file", NULL, &r, &err), STK_ERR_IO, "nonexistent");
}

static stk_status write_and_read(stk_compression compression)
{
    stk_record_writer *w = NULL;
    stk_record_reader *r = NULL;
    const char *path = temporary("oom");
    stk_record_writer_options o = {.compression = compression};
    stk_status status = stk_record_writer_new(path, &o, &w, NULL);
    if (status != STK_OK) return status;
    status = stk_record_write(w, path, strlen(path), NULL);
    if (status != STK_OK) {
        stk_record_writer_abandon(w);
        return status;
    }
    status = stk_record_writer_commit(w, NULL);
    if (status == STK_OK) status = stk_records_open(path, NULL, &r, NULL);
    stk_string record;
    for (bool end = false; status == STK_OK && !end;)
        status = stk_records_next(r, &record, &end, NULL);
    int64_t count;
    if (status == STK_OK && compression == STK_COMPRESSION_NONE)
        status = stk_records_count(r, &count, NULL);
    stk_records_close(r);
    return status;
}

TEST(the_checksum_is_crc32c_masked)
{
    CHECK(stk_record_checksum("123456789", 9) == 0xc78ab0e5u);
    CHECK(stk_record_checksum("", 0) == 0xa282ead8u);
}

TEST(no_memory_is_an_ordinary_error)
{
    OOM_LOOP(write_and_read(STK_COMPRESSION_NONE));
    OOM_LOOP(write_and_read(STK_COMPRESSION_GZIP));
}

TEST_MAIN()
