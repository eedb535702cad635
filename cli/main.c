/* main.c - the `stoker` command: finds the command in the table, reads its arguments, runs it, and turns failures into one
 * message and an exit code. */
#include "cli.h"

#include <stdarg.h>
#include <string.h>

const cli_command *const cli_commands[] = {
#define CLI_COMMAND(name) &cli_##name,
#include "commands.def"
    NULL};

const cli_command *cli_find(const char *name)
{
    for (int i = 0; cli_commands[i]; i++)
        if (!strcmp(cli_commands[i]->name, name)) return cli_commands[i];
    return NULL;
}

static int exit_code(stk_status status)
{
    switch (status) {
    case STK_OK: return CLI_OK;
    case STK_ERR_ARGUMENT: return CLI_USAGE;
    case STK_ERR_IO: return CLI_FILE;
    case STK_ERR_FORMAT:
    case STK_ERR_UNSUPPORTED: return CLI_FORMAT;
    case STK_ERR_SHAPE:
    case STK_ERR_DTYPE: return CLI_MISFIT;
    case STK_ERR_MEMORY: return CLI_MEMORY;
    case STK_ERR_CANCELLED: return CLI_INTERRUPTED;
    default: return CLI_FAILED;
    }
}

int cli_fail(const cli_args *args, const stk_error *err)
{
    int code = exit_code(err->code);
    fflush(stdout);
    fprintf(stderr, "stoker %s: %s\n", args->command->name, err->message);
    if (args->json) {
        printf("{\"error\": {\"status\": ");
        cli_json_text(stdout, stk_status_name(err->code));
        printf(", \"message\": ");
        cli_json_text(stdout, err->message);
        printf(", \"exit\": %d}}\n", code);
    }
    return code;
}

int cli_usage(const cli_args *args, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "stoker %s: ", args->command->name);
    vfprintf(stderr, format, list);
    fprintf(stderr, "\nsee: stoker help %s\n", args->command->name);
    va_end(list);
    return CLI_USAGE;
}

int cli_finish(int code)
{
    bool bad = fflush(stdout) != 0 || ferror(stdout);
    if (bad) fprintf(stderr, "stoker: cannot write to the standard output; is the disk full?\n");
    return bad && code == CLI_OK ? CLI_FILE : code;
}

static const char *command_name(int index, const void *context)
{
    (void)context;
    return cli_commands[index] ? cli_commands[index]->name : NULL;
}

int cli_unknown_command(const char *name)
{
    const char *near = cli_near(name, command_name, NULL);
    fprintf(stderr, "stoker: unknown command '%s'%s%s%s\nsee: stoker help\n", name,
            near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
    return CLI_USAGE;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "help";
    if (!strcmp(name, "--help") || !strcmp(name, "-h")) name = "help";
    if (!strcmp(name, "--version")) name = "version";
    if (cli_is_python(argc, argv)) return cli_python(argc, argv);
    const cli_command *command = cli_find(name);
    if (!command) return cli_unknown_command(name);
    cli_args args;
    int code = CLI_USAGE;
    if (cli_args_parse(command, argc > 2 ? argc - 2 : 0, argv + 2, &args)) {
        if (args.help) cli_print_help(stdout, command);
        code = args.help ? CLI_OK : command->run(&args);
    }
    cli_args_free(&args);
    return cli_finish(code);
}
