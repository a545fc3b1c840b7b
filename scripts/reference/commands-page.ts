// docs/reference/commands.md, from the table that help and completion read. Text only.
import { type CommandEntry, type Flag, TABLE } from '../../src/cli/table.ts'
import { cell } from './markdown.ts'

/** They mean the same wherever they are, so they stand once, before the commands. */
const COMMON = ['json', 'data', 'help']

export function commandsPage(): string {
  const commands = Object.entries(TABLE)
  const index = commands.map(([name, { says }]) => `| [\`${name}\`](#${name}) | ${cell(says)} |`)
  return `# Commands

Every command of \`terret\`, with its words and its flags, as \`terret help\` shows them.

How they work together is told in [the guide](../guide/cli.md). What a command ends with is in [exit codes](errors.md#exit-codes).

| command | what it does |
|---|---|
${index.join('\n')}

## Flags of most commands

${flagTable(commonFlags(), '')}

${commands.map(([name, entry]) => commandSection(name, entry)).join('\n\n')}
`
}

function commonFlags(): Readonly<Record<string, Flag>> {
  const all = TABLE['list']?.flags ?? {}
  return Object.fromEntries(Object.entries(all).filter(([name]) => COMMON.includes(name)))
}

function commandSection(name: string, { words, says, flags }: CommandEntry): string {
  const own = Object.fromEntries(Object.entries(flags).filter(([flag]) => !COMMON.includes(flag)))
  const call = `\`\`\`sh\nterret ${name}${words === '' ? '' : ` ${words}`}\n\`\`\``
  return `## ${name}\n\n${sentence(says)}\n\n${call}${flagTable(own, '\n\n')}`
}

function flagTable(flags: Readonly<Record<string, Flag>>, before: string): string {
  const rows = Object.entries(flags).map(([name, { short, takes, says, multiple }]) => {
    const value = takes === undefined ? '' : ` ${takes}`
    const form = short === undefined ? `--${name}${value}` : `-${short}, --${name}${value}`
    return `| \`${form}\` | ${cell(says)}${multiple && !says.includes('several') ? ' (may be given several times)' : ''} |`
  })
  return rows.length === 0 ? '' : `${before}| flag | what it does |\n|---|---|\n${rows.join('\n')}`
}

/** The texts of the table are fragments, as help prints them. */
function sentence(says: string): string {
  return `${says.slice(0, 1).toUpperCase()}${says.slice(1)}.`
}
