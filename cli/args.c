/* args.c - `--name value`, `--name=value`, switches, and arguments between them; `--` ends the options. */
#include "cli.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const everywhere[] = {"json", "quiet", "help", NULL};

static int option_count(const cli_command *command)
{
    int n = 0;
    while (command->options && command->options[n].name) n++;
    return n;
}

static int find(const cli_command *command, const char *name, size_t length)
{
    for (int i = 0; i < option_count(command); i++)
        if (strlen(command->options[i].name) == length &&
            !memcmp(command->options[i].name, name, length))
            return i;
    return -1;
}

/* ---- near misses --------------------------------------------------------------------------------------- */

/* Insertions, deletions, exchanges, and swaps of neighbours count one each. */
static int distance(const char *a, const char *b)
{
    enum { MOST = 32 };
    int row[3][MOST + 1], n = (int)strlen(a), m = (int)strlen(b);
    if (n > MOST || m > MOST) return MOST;
    for (int j = 0; j <= m; j++) row[0][j] = j;
    for (int i = 1; i <= n; i++) {
        int *now = row[i % 3], *before = row[(i + 2) % 3], *earlier = row[(i + 1) % 3];
        now[0] = i;
        for (int j = 1; j <= m; j++) {
            int best = before[j - 1] + (a[i - 1] != b[j - 1]);
            if (before[j] + 1 < best) best = before[j] + 1;
            if (now[j - 1] + 1 < best) best = now[j - 1] + 1;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
                earlier[j - 2] + 1 < best)
                best = earlier[j - 2] + 1;
            now[j] = best;
        }
    }
    return row[n % 3][m];
}

const char *cli_near(const char *word, const char *(*item)(int index, const void *context),
                     const void *context)
{
    const char *best = NULL;
    int best_distance = strlen(word) < 4 ? 2 : 3;
    for (int i = 0; item(i, context); i++) {
        int d = distance(word, item(i, context));
        if (d < best_distance) {
            best = item(i, context);
            best_distance = d;
        }
    }
    return best;
}

static const char *option_name(int index, const void *context)
{
    const cli_command *command = context;
    int n = option_count(command);
    return index < n ? command->options[index].name : everywhere[index - n];
}

/* ---- reading them ---------------------------------------------------------------------------------------- */

static bool unknown(const cli_args *args, const char *name)
{
    char word[64];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(name, "="), name);
    const char *near = cli_near(word, option_name, args->command);
    cli_usage(args, "unknown option --%s%s%s%s", word, near ? "; did you mean --" : "",
              near ? near : "", near ? "?" : "");
    return false;
}

/* The switches that every command has. */
static bool common(cli_args *args, const char *name)
{
    bool *flags[] = {&args->json, &args->quiet, &args->help};
    for (int i = 0; everywhere[i]; i++)
        if (!strcmp(name, everywhere[i])) return *flags[i] = true;
    return false;
}

static bool read_option(cli_args *args, int argc, char **argv, int *at)
{
    const char *name = argv[*at] + 2;
    size_t length = strcspn(name, "=");
    int index = find(args->command, name, length);
    if (index < 0) return common(args, name) || unknown(args, name);
    const cli_option *option = &args->command->options[index];
    if (args->values[index]) return cli_usage(args, "--%s was given twice", option->name), false;
    if (!option->value) {
        args->values[index] = "";
        if (name[length]) return cli_usage(args, "--%s takes no value", option->name), false;
        return true;
    }
    if (name[length])
        args->values[index] = name + length + 1;
    else if (*at + 1 < argc)
        args->values[index] = argv[++*at];
    else
        return cli_usage(args, "--%s needs a value: %s", option->name, option->value), false;
    return true;
}

static bool check_count(const cli_args *args)
{
    const cli_command *command = args->command;
    if (args->nrest < command->least)
        return cli_usage(args, "missing argument: %s", command->arguments), false;
    if (command->most >= 0 && args->nrest > command->most)
        return cli_usage(args, "'%s' is one argument too many", args->rest[command->most]), false;
    return true;
}

bool cli_args_parse(const cli_command *command, int argc, char **argv, cli_args *out)
{
    *out = (cli_args){.command = command};
    out->values = calloc((size_t)option_count(command) + 1, sizeof *out->values);
    const char **rest = calloc((size_t)argc + 1, sizeof *rest);
    out->rest = rest;
    if (!out->values || !rest) return fprintf(stderr, "stoker: out of memory\n"), false;
    bool options = true;
    for (int i = 0; i < argc; i++) {
        if (options && !strcmp(argv[i], "--"))
            options = false;
        else if (options && !strcmp(argv[i], "-h"))
            out->help = true;
        else if (options && !strncmp(argv[i], "--", 2)) {
            if (!read_option(out, argc, argv, &i)) return false;
        } else if (options && argv[i][0] == '-' && argv[i][1])
            return cli_usage(out, "unknown option %s; options start with two dashes", argv[i]),
                   false;
        else
            rest[out->nrest++] = argv[i];
    }
    return out->help || check_count(out);
}

void cli_args_free(cli_args *args)
{
    free(args->values);
    free((void *)(uintptr_t)args->rest);
    *args = (cli_args){0};
}

const char *cli_text(const cli_args *args, const char *option, const char *otherwise)
{
    int index = find(args->command, option, strlen(option));
    return index >= 0 && args->values[index] ? args->values[index] : otherwise;
}

bool cli_given(const cli_args *args, const char *option) { return cli_text(args, option, NULL); }

bool cli_int(const cli_args *args, const char *option, int64_t least, int64_t most, int64_t *out)
{
    const char *text = cli_text(args, option, NULL);
    char *end = NULL;
    if (!text) return true;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (!errno && end != text && !*end && value >= least && value <= most) {
        *out = value;
        return true;
    }
    char range[64] = "";
    if (most < INT64_MAX)
        snprintf(range, sizeof range, " from %lld to %lld", (long long)least, (long long)most);
    else if (least > INT64_MIN)
        snprintf(range, sizeof range, " from %lld up", (long long)least);
    cli_usage(args, "--%s is '%s'; it must be a whole number%s", option, text, range);
    return false;
}

bool cli_double(const cli_args *args, const char *option, double least, double most, double *out)
{
    const char *text = cli_text(args, option, NULL);
    char *end = NULL;
    if (!text) return true;
    double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value) || value < least || value > most)
        return cli_usage(args, "--%s is '%s'; it must be a number from %g to %g", option, text,
                         least, most),
               false;
    *out = value;
    return true;
}

bool cli_yes_no(const cli_args *args, const char *option, bool *out)
{
    const char *text = cli_text(args, option, NULL);
    if (!text) return true;
    bool yes = !strcmp(text, "yes"), no = !strcmp(text, "no");
    if (!yes && !no) return cli_usage(args, "--%s is '%s'; say yes or no", option, text), false;
    *out = yes;
    return true;
}
