// The texts of `terret help`, made from the table. No version here: that would load the library.
import { EXIT_TEXT } from '../exit.ts'
import { type Entry, TABLE } from '../table.ts'

const WIDTH = 26

export function overview(): string {
  const commands = Object.entries(TABLE).map(([name, { words, says }]) => row(`${name} ${words}`, says))
  const codes = Object.entries(EXIT_TEXT).map(([code, text]) => row(code, text, 6))
  return `terret · a durable agent harness

Usage: terret <command> [words] [flags]

Commands:
${commands.join('\n')}

A session's ID may be shortened as long as it is unique, or be "latest".
\`terret help COMMAND\` shows its flags. Most commands take --json.

Exit codes:
${codes.join('\n')}`
}

export function helpOn(name: string, { words, says, flags }: Entry): string {
  const rows = Object.entries(flags).map(([flag, { short, takes, says: text }]) => {
    return row(`${short ? `-${short}, ` : '    '}--${flag}${takes ? ` ${takes}` : ''}`, text)
  })
  return `terret ${name}: ${says}\n\nUsage: terret ${name} ${words}\n\nFlags:\n${rows.join('\n')}`
}

function row(left: string, right: string, width = WIDTH): string {
  const name = `  ${left}`.trimEnd()
  return name.length < width ? `${name.padEnd(width)}${right}` : `${name}\n${' '.repeat(width)}${right}`
}
