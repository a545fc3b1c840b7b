// `terret completion`: prints a completion script for a shell, made from the command table. It completes commands and
// their flags, and runs nothing.
import type { CommandArgs } from '../args.ts'
import { EXIT, CliError } from '../exit.ts'
import { printJson, printRaw } from '../present/print.ts'
import { TABLE } from '../table.ts'

export async function completionCommand(call: CommandArgs): Promise<number> {
  const [shell = ''] = call.words
  const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined
  if (!script)
    throw new CliError(
      EXIT.usage,
      `There is no completion for "${shell}". Choose one of: ${Object.keys(SCRIPTS).join(', ')}.`,
    )
  if (call.is('json')) printJson({ shell, script: script() })
  else printRaw(script())
  return EXIT.ok
}

const SCRIPTS: Readonly<Record<string, () => string>> = { bash, zsh, fish }
const commandNames = (): string => Object.keys(TABLE).join(' ')
const flagsOf = (name: string): readonly string[] => Object.keys(TABLE[name]?.flags ?? {}).map((flag) => `--${flag}`)

function bash(): string {
  const cases = Object.keys(TABLE).map((name) => `    ${name}) words="${flagsOf(name).join(' ')}" ;;`)
  return `# source <(terret completion bash)
_terret() {
  local word="\${COMP_WORDS[COMP_CWORD]}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${commandNames()}" -- "$word")); return
  fi
  case "\${COMP_WORDS[1]}" in
${cases.join('\n')}
  esac
  case "$word" in
    -*) COMPREPLY=($(compgen -W "$words" -- "$word")) ;;
    *) COMPREPLY=($(compgen -f -W "latest" -- "$word")) ;;
  esac
}
complete -F _terret terret`
}

function zsh(): string {
  const commands = Object.entries(TABLE).map(([name, { says }]) => `    '${name}:${escapeDescription(says)}'`)
  const cases = Object.entries(TABLE).map(([name, { flags }]) => {
    const rows = Object.entries(flags).map(
      ([flag, { takes, says }]) => `'--${flag}[${escapeDescription(says)}]${takes ? `:${takes}:` : ''}'`,
    )
    return `    ${name}) _arguments ${rows.join(' ')} '*:word:_files' ;;`
  })
  return `#compdef terret
# terret completion zsh > ~/.zfunc/_terret
_terret() {
  local -a commands=(
${commands.join('\n')}
  )
  if (( CURRENT == 2 )); then _describe command commands; return; fi
  local command=$words[2]
  shift words; (( CURRENT-- ))
  case $command in
${cases.join('\n')}
  esac
}
compdef _terret terret`
}

/** Removes characters that would end the single quotes or the brackets around a description. */
function escapeDescription(text: string): string {
  return text.replaceAll("'", '').replaceAll(':', ' -').replaceAll('[', '(').replaceAll(']', ')')
}

function fish(): string {
  const lines = Object.entries(TABLE).flatMap(([name, { says, flags }]) => [
    `complete -c terret -f -n __fish_use_subcommand -a ${name} -d '${escapeDescription(says)}'`,
    ...Object.entries(flags).map(([flag, { takes, short, says: text }]) => {
      const more = `${short ? ` -s ${short}` : ''}${takes ? ' -r' : ''}`
      return `complete -c terret -n '__fish_seen_subcommand_from ${name}' -l ${flag}${more} -d '${escapeDescription(text)}'`
    }),
  ])
  return ['# terret completion fish > ~/.config/fish/completions/terret.fish', ...lines].join('\n')
}
