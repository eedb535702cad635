/* temporary.h - a folder of its own for a test that writes files; removed with all it holds. */
#ifndef STK_TEST_TEMPORARY_H
#define STK_TEST_TEMPORARY_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char temporary_folder[64];

/* "folder/name", in one of four rotating buffers. The folder is made at the first call. */
static inline const char *temporary(const char *name)
{
    static char paths[4][256];
    static int next;
    if (!temporary_folder[0]) {
        strcpy(temporary_folder, "/tmp/stk_test_XXXXXX");
        if (!mkdtemp(temporary_folder)) perror(temporary_folder);
    }
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", temporary_folder, name);
    return path;
}

/* Files in the folder; one level is all that tests make. */
static inline int temporary_count(void)
{
    int count = 0;
    DIR *folder = opendir(temporary_folder);
    for (struct dirent *e; folder && (e = readdir(folder));) count += e->d_name[0] != '.';
    if (folder) closedir(folder);
    return count;
}

__attribute__((destructor)) static inline void temporary_remove(void)
{
    if (!temporary_folder[0]) return;
    DIR *folder = opendir(temporary_folder);
    for (struct dirent *e; folder && (e = readdir(folder));) {
        char path[512];
        snprintf(path, sizeof path, "%s/%s", temporary_folder, e->d_name);
        if (e->d_name[0] != '.' && unlink(path) != 0) rmdir(path);
    }
    if (folder) closedir(folder);
    rmdir(temporary_folder);
}

#endif
