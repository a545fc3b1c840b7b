// `terret completion`: a script for a shell, made from the table. It completes commands and their flags, and runs nothing.
import type { Call } from '../args.ts'
import { EXIT, Refusal } from '../exit.ts'
import { printJson, printRaw } from '../present/print.ts'
import { TABLE } from '../table.ts'

export async function completion(call: Call): Promise<number> {
  const [shell = ''] = call.words
  const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined
  if (!script)
    throw new Refusal(
      EXIT.usage,
      `There is no completion for "${shell}". Choose one of: ${Object.keys(SCRIPTS).join(', ')}.`,
    )
  if (call.is('json')) printJson({ shell, script: script() })
  else printRaw(script())
  return EXIT.ok
}

const SCRIPTS: Readonly<Record<string, () => string>> = { bash, zsh, fish }
const names = (): string => Object.keys(TABLE).join(' ')
const flagsOf = (name: string): readonly string[] => Object.keys(TABLE[name]?.flags ?? {}).map((flag) => `--${flag}`)

function bash(): string {
  const cases = Object.keys(TABLE).map((name) => `    ${name}) words="${flagsOf(name).join(' ')}" ;;`)
  return `# source <(terret completion bash)
_terret() {
  local word="\${COMP_WORDS[COMP_CWORD]}" words=""
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${names()}" -- "$word")); return
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
  const commands = Object.entries(TABLE).map(([name, { says }]) => `    '${name}:${quoted(says)}'`)
  const cases = Object.entries(TABLE).map(([name, { flags }]) => {
    const rows = Object.entries(flags).map(
      ([flag, { takes, says }]) => `'--${flag}[${quoted(says)}]${takes ? `:${takes}:` : ''}'`,
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

/** Within single quotes and within the brackets of a description. */
function quoted(text: string): string {
  return text.replaceAll("'", '').replaceAll(':', ' -').replaceAll('[', '(').replaceAll(']', ')')
}

function fish(): string {
  const lines = Object.entries(TABLE).flatMap(([name, { says, flags }]) => [
    `complete -c terret -f -n __fish_use_subcommand -a ${name} -d '${quoted(says)}'`,
    ...Object.entries(flags).map(([flag, { takes, short, says: text }]) => {
      const more = `${short ? ` -s ${short}` : ''}${takes ? ' -r' : ''}`
      return `complete -c terret -n '__fish_seen_subcommand_from ${name}' -l ${flag}${more} -d '${quoted(text)}'`
    }),
  ])
  return ['# terret completion fish > ~/.config/fish/completions/terret.fish', ...lines].join('\n')
}
