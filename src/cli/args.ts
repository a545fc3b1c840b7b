// Parses arguments into words and flags. An unknown command or flag is a one-line error with a suggestion.
import { userInfo } from 'node:os'
import { parseArgs } from 'node:util'
import { nearest } from '../options.ts'
import { EXIT, CliError } from './exit.ts'
import { type CommandEntry, TABLE } from './table.ts'

type FlagValue = string | boolean | readonly (string | boolean)[] | undefined

/** The parsed arguments of a command. */
export type CommandArgs = {
  readonly words: readonly string[]
  text(flag: string): string | undefined
  texts(flag: string): readonly string[]
  is(flag: string): boolean
  /** A whole number of at least `least`. */
  count(flag: string, least?: number): number | undefined
}

export function readCommandArgs(command: string, args: readonly string[]): CommandArgs {
  const entry = TABLE[command]
  if (!entry) throw new CliError(EXIT.usage, unknownCommandText(command))
  const { values, positionals } = parseFlags(command, entry, args)
  const help = values['help'] === true
  const { least, most, words } = entry
  if (!help && (positionals.length < least || positionals.length > most))
    throw new CliError(EXIT.usage, `Wrong number of arguments. Usage: terret ${command} ${words}`.trimEnd())
  return {
    words: positionals,
    text: (flag) => (typeof values[flag] === 'string' ? values[flag] : undefined),
    texts: (flag) => (Array.isArray(values[flag]) ? (values[flag] as readonly string[]) : []),
    is: (flag) => values[flag] === true,
    count: (flag, least = 1) => parseCount(flag, values[flag], least),
  }
}

type ParsedArgs = { readonly values: Readonly<Record<string, FlagValue>>; readonly positionals: readonly string[] }

function parseFlags(command: string, { flags }: CommandEntry, args: readonly string[]): ParsedArgs {
  const options = Object.fromEntries(
    Object.entries(flags).map(([name, { type, short, multiple }]) => {
      return [name, { type, ...(short ? { short } : {}), ...(multiple ? { multiple } : {}) }]
    }),
  )
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true })
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error)
    const unknown = /^Unknown option '(-{1,2}[^'\s]*)/.exec(text)?.[1]
    const dashed = /^Option '(--?[\w-]+)' argument is ambiguous/.exec(text)?.[1]
    if (dashed !== undefined)
      throw new CliError(EXIT.usage, `The value of ${dashed} begins with "-". Write such a value as --NAME=VALUE.`)
    if (unknown === undefined) throw new CliError(EXIT.usage, `${(text.split('\n')[0] ?? text).split('. ')[0]}.`)
    const near = nearest(unknown.replace(/^-+/, ''), Object.keys(flags))
    const hint = near === null ? `Run \`terret ${command} --help\` to see what there is.` : `Did you mean --${near}?`
    throw new CliError(EXIT.usage, `\`terret ${command}\` has no flag ${unknown}. ${hint}`)
  }
}

function parseCount(flag: string, given: FlagValue, least: number): number | undefined {
  if (given === undefined) return undefined
  const count = Number(given)
  if (Number.isSafeInteger(count) && count >= least) return count
  throw new CliError(EXIT.usage, `--${flag} must be a whole number from ${least} on, not "${String(given)}".`)
}

export function unknownCommandText(command: string): string {
  const near = nearest(command, Object.keys(TABLE))
  const hint = near === null ? 'Run `terret --help` to see what there is.' : `Did you mean \`terret ${near}\`?`
  return `There is no command "${command}". ${hint}`
}

/** True for a word that is a message and not a name: it has white space in it, which no command and no id has. */
export function isMessage(word: string): boolean {
  return /\s/.test(word.trim())
}

/** The name of the acting person in the log: `--by`, or the name of the user. */
export function actorName(call: CommandArgs): string {
  const given = call.text('by')?.trim()
  if (given) return given
  try {
    return userInfo().username
  } catch {
    return 'somebody'
  }
}
