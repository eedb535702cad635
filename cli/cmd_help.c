/* stoker help - help for people, and the man page (doc/stoker.1), from the table of commands. */
#include "cli.h"
#include "table.h"

#include <ctype.h>
#include <string.h>

static const cli_option everywhere[] = {
    {"json", NULL, "print results, and errors, as JSON on the standard output"},
    {"quiet", NULL, "print nothing but results and errors"},
    {"help", NULL, "show the help of the command"},
    {NULL, NULL, NULL},
};

static const struct {
    int code;
    const char *text;
} codes[] = {
    {CLI_OK, "done"},
    {CLI_FAILED, "failed, in a way that has no number of its own"},
    {CLI_USAGE, "wrong command, option or argument, or a name that does not exist"},
    {CLI_FILE, "a file cannot be read or written (missing, read-only, disk full)"},
    {CLI_FORMAT, "a file was read and makes no sense, or holds something that is not supported"},
    {CLI_MISFIT, "model and data do not fit each other: shapes, types, labels without a class"},
    {CLI_MEMORY, "out of memory"},
    {CLI_INTERRUPTED, "interrupted; the checkpoint, if one was named, is written"},
};

/* ---- for people ------------------------------------------------------------------------------------------ */

void cli_print_usage(FILE *out, const cli_command *command)
{
    fprintf(out, "usage: stoker %s%s%s%s\n", command->name, *command->arguments ? " " : "",
            command->arguments, command->options ? " [options]" : "");
}

static void add_options(cli_table *t, const cli_option *options)
{
    for (; options && options->name; options++) {
        cli_cell(t, "--%s%s%s", options->name, options->value ? " " : "",
                 options->value ? options->value : "");
        cli_cell(t, "%s", options->doc);
    }
}

static void print_lines(FILE *out, const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n");
        fprintf(out, "  %.*s\n", (int)n, text);
        text += n + (text[n] == '\n');
    }
}

void cli_print_help(FILE *out, const cli_command *command)
{
    cli_table t = {.columns = 2};
    fprintf(out, "stoker %s - %s\n\n", command->name, command->summary);
    cli_print_usage(out, command);
    if (command->text) fprintf(out, "\n%s", command->text);
    fprintf(out, "\noptions:\n");
    add_options(&t, command->options);
    add_options(&t, everywhere);
    cli_table_print(&t, out, "  ");
    cli_table_free(&t);
    if (command->examples) {
        fprintf(out, "\nexamples:\n");
        print_lines(out, command->examples);
    }
}

static void print_overview(void)
{
    cli_table commands = {.columns = 2}, ends = {.columns = 2, .right = 1};
    printf("stoker - trains neural networks\n\nusage: stoker COMMAND [arguments] "
           "[options]\n\ncommands:\n");
    for (int i = 0; cli_commands[i]; i++) {
        cli_cell(&commands, "%s", cli_commands[i]->name);
        cli_cell(&commands, "%s", cli_commands[i]->summary);
    }
    cli_table_print(&commands, stdout, "  ");
    printf("\nexit codes:\n");
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        cli_cell(&ends, "%d", codes[i].code);
        cli_cell(&ends, "%s", codes[i].text);
    }
    cli_table_print(&ends, stdout, "  ");
    printf("\n`stoker help COMMAND` shows options and examples.\n");
    cli_table_free(&commands);
    cli_table_free(&ends);
}

/* ---- the man page --------------------------------------------------------------------------------------------- */

/* Dashes are minus signs there, and a dot that starts a line is a request. */
static void man_text(const char *text)
{
    bool start = true;
    for (; *text; text++) {
        if (start && (*text == '.' || *text == '\'')) printf("\\&");
        if (*text == '-' || *text == '\\')
            printf("\\%c", *text == '-' ? '-' : 'e');
        else
            putchar(*text);
        start = *text == '\n';
    }
}

static void man_options(const cli_option *options)
{
    for (; options && options->name; options++) {
        printf(".TP\n\\fB\\-\\-");
        man_text(options->name);
        printf("\\fR");
        if (options->value) printf(" \\fI%s\\fR", options->value);
        printf("\n");
        man_text(options->doc);
        printf("\n");
    }
}

static void man_command(const cli_command *c)
{
    printf(".SS \"stoker %s%s%s\"\n%c", c->name, *c->arguments ? " " : "", c->arguments,
           toupper((unsigned char)c->summary[0]));
    man_text(c->summary + 1);
    printf(".\n");
    if (c->text) {
        printf(".PP\n.nf\n");
        man_text(c->text);
        printf(".fi\n");
    }
    man_options(c->options);
    if (!c->examples) return;
    printf(".PP\nExamples:\n.PP\n.nf\n.RS\n");
    man_text(c->examples);
    printf(".RE\n.fi\n");
}

static void print_man(void)
{
    printf(".TH STOKER 1\n.SH NAME\nstoker \\- trains neural networks\n.SH SYNOPSIS\n"
           ".B stoker\n.I COMMAND\n[arguments] [options]\n.SH COMMANDS\n");
    for (int i = 0; cli_commands[i]; i++) man_command(cli_commands[i]);
    printf(".SH OPTIONS OF ALL COMMANDS\n");
    man_options(everywhere);
    printf(".SH EXIT STATUS\n");
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        printf(".TP\n.B %d\n", codes[i].code);
        man_text(codes[i].text);
        printf("\n");
    }
}

/* ---- the command ------------------------------------------------------------------------------------------------ */

static int run(const cli_args *args)
{
    if (cli_given(args, "man")) {
        print_man();
        return CLI_OK;
    }
    if (args->nrest == 0) {
        print_overview();
        return CLI_OK;
    }
    const cli_command *command = cli_find(args->rest[0]);
    if (!command) return cli_unknown_command(args->rest[0]);
    cli_print_help(stdout, command);
    return CLI_OK;
}

static const cli_option options[] = {
    {"man", NULL, "print the man page"},
    {NULL, NULL, NULL},
};

const cli_command cli_help = {
    .name = "help",
    .arguments = "[COMMAND]",
    .summary = "what commands there are, or how one is used",
    .examples =
        "stoker help train\n# the man page, without installing it\nstoker help --man | man -l -\n",
    .options = options,
    .most = 1,
    .run = run,
};
