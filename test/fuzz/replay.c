/* Stands in for libFuzzer in a plain build: runs the fuzz target over the files of the folders
 * given, and over the empty input, so that every input that once broke something stays tested. */
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) return -1;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    /* Exactly as large as the input, so that AddressSanitizer sees a read of one byte more. */
    uint8_t *data = malloc(size > 0 ? (size_t)size : 1);
    size_t got = data && size > 0 ? fread(data, 1, (size_t)size, file) : 0;
    fclose(file);
    if (data) LLVMFuzzerTestOneInput(data, got);
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    int count = 0;
    uint8_t nothing = 0;
    LLVMFuzzerTestOneInput(&nothing, 0);
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        if (!folder) {
            fprintf(stderr, "%s: no such folder; a fuzz target needs its seeds there\n", argv[i]);
            return 1;
        }
        for (struct dirent *entry; (entry = readdir(folder));) {
            if (entry->d_name[0] == '.') continue;
            char path[PATH_MAX];
            snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
            if (replay(path) == 0) count++;
        }
        closedir(folder);
    }
    printf("%d seeds replayed\n", count);
    return count == 0;
}
