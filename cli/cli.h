/* cli.h - what the commands share: the table of commands, their options, and how a command ends.
 *
 * A command is one file cmd_<name>.c with a `const cli_command cli_<name>`, and one row in commands.def. Help, man page and
 * shell completion are made from it. */
#ifndef STK_CLI_CLI_H
#define STK_CLI_CLI_H

#include "stoker/stoker.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct cli_option {
    const char *name;  /* without the two dashes */
    const char *value; /* what follows: "N", "FILE"; NULL = nothing, it is a switch */
    const char *doc;   /* one line */
} cli_option;

typedef struct cli_args cli_args;
typedef struct cli_command {
    const char *name;
    const char *arguments; /* "MODEL.json DATA..." */
    const char *summary;   /* one line */
    const char *text;      /* paragraphs, may be NULL */
    const char *examples;  /* one a line; a line that starts with '#' explains the next one */
    const cli_option
        *options;    /* ends with a NULL name; --json, --quiet and --help are understood by all */
    int least, most; /* arguments that are no options; most -1: any number */
    int (*run)(const cli_args *args);
} cli_command;

#define CLI_COMMAND(name) extern const cli_command cli_##name;
#include "commands.def"
extern const cli_command *const cli_commands[];   /* ends with NULL */
bool cli_same_file(const char *a, const char *b); /* both there, and one */
int cli_unknown_command(const char *name);        /* tells, with what may have been meant */
const cli_command *cli_find(const char *name);    /* NULL */

/* Exit codes: documented in the man page and by `stoker help`; scripts rely on them. */
enum {
    CLI_OK = 0,
    CLI_FAILED = 1,       /* anything that has no number of its own */
    CLI_USAGE = 2,        /* unknown command or option, missing argument */
    CLI_FILE = 3,         /* a file cannot be read or written */
    CLI_FORMAT = 4,       /* a file was read and makes no sense */
    CLI_MISFIT = 5,       /* model and data do not fit each other */
    CLI_MEMORY = 6,       /* out of memory */
    CLI_INTERRUPTED = 130 /* Ctrl-C or SIGTERM; what --checkpoint names was written */
};

/* ---- arguments (args.c) ------------------------------------------------------------------------------- */
struct cli_args {
    const cli_command *command;
    const char *const *rest; /* arguments that are no options */
    int nrest;
    bool json, quiet, help;
    const char **values; /* one per option of the command: NULL = not given, "" for a switch */
};
/* false: the mistake was told on stderr. `args->values` is freed by cli_args_free either way. */
bool cli_args_parse(const cli_command *command, int argc, char **argv, cli_args *out);
void cli_args_free(cli_args *args);
const char *cli_text(const cli_args *args, const char *option, const char *otherwise);
bool cli_given(const cli_args *args, const char *option);
/* false: the mistake was told. *out is not touched when the option was not given. */
bool cli_int(const cli_args *args, const char *option, int64_t least, int64_t most, int64_t *out);
bool cli_double(const cli_args *args, const char *option, double least, double most, double *out);
bool cli_yes_no(const cli_args *args, const char *option, bool *out);
/* The word of the list (NULL at its end) that is spelled nearly like `word`, or NULL. */
const char *cli_near(const char *word, const char *(*item)(int index, const void *context),
                     const void *context);

/* ---- ending (main.c) ----------------------------------------------------------------------------------- */
/* Tells the error, on stdout as JSON too when asked, and returns the exit code that belongs to it. */
int cli_fail(const cli_args *args, const stk_error *err);
int cli_usage(const cli_args *args, const char *format, ...) STK_PRINTF(2, 3);
/* Everything printed arrived? A full disk under a redirected stdout must not look like success. */
int cli_finish(int code);

/* ---- JSON for machines (json.c) ------------------------------------------------------------------------ */
void cli_json_text(FILE *out, const char *text); /* quoted and escaped */
void cli_json_number(FILE *out, double value);   /* null when it is not finite */

/* ---- help, man page, completion (cmd_help.c) ------------------------------------------------------------ */
void cli_print_usage(FILE *out, const cli_command *command);
void cli_print_help(FILE *out, const cli_command *command);

/* python.c: is this the command line of a Python program? Then cli_python becomes its interpreter, or returns an exit code. */
bool cli_is_python(int argc, char **argv);
int cli_python(int argc, char **argv);

#endif
