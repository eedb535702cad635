/* The user's cache folder. */
#include "base/cache_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool make_folders(char *path)
{
    for (char *slash = path + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        bool made = mkdir(path, 0755) == 0 || errno == EEXIST;
        *slash = '/';
        if (!made) return false;
    }
    return true;
}

bool stk_cache_path(const char *name, char *path, size_t size)
{
    const char *own = getenv("STOKER_CACHE"), *xdg = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    int used;
    if (own) {
        if (!*own) return false;
        used = snprintf(path, size, "%s/%s", own, name);
    } else if (xdg && *xdg) {
        used = snprintf(path, size, "%s/stoker/%s", xdg, name);
    } else if (home && *home) {
        used = snprintf(path, size, "%s/.cache/stoker/%s", home, name);
    } else {
        return false;
    }
    return used > 0 && (size_t)used < size && make_folders(path);
}
