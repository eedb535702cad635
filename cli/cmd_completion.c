/* stoker completion - a script for bash, made from the table of commands. */
#include "cli.h"

#include <string.h>

static void print_words(const cli_command *c)
{
    for (const cli_option *o = c->options; o && o->name; o++) printf("--%s ", o->name);
    printf("--json --quiet --help");
}

static int run(const cli_args *args)
{
    if (strcmp(args->rest[0], "bash") != 0)
        return cli_usage(args, "'%s' is no shell this command knows; bash is", args->rest[0]);
    printf("# bash completion of stoker; load it with: source <(stoker completion bash)\n"
           "_stoker() {\n"
           "    local word=\"${COMP_WORDS[COMP_CWORD]}\" words=\"\"\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
           "        COMPREPLY=($(compgen -W \"");
    for (int i = 0; cli_commands[i]; i++) printf("%s%s", i ? " " : "", cli_commands[i]->name);
    printf("\" -- \"$word\"))\n"
           "        return\n"
           "    fi\n"
           "    case \"${COMP_WORDS[1]}\" in\n");
    for (int i = 0; cli_commands[i]; i++) {
        printf("        %s) words=\"", cli_commands[i]->name);
        print_words(cli_commands[i]);
        printf("\" ;;\n");
    }
    printf("    esac\n"
           "    case \"$word\" in\n"
           "        -*) COMPREPLY=($(compgen -W \"$words\" -- \"$word\")) ;;\n"
           "        *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
           "    esac\n"
           "}\n"
           "complete -o filenames -F _stoker stoker\n");
    return CLI_OK;
}

const cli_command cli_completion = {
    .name = "completion",
    .arguments = "bash",
    .summary = "a script that lets the shell complete commands and options",
    .examples = "source <(stoker completion bash)\n",
    .least = 1,
    .most = 1,
    .run = run,
};
