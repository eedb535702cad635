/* Files: whole or not at all. */
#define _GNU_SOURCE
#include "check.h"
#include "temporary.h"

#include "base/file.h"

#include <sys/stat.h>

static stk_status write_as(bool hasty, const char *path, const char *text, size_t times,
                           stk_error *err)
{
    stk_file_writer w;
    stk_status status = stk_file_create(path, &w, err);
    w.hasty = hasty;
    for (size_t i = 0; status == STK_OK && i < times; i++)
        status = stk_file_write(&w, text, strlen(text), err);
    if (status == STK_OK) return stk_file_commit(&w, err);
    stk_file_abandon(&w);
    return status;
}

static stk_status write_text(const char *path, const char *text, size_t times, stk_error *err)
{
    return write_as(false, path, text, times, err);
}

static void check_content(const char *path, const char *text, size_t times)
{
    stk_error err;
    char *data = NULL;
    size_t size = 0, length = strlen(text);
    REQUIRE(CHECK_OK(stk_file_read(path, 1 << 30, &data, &size, &err)));
    CHECK_EQ_I64(size, length * times);
    bool same = size == length * times && data[size] == 0;
    for (size_t i = 0; same && i < times; i++) same = memcmp(data + i * length, text, length) == 0;
    CHECK(same);
    stk_free(data);
}

TEST(what_is_written_is_read)
{
    stk_error err;
    CHECK_OK(write_text(temporary("empty"), "", 0, &err));
    check_content(temporary("empty"), "", 0);
    CHECK_OK(write_text(temporary("small"), "hello", 1, &err));
    check_content(temporary("small"), "hello", 1);
    CHECK_OK(
        write_text(temporary("many"), "0123456789abcdefg", 20000, &err)); /* crosses the buffer */
    check_content(temporary("many"), "0123456789abcdefg", 20000);
    char *large = malloc(300001);
    memset(large, 'x', 300000);
    large[300000] = 0;
    CHECK_OK(write_text(temporary("large"), large, 2, &err));
    check_content(temporary("large"), large, 2);
    free(large);
    CHECK_EQ_I64(temporary_count(), 4); /* nothing else is left lying about */
}

/* Hasty writers may reserve room on the disk; none of it stays taken. */
TEST(hasty_files_have_their_length_and_no_more)
{
    stk_error err;
    struct stat info;
    static const size_t times[] = {1, 4000, 70000, 300000};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        CHECK_OK(write_as(true, temporary("hasty"), "0123456789abcdefg", times[i], &err));
        check_content(temporary("hasty"), "0123456789abcdefg", times[i]);
        REQUIRE(CHECK(stat(temporary("hasty"), &info) == 0));
        CHECK_MSG(info.st_blocks * 512 <= info.st_size + (64 << 10), "%lld bytes take %lld",
                  (long long)info.st_size, (long long)info.st_blocks * 512);
    }
    stk_file_writer w;
    CHECK_OK(stk_file_create("/dev/null", &w, &err)); /* written directly */
    w.hasty = true;
    for (int k = 0; k < 20000; k++) CHECK_OK(stk_file_write(&w, "0123456789abcdefg", 17, &err));
    CHECK_OK(stk_file_commit(&w, &err));
    unlink(temporary("hasty"));
}

TEST(the_old_file_stays_until_commit)
{
    stk_error err;
    const char *path = temporary("kept");
    stk_file_writer w;
    CHECK_OK(write_text(path, "old", 1, &err));
    CHECK_OK(stk_file_create(path, &w, &err));
    CHECK_OK(stk_file_write(&w, "new", 3, &err));
    CHECK_EQ_I64(w.offset, 3);
    check_content(path, "old", 1);
    stk_file_abandon(&w);
    stk_file_abandon(&w);
    check_content(path, "old", 1);
    CHECK_OK(write_text(path, "newer", 1, &err));
    check_content(path, "newer", 1);
    struct stat info;
    mode_t mask = umask(0);
    umask(mask);
    REQUIRE(CHECK(stat(path, &info) == 0));
    CHECK_EQ_I64(info.st_mode & 0777, 0666 & ~mask);
}

TEST(links_and_devices)
{
    stk_error err;
    struct stat info;
    CHECK_OK(write_text(temporary("target"), "a", 1, &err));
    REQUIRE(CHECK(symlink("target", temporary("link")) == 0));
    CHECK_OK(write_text(temporary("link"), "b", 1, &err));
    check_content(temporary("target"), "b", 1);
    REQUIRE(CHECK(lstat(temporary("link"), &info) == 0));
    CHECK(S_ISLNK(info.st_mode));
    CHECK_OK(write_text("/dev/null", "into nothing", 1, &err));
    REQUIRE(CHECK(stat("/dev/null", &info) == 0));
    CHECK(S_ISCHR(info.st_mode));
    if (access("/dev/full", W_OK) == 0)
        CHECK_FAILS(write_text("/dev/full", "no room", 1, &err), STK_ERR_IO,
                    "/dev/full: cannot write");
}

TEST(failures_name_the_path_and_the_reason)
{
    stk_error err;
    char *data;
    size_t size;
    stk_file_writer w;
    stk_bytes bytes;
    CHECK_FAILS(stk_file_read(temporary("none"), 10, &data, &size, &err), STK_ERR_IO,
                "none: cannot open it for reading: No such file");
    CHECK(data == NULL && size == 0);
    CHECK_FAILS(stk_file_read(temporary_folder, 10, &data, &size, &err), STK_ERR_IO, "is a folder");
    CHECK_FAILS(stk_file_create(temporary_folder, &w, &err), STK_ERR_IO, "is a folder");
    CHECK_FAILS(stk_file_create(temporary("no/such/folder"), &w, &err), STK_ERR_IO,
                "cannot create a file beside it");
    CHECK_FAILS(stk_file_create(NULL, &w, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK_FAILS(stk_bytes_open(NULL, &bytes, &err), STK_ERR_ARGUMENT, "NULL");
    CHECK_OK(write_text(temporary("ten"), "0123456789", 1, &err));
    CHECK_FAILS(stk_file_read(temporary("ten"), 9, &data, &size, &err), STK_ERR_RANGE,
                "10 bytes, more than the 9");
    stk_file_writer zero = {0};
    stk_file_abandon(&zero);
}

TEST(bytes_at_offsets)
{
    stk_error err;
    stk_bytes file, memory = stk_bytes_of("memory", "0123456789", 10);
    CHECK_OK(write_text(temporary("digits"), "0123456789", 1, &err));
    CHECK_OK(stk_bytes_open(temporary("digits"), &file, &err));
    for (int k = 0; k < 2; k++) {
        stk_bytes *b = k ? &memory : &file;
        char to[8] = {0};
        CHECK_EQ_I64(b->size, 10);
        CHECK_OK(stk_bytes_read(b, 7, to, 3, &err));
        CHECK_STR(to, "789");
        CHECK_OK(stk_bytes_read(b, 10, to, 0, &err));
        CHECK_FAILS(stk_bytes_read(b, 8, to, 3, &err), STK_ERR_FORMAT, "ends at byte 10");
        CHECK_FAILS(stk_bytes_read(b, 11, to, 0, &err), STK_ERR_FORMAT, "needed at 11");
        CHECK_FAILS(stk_bytes_read(b, UINT64_MAX, to, 2, &err), STK_ERR_FORMAT, "needed");
    }
    REQUIRE(CHECK(truncate(temporary("digits"), 4) == 0));
    char to[8];
    CHECK_FAILS(stk_bytes_read(&file, 2, to, 6, &err), STK_ERR_IO, "became shorter");
    stk_bytes_close(&file);
    stk_bytes_close(&file);
    stk_bytes_close(&memory);
}

static stk_status both_ways(const char *path, stk_error *err)
{
    char *data = NULL;
    size_t size;
    stk_status status = write_text(path, "text", 3, err);
    if (status == STK_OK) status = stk_file_read(path, 100, &data, &size, err);
    stk_free(data);
    return status;
}

TEST(out_of_memory)
{
    stk_error err;
    char path[256];
    snprintf(path, sizeof path, "%s", temporary("oom"));
    OOM_LOOP(both_ways(path, &err));
}

TEST_MAIN()
