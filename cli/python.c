/* python.c - programs in Python: `stoker run|doctor|profile|check program.py` goes on as `python -m stoker ...`, with the
 * interpreter that stands beside this command (a venv), or STOKER_PYTHON, or python3. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && !strcmp(text + n - m, end);
}

static bool is_program(const char *argument)
{
    return ends_with(argument, ".py") || ends_with(argument, ".ipynb");
}

/* `stoker run` is always Python's; doctor and profile are when their first file is a program. */
bool cli_is_python(int argc, char **argv)
{
    if (argc < 2) return false;
    if (!strcmp(argv[1], "run") || !strcmp(argv[1], "check")) return true;
    if (strcmp(argv[1], "doctor") && strcmp(argv[1], "profile")) return false;
    for (int i = 2; i < argc; i++)
        if (argv[i][0] != '-') return is_program(argv[i]);
    return false;
}

static bool is_file(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && S_ISREG(facts.st_mode) && access(path, X_OK) == 0;
}

/* The interpreter beside this command: that of `make python` in a build folder, or a venv's. NULL: none; free it. */
static char *neighbour(void)
{
    static const char *const places[] = {"python/bin/python", "python", "python3"};
    char own[4096];
    ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
    char *slash = n > 0 ? (own[n] = 0, strrchr(own, '/')) : NULL;
    size_t room = slash ? (size_t)(slash - own) + 32 : 0;
    char *path = slash ? malloc(room) : NULL;
    for (size_t i = 0; path && i < sizeof places / sizeof *places; i++) {
        snprintf(path, room, "%.*s/%s", (int)(slash - own), own, places[i]);
        if (is_file(path)) return path;
    }
    free(path);
    return NULL;
}

int cli_python(int argc, char **argv)
{
    char *beside = neighbour();
    const char *python = getenv("STOKER_PYTHON");
    if (!python || !*python) python = beside ? beside : "python3";
    char **args = calloc((size_t)argc + 3, sizeof *args);
    int code = CLI_MEMORY;
    if (args) {
        args[0] = (char *)(uintptr_t)python;
        args[1] = "-m", args[2] = "stoker";
        for (int i = 1; i < argc; i++) args[i + 2] = argv[i];
        execvp(python, args);
        fprintf(stderr, "stoker %s: cannot start %s: %s; name an interpreter with STOKER_PYTHON\n",
                argv[1], python, strerror(errno));
        code = CLI_FILE;
    }
    free(args);
    free(beside);
    return code;
}
